"""The tables of a section, as text for all formats."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from verilocc_bench.evaluation.comparison import RunComparison
from verilocc_bench.evaluation.table import (
    CODE_COLUMNS,
    NONE,
    code_change,
    code_runs,
    number,
    percent,
)
from verilocc_bench.report.pairing import Ranking, percent_interval, ratio_interval
from verilocc_bench.report.runs import ComparableRuns, plain, size_order

CALLS_SHOWN = (1, 2, 3, 5, 10, 20, 50, 100)
CHANCE_MEANING = (
    "pass@k: the chance that one of k samples is valid, mean over kernels, "
    "with its 95 % interval in parentheses"
)
REGISTER_MEANING = (
    "over kernels with a valid sample, on its first: registers/label is the geometric mean of "
    "vector registers used against the compiler's own assignment (less is better); fewer, equal "
    "and more are shares of kernels against it; above bound is the mean number of registers above "
    "the highest proved lower bound"
)


COMMON_MEANING = (
    "The best first (★): sorted by pass@1 over the kernels that all runs were asked, then by "
    "registers/label over those that all of them solved. In parentheses intervals of 95 % over "
    "kernels, Wilson's of pass@1 and else by bootstrap; from five samples a kernel on, `seeds` is "
    "that of pass@1 over seeds alone"
)
PAIR_MEANING = (
    "Each run paired with the best over the kernels that both were asked: the difference of "
    "pass@1 (below 0: less often valid); kernels that only one of the two solved; over those that "
    "both solved, how many times the best's registers it uses (below 1: fewer), on how many of "
    "them fewer, as many and more, and the two-sided p-value of the exact sign test on these. "
    "A difference is sure if its interval leaves out 0, or 1 for registers"
)


@dataclass(frozen=True, slots=True)
class Table:
    """Cells by row; the first `named` columns are names, the others figures.

    `meaning` is one line that says what the columns are.
    """

    title: str
    meaning: str
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    named: int = 1


@dataclass(frozen=True, slots=True)
class _Column:
    """A figure of a record; an `optional` column is left out if no record has it."""

    header: str
    cell: Callable[[Mapping[str, Any]], str]
    optional: bool = False


def section_tables(section: ComparableRuns, ranking: Ranking) -> list[Table]:
    """All tables of a section that have rows."""
    tables = [
        *_paired_tables(ranking),
        _overall_table(section, ranking),
        _task_table(section),
        _size_table(section),
        _code_table(section, ranking),
        *(_count_table(section, key) for key in ("failures", "findings", "unparsable")),
        _call_table(section),
        _time_table(section),
        _count_table(section, "totals"),
    ]
    return [table for table in tables if table.rows]


def _paired_tables(ranking: Ranking) -> list[Table]:
    """The runs over the kernels that they have in common, and each paired with the best."""
    if not ranking.pairs:
        return []
    common = tuple(
        (
            f"{'★ ' if place == 0 else ''}{each.run.name}",
            number(each.asked),
            percent_interval(each.pass_at_1, each.pass_interval),
            number(each.solved),
            ratio_interval(each.registers_ratio, each.registers_interval),
        )
        for place, each in enumerate(ranking.figures)
    )
    paired = tuple(
        _pair_row(each.run.name, pair)
        for each, pair in zip(ranking.figures[1:], ranking.pairs, strict=True)
    )
    headers = ("run", "kernels", "pass@1 there", "solved by all", "registers/label there")
    best = ranking.best.name
    pair_headers = (
        *("run", "kernels", "pass@1 − best", f"only {best} solved", "only it solved"),
        *("registers ÷ best", "fewer", "equal", "more", "sign test, p"),
    )
    return [
        Table("Over common kernels", COMMON_MEANING, headers, common),
        Table(f"Against the best, {best}", PAIR_MEANING, pair_headers, paired),
    ]


def _pair_row(name: str, pair: RunComparison | None) -> tuple[str, ...]:
    if pair is None:
        return (name, "0", *[NONE] * 8)
    solved, registers = pair.solved, pair.registers
    return (
        name,
        number(len(pair.functions)),
        percent_interval(pair.pass_difference, pair.pass_interval),
        number(solved["only the first"]),
        number(solved["only the second"]),
        ratio_interval(pair.registers_ratio, pair.registers_interval),
        number(registers["fewer"]),
        number(registers["equal"]),
        number(registers["more"]),
        f"{pair.sign_test:.2g}",
    )


def _overall_table(section: ComparableRuns, ranking: Ranking) -> Table:
    columns = [
        _Column("kernels", lambda r: number(r["n"])),
        _Column("samples", lambda r: number(r["samples"])),
        _Column("score", lambda r: number(r.get("score"), 3), optional=True),
        *(_pass_column(k) for k in _ks(section)),
        *_REGISTER_COLUMNS,
        _Column("verifier calls", lambda r: number(r["verifier_calls"], 2), optional=True),
        _Column("tokens in", lambda r: number(r["totals"].get("prompt_tokens")), optional=True),
        _Column("out", lambda r: number(r["totals"].get("completion_tokens")), optional=True),
        _Column("cost", lambda r: number(r.get("cost"), 4), optional=True),
    ]
    meaning = (
        "score is 0 without a valid answer, 0.5 at the compiler's registers and 1 at the proved "
        f"lower bound, the mean over kernels; {CHANCE_MEANING}. The rest is {REGISTER_MEANING}."
    )
    if section.conditions["decoding"] == "guided":
        meaning += " Verifier calls is the mean of samples that succeed."
    return _record_table("Overall", meaning, ("run",), columns, _overall_rows(ranking))


def _code_table(section: ComparableRuns, ranking: Ranking) -> Table:
    columns = [
        _Column("occupancy +/−", _occupancy),
        _Column("copies removed", lambda r: number(r["copies_removed"])),
        _Column("bank conflicts", lambda r: number(r["bank_conflicts"])),
        _Column("in one bank", lambda r: number(r["bank_conflicts_all"])),
        _Column("spill cost", lambda r: number(r["spill_cost"], 1), optional=True),
        _Column("move cost", lambda r: number(r["move_cost"], 1), optional=True),
        *(
            _Column(heading, partial(code_change, name), optional=True)
            for heading, name in CODE_COLUMNS.items()
        ),
        _Column("code runs", code_runs, optional=True),
    ]
    meaning = (
        "Over kernels with a valid sample, on its first: occupancy counts kernels that gain or "
        "lose waves or warps against the label; copies removed became identities; bank conflicts "
        "are instructions whose three vector sources want more of a register bank than it "
        "delivers, and in one bank those with all three in one, each 10 times more for every loop "
        "around it. Sums over more kernels are larger."
    )
    if section.conditions["track"] == "split":
        meaning += (
            " Spill and move cost are means over kernels of the lanes that edits spill, reload, "
            "move or make again, weighted in the same way."
        )
    if any("machine_code" in each.run.overall for each in ranking.figures):
        meaning += (
            " Code compares sums of machine code with the compiler's: instructions, waits and "
            "conflicts by loops, and cycles of loops as llvm-mca estimates them."
        )
    return _record_table("Code", meaning, ("run",), columns, _overall_rows(ranking))


def _overall_rows(ranking: Ranking) -> list[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """The best first."""
    return [((each.run.name,), each.run.overall) for each in ranking.figures]


def _task_table(section: ComparableRuns) -> Table:
    tasks = sorted({task for run in section.runs for task in run.results} - {"overall"})
    rows = [
        ((task, run.name), run.results[task])
        for task in tasks
        for run in section.runs
        if task in run.results
    ]
    meaning = f"Task is architecture/family. {CHANCE_MEANING}. The rest is {REGISTER_MEANING}."
    return _record_table("By task", meaning, ("task", "run"), _group_columns(section), rows)


def _size_table(section: ComparableRuns) -> Table:
    groups = [run.document["groups"]["size"] for run in section.runs]
    sizes = sorted({size for group in groups for size in group}, key=size_order)
    rows = [
        ((_size_title(size), run.name), group[size])
        for size in sizes
        for run, group in zip(section.runs, groups, strict=True)
        if size in group
    ]
    meaning = (
        "Kernels by their number of virtual registers. "
        f"{CHANCE_MEANING}. The rest is {REGISTER_MEANING}."
    )
    return _record_table("By size", meaning, ("size", "run"), _group_columns(section), rows)


def _group_columns(section: ComparableRuns) -> list[_Column]:
    ks = _ks(section)
    return [
        _Column("kernels", lambda r: number(r["n"])),
        *(_pass_column(k) for k in ks[:1] + ks[1:][-1:]),
        *_REGISTER_COLUMNS,
    ]


def _record_table(
    title: str,
    meaning: str,
    names: tuple[str, ...],
    columns: Sequence[_Column],
    rows: Sequence[tuple[tuple[str, ...], Mapping[str, Any]]],
) -> Table:
    shown = [
        column
        for column in columns
        if not column.optional or any(column.cell(record) != NONE for _, record in rows)
    ]
    cells = tuple((*name, *(column.cell(record) for column in shown)) for name, record in rows)
    return Table(title, meaning, (*names, *(c.header for c in shown)), cells, len(names))


_COUNTED = {
    "failures": (
        "Failures",
        "kind",
        "How many samples are not valid, by kind: invalid is a wrong answer; no_answer, "
        "unparsable, timeout, crashed and beyond_analysis are not answers that could be judged. "
        "All of these count against the allocator.",
    ),
    "findings": (
        "Findings of the verifier",
        "kind",
        "What is wrong with wrong answers: the samples that have at least one finding of the "
        "kind; one sample may have several kinds.",
    ),
    "unparsable": (
        "Unparsable answers",
        "reason",
        "Why answers could not be read, in samples.",
    ),
    "totals": (
        "Totals",
        "figure",
        "Figures that the allocators report themselves, summed over all samples.",
    ),
}
"""By the key of a record that counts kinds: the table's title, its first header, its meaning."""


def _count_table(section: ComparableRuns, key: str) -> Table:
    title, name, meaning = _COUNTED[key]
    counts = [run.overall[key] for run in section.runs]
    kinds = sorted({kind for count in counts for kind in count})
    # A kind that a run does not have came up never; a total that it does not have is not known.
    absent = NONE if key == "totals" else number(0)
    rows = tuple(
        (plain(kind), *(number(count[kind]) if kind in count else absent for count in counts))
        for kind in kinds
    )
    return Table(title, meaning, (name, *(run.name for run in section.runs)), rows)


def _call_table(section: ComparableRuns) -> Table:
    found = [run.overall["success_by_calls"] or {} for run in section.runs]
    known = {int(calls) for record in found for calls in record}
    shown = [calls for calls in CALLS_SHOWN if calls in known]
    if known and max(known) not in shown:
        shown.append(max(known))
    rows = tuple(
        (run.name, *(percent(record.get(str(calls))) for calls in shown))
        for run, record in zip(section.runs, found, strict=True)
        if record
    )
    meaning = (
        "The share of samples that are valid within a number of verifier calls, mean over kernels."
    )
    return Table("Success by verifier calls", meaning, ("run", *map(str, shown)), rows)


def _time_table(section: ComparableRuns) -> Table:
    parts = ("prepare", "allocate", "verify", "measure", "wall")
    rows = tuple(
        (run.name, *(number(run.document["timing"][f"{part}_seconds"], 2) for part in parts))
        for run in section.runs
    )
    meaning = (
        "Seconds: prepare is reading and analysing the functions; allocate and verify are summed "
        "over samples, also where a run was resumed; measure is the quality of valid "
        "answers; wall is from start to end, with several processes less than the sum."
    )
    return Table("Where the time went", meaning, ("run", *parts), rows)


def _ks(section: ComparableRuns) -> tuple[int, ...]:
    return tuple(sorted({k for run in section.runs for k in run.ks}))


def _pass_column(k: int) -> _Column:
    def cell(record: Mapping[str, Any]) -> str:
        value = record.get(f"pass@{k}")
        low, high = record.get(f"pass@{k}_low"), record.get(f"pass@{k}_high")
        if value is None or low is None or high is None:
            return percent(value)
        least, most = record.get(f"pass@{k}_seeds_low"), record.get(f"pass@{k}_seeds_high")
        seeds = "" if least is None or most is None else f", seeds {_range(least, most)}"
        return f"{percent(value)} ({_range(low, high)}{seeds})"

    return _Column(f"pass@{k}", cell)


def _range(low: float, high: float) -> str:
    return f"{100 * low:.1f}–{100 * high:.1f}"


def _occupancy(record: Mapping[str, Any]) -> str:
    if record["occupancy_gained"] is None:
        return NONE
    return f"+{number(record['occupancy_gained'])} −{number(record['occupancy_lost'])}"


def _size_title(size: str) -> str:
    return f"{size[:-1]} or more" if size.endswith("-") else size.replace("-", " to ")


_REGISTER_COLUMNS = (
    _Column("registers/label", lambda r: number(r["registers_ratio"], 3)),
    _Column("fewer", lambda r: percent(r["share_better"])),
    _Column("equal", lambda r: percent(r["share_equal"])),
    _Column("more", lambda r: percent(r["share_worse"])),
    _Column("above bound", lambda r: number(r["gap_to_bound"], 2)),
)
