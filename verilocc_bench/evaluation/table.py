"""Results as a table for people."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from tabulate import tabulate

from verilocc_bench.allocators import Assistance
from verilocc_bench.errors import InputError, did_you_mean
from verilocc_bench.evaluation.records import INVALID, RowResult
from verilocc_bench.evaluation.summary import OVERALL
from verilocc_bench.settings.allocator import Decoding

Record = Mapping[str, Any]

NONE = "–"
"""The cell of a figure that there is not."""

_NAMES = ("task", "allocator")
PLAIN = "plain"
"""The form of tables on a terminal."""

CODE_COLUMNS = {
    "code instructions": "loop_instructions",
    "code waits": "loop_waits",
    "code conflicts": "bank_conflicts",
    "code cycles": "loop_cycles",
}
"""The columns of machine code, and their figures."""

_PRIORITY = (
    "calls",
    "cost",
    "registers/label",
    "code runs",
    "code score",
    *CODE_COLUMNS,
    "spill cost",
    "move cost",
    "bank conflicts",
    "kernels",
    "occupancy +/-",
    "occupancy score",
    "fewer",
    "more",
    "above bound",
)
"""Which columns are kept where there is little room: pass@k always, then these in this order."""

_TWO_LINES = {
    "registers/label": ["registers", "/label"],
    "valid": ["valid", "(95 % interval)"],
    "pass@1": ["pass@1", "(95 % interval)"],
}
_BOLD, _GREEN, _YELLOW, _RED = "1", "32", "33", "31"


@dataclass(frozen=True, slots=True)
class TableStyle:
    """How results are shown.

    `form` is PLAIN or a format of tabulate. `columns` are headings. Without them there
    are as many as `width` characters have room for, or all if that is None.
    """

    form: str = PLAIN
    width: int | None = None
    columns: tuple[str, ...] | None = None
    colour: bool = False


@dataclass(frozen=True, slots=True)
class _FigureColumn:
    """A figure of a record; `colour` is a code of ANSI for its cell, or nothing."""

    heading: str
    cell: Callable[[Record], str]
    colour: Callable[[Record], str] = lambda _: ""


def percent(value: float | None) -> str:
    """The cell of a share, in per cent."""
    return NONE if value is None else f"{100 * value:.1f} %"


def number(value: float | None, digits: int = 0) -> str:
    """The cell of a number, with a fixed number of decimals."""
    return NONE if value is None else f"{value:,.{digits}f}"


def allocator_label(config: Record) -> str:
    """An allocator's name, with the name of the model if it is an endpoint's."""
    model_name = config.get("options", {}).get("model_name")
    return f"{config['model']} {model_name}" if model_name else str(config["model"])


def check_columns(headings: Sequence[str], ks: Sequence[int]) -> None:
    """Raises InputError for a heading that no table of these k has."""
    passes = [f"pass@{k}" for k in (1, *ks)]
    rest = (*_PRIORITY, "seconds", "tokens in", "tokens out")
    known = dict.fromkeys(("score", "valid", *passes, *rest))
    for heading in headings:
        if heading not in known:
            raise InputError(
                f"there is no column {heading!r}, only {', '.join(known)}"
                + did_you_mean(heading, known)
            )


def results_tables(documents: Sequence[dict[str, Any]], style: TableStyle = TableStyle()) -> str:
    """One table for each assistance: only allocators that are shown the same are compared.

    A last line names the columns that did not fit.
    """
    kinds = dict.fromkeys(document["config"]["assistance"] for document in documents)
    groups = [[d for d in documents if d["config"]["assistance"] == kind] for kind in kinds]
    tables, left_out = [], dict[str, None]()
    for group in groups:
        config = group[0]["config"]
        usual = len(kinds) == 1 and (config["assistance"], config["decoding"]) == (
            Assistance.TEXT,
            Decoding.FREE,
        )
        heading = f"assistance: {config['assistance']}, decoding: {config['decoding']}\n\n"
        text, without = _table(group, style)
        tables.append(("" if usual else heading) + text)
        left_out |= dict.fromkeys(without)
    if left_out:
        note = f"not shown: {', '.join(left_out)} (--wide)"
        tables.append(wrapped(note, style.width))
    return ("\n" if left_out and len(groups) == 1 else "\n\n").join(tables)


def wrapped(text: str, width: int | None) -> str:
    """A line as a paragraph: what follows its first line is indented. As it is without a width."""
    if width is None:
        return text
    return "\n".join(
        textwrap.wrap(
            text, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    )


def _table(documents: Sequence[dict[str, Any]], style: TableStyle) -> tuple[str, list[str]]:
    """The table, and the headings that it has no room for."""
    columns = _columns(documents)
    if style.columns is not None:
        by_heading = {each.heading: each for each in columns}
        first = by_heading.get("valid", by_heading.get("pass@1"))
        if first is not None:
            by_heading |= {"valid": first, "pass@1": first}
        chosen = [by_heading[name] for name in style.columns if name in by_heading]
        return _drawn(documents, chosen, style), []
    chosen = list(columns)
    while style.width is not None and len(chosen) > 1:
        plain = _drawn(documents, chosen, TableStyle(style.form))
        if max(map(len, plain.splitlines())) <= style.width:
            break
        worst = max(chosen, key=_rank)
        if _rank(worst) < 0:
            break
        chosen.remove(worst)
    left_out = [each.heading for each in columns if each not in chosen]
    return _drawn(documents, chosen, style), left_out


def _rank(column: _FigureColumn) -> int:
    if column.heading in ("score", "valid") or column.heading.startswith("pass@"):
        return -1
    return _PRIORITY.index(column.heading) if column.heading in _PRIORITY else len(_PRIORITY)


def _drawn(
    documents: Sequence[dict[str, Any]], columns: Sequence[_FigureColumn], style: TableStyle
) -> str:
    """Task by allocator, one row each; the overall rows at the end, set apart."""
    rows, colours = [], []
    tasks = list(dict.fromkeys(task for document in documents for task in document["results"]))
    for task in tasks:
        for document in documents:
            record = document["results"].get(task)
            if record is not None:
                names = (task, allocator_label(document["config"]))
                rows.append((*names, *(each.cell(record) for each in columns)))
                colours.append(("", "", *(each.colour(record) for each in columns)))
    headings = (*_NAMES, *(each.heading for each in columns))
    if style.form == PLAIN:
        return _plain_table(headings, rows, colours if style.colour else None)
    alignment = ("left",) * len(_NAMES) + ("right",) * len(columns)
    return tabulate(
        rows, headers=headings, tablefmt=style.form, disable_numparse=True, colalign=alignment
    )


def _plain_table(
    headings: Sequence[str],
    rows: Sequence[tuple[str, ...]],
    colours: Sequence[tuple[str, ...]] | None,
) -> str:
    """Columns two spaces apart. Headings take two lines where that is narrower."""
    halves = [_TWO_LINES.get(heading, heading.split(" ", 1)) for heading in headings]
    upper, lower = zip(*(half if len(half) == 2 else ("", *half) for half in halves), strict=True)
    widths = [max(map(len, column)) for column in zip(upper, lower, *rows, strict=True)]
    rule = "  ".join("-" * width for width in widths)

    def line(cells: Sequence[str], codes: Sequence[str]) -> str:
        padded = [
            cell.ljust(width) if place < len(_NAMES) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        coloured = [
            f"\x1b[{code}m{cell}\x1b[0m" if code else cell
            for cell, code in zip(padded, codes, strict=True)
        ]
        return "  ".join(coloured).rstrip()

    no_codes = [""] * len(headings)
    lines = [line(each, no_codes) for each in (upper, lower) if any(each)] + [rule]
    for place, row in enumerate(rows):
        overall = row[0] == OVERALL
        if overall and place and rows[place - 1][0] != OVERALL:
            lines.append(rule)
        codes = no_codes if colours is None else colours[place]
        bold = _BOLD if overall and colours is not None else ""
        lines.append(line(row, [";".join(filter(None, (bold, code))) for code in codes]))
    return "\n".join(lines)


def _columns(documents: Sequence[dict[str, Any]]) -> list[_FigureColumn]:
    """The figures in their order, for the k, the track, the decoding, and the machine code."""
    config = documents[0]["config"]
    columns = [_FigureColumn("kernels", lambda r: str(r["n"]))]
    if config["track"] != "split":
        columns.append(_FigureColumn("score", lambda r: number(r.get("score"), 3)))
    for k in config["k"]:
        heading = "valid" if len(config["k"]) == 1 else f"pass@{k}"
        columns.append(_FigureColumn(heading, partial(_pass, k), partial(_pass_colour, k)))
    if config["decoding"] == Decoding.GUIDED:
        columns.append(_FigureColumn("calls", lambda r: number(r["verifier_calls"], 2)))
    if config["track"] == "split":
        columns += [
            _FigureColumn("spill cost", lambda r: number(r["spill_cost"], 0)),
            _FigureColumn("move cost", lambda r: number(r["move_cost"], 0)),
        ]
    else:
        columns += [
            _FigureColumn("registers/label", lambda r: number(r["registers_ratio"], 3)),
            _FigureColumn("fewer", lambda r: percent(r["share_better"])),
            _FigureColumn("more", lambda r: percent(r["share_worse"])),
            _FigureColumn("above bound", lambda r: number(r["gap_to_bound"], 2)),
            _FigureColumn("occupancy +/-", _occupancy),
            _FigureColumn("occupancy score", lambda r: number(r.get("score_occupancy"), 3)),
        ]
    columns += [
        _FigureColumn("bank conflicts", lambda r: number(r["bank_conflicts"], 0)),
        _FigureColumn("seconds", lambda r: number(r["allocate_seconds"] + r["verify_seconds"], 2)),
    ]
    overall = [document["results"][OVERALL] for document in documents]
    if any("prompt_tokens" in record["totals"] for record in overall):
        columns += [
            _FigureColumn("tokens in", lambda r: number(r["totals"].get("prompt_tokens"))),
            _FigureColumn("tokens out", lambda r: number(r["totals"].get("completion_tokens"))),
        ]
    if any("cost" in record for record in overall):
        columns.append(_FigureColumn("cost", lambda r: number(r.get("cost"), 4)))
    if any("machine_code" in record for record in overall):
        columns += [
            _FigureColumn(heading, partial(code_change, name))
            for heading, name in CODE_COLUMNS.items()
        ]
        columns.append(_FigureColumn("code runs", code_runs))
        columns.append(_FigureColumn("code score", _code_score))
    return columns


def code_change(name: str, record: Record) -> str:
    """The cell of a sum of machine code's figures against the compiler's, in per cent."""
    sums = record.get("machine_code", {}).get("figures", {}).get(name)
    if sums is None:
        return NONE
    if not sums["label"]:
        return f"+{number(sums['answer'])}" if sums["answer"] else "0.0 %"
    change = round(100 * (sums["answer"] / sums["label"] - 1), 1)
    return f"{change:+.1f} %".replace("-", "−") if change else "0.0 %"


def _code_score(record: Record) -> str:
    return number(record.get("machine_code", {}).get("score"), 3)


def code_runs(record: Record) -> str:
    """On how many of the functions with a valid answer its machine code has no hazard."""
    code = record.get("machine_code")
    return NONE if code is None else f"{code['runnable']} of {code['kernels']}"


def _pass(k: int, record: Record) -> str:
    """pass@k, and pass@1 with its 95 % interval and, of five samples, that over seeds alone."""
    value = percent(record[f"pass@{k}"])
    low, high = record.get(f"pass@{k}_low"), record.get(f"pass@{k}_high")
    if k > 1 or low is None or high is None:
        return value
    least, most = record.get("pass@1_seeds_low"), record.get("pass@1_seeds_high")
    seeds = "" if least is None or most is None else f", seeds {_range(least, most)}"
    return f"{value} ({_range(low, high)}{seeds})"


def _range(*ends: float) -> str:
    return "–".join(f"{100 * end:.1f}".removesuffix(".0") for end in ends)


def _pass_colour(k: int, record: Record) -> str:
    value = record[f"pass@{k}"]
    if value is None:
        return ""
    return _GREEN if value == 1 else _RED if value == 0 else _YELLOW


def _occupancy(record: Record) -> str:
    if record["occupancy_gained"] is None:
        return NONE
    return f"+{record['occupancy_gained']} −{record['occupancy_lost']}"


def failure_notes(model: str, results: Sequence[RowResult]) -> list[str]:
    """A line for each task and kind of failure of one model, with the commonest reason.

    Wrong answers are summed up by their first finding, each kind with a function that has it.
    """
    counts: Counter[tuple[str, str]] = Counter()
    reasons: dict[tuple[str, str], Counter[str]] = {}
    examples: dict[tuple[str, str, str], str] = {}
    for result in results:
        for sample in result.samples:
            if sample.kind is not None:
                key = result.task, sample.kind
                counts[key] += 1
                reason = (sample.message or "") if sample.failure else sample.finding_kinds[0]
                reasons.setdefault(key, Counter())[reason] += 1
                examples.setdefault((*key, reason), result.row.id)
    notes = []
    for key, found in sorted(reasons.items()):
        task, failure = key
        ordered = sorted(found.items(), key=lambda item: (-item[1], item[0]))
        if failure == INVALID:
            told = ", ".join(
                f"{times} × first finding {reason} (as on {examples[(*key, reason)]})"
                for reason, times in ordered
            )
            notes.append(f"{model} on {task}: {counts[key]} × {failure}: {told}")
        else:
            notes.append(f"{model} on {task}: {counts[key]} × {failure}: {ordered[0][0]}")
    missing = sum(not sample.counted for result in results for sample in result.samples)
    if missing:
        notes.append(
            f"{model}: {missing} samples are missing for no fault of the allocator; there is no "
            "pass@k before they are there: give the same command again, with --output-path"
        )
    return notes
