"""Results as a table for people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tabulate import tabulate

from verilocc_bench.allocators import (
    Assistance,
)
from verilocc_bench.evaluation.records import RowResult
from verilocc_bench.settings.allocator import Decoding

_NAMES = ("architecture", "family", "allocator")

Record = Mapping[str, Any]

NONE = "–"
"""The cell of a figure that there is not."""


def percent(value: float | None) -> str:
    """The cell of a share, in per cent."""
    return NONE if value is None else f"{100 * value:.1f} %"


def number(value: float | None, digits: int = 0) -> str:
    """The cell of a number, with a fixed number of decimals."""
    return NONE if value is None else f"{value:,.{digits}f}"


def results_tables(documents: Sequence[dict[str, Any]], form: str = "simple") -> str:
    """One table for each assistance: only allocators that are shown the same are compared.

    `form` is a format of tabulate, such as `html`.
    """
    kinds = dict.fromkeys(document["config"]["assistance"] for document in documents)
    tables = []
    for kind in kinds:
        chosen = [each for each in documents if each["config"]["assistance"] == kind]
        decoding = chosen[0]["config"]["decoding"]
        usual = len(kinds) == 1 and (kind, decoding) == (Assistance.TEXT, Decoding.FREE)
        heading = "" if usual else f"assistance: {kind}, decoding: {decoding}\n\n"
        tables.append(heading + _table(chosen, form))
    return "\n\n".join(tables)


def allocator_label(config: Record) -> str:
    """An allocator's name, with the name of the model if it is an endpoint's."""
    model_name = config["options"].get("model_name")
    return f"{config['model']} {model_name}" if model_name else str(config["model"])


def _table(documents: Sequence[dict[str, Any]], form: str) -> str:
    """Architecture by family by allocator, one row each; the overall rows at the end."""
    config = documents[0]["config"]
    columns = _columns(config["k"], config["track"], config["decoding"])
    rows: list[tuple[str, ...]] = []
    for task in dict.fromkeys(task for document in documents for task in document["results"]):
        arch, _, family = task.partition("/")
        for document in documents:
            record = document["results"].get(task)
            if record is not None:
                figures = [show(record) for show in columns.values()]
                rows.append((arch, family or "–", allocator_label(document["config"]), *figures))
    headers = (*_NAMES, *columns)
    alignment = ("left",) * len(_NAMES) + ("right",) * len(columns)
    return tabulate(rows, headers=headers, tablefmt=form, disable_numparse=True, colalign=alignment)


def _columns(ks: Sequence[int], track: str, decoding: str) -> dict[str, Callable[[Record], str]]:
    """The figures by their headings, for the track and the decoding."""
    columns: dict[str, Callable[[Record], str]] = {"kernels": lambda r: str(r["n"])}
    for k in ks:
        columns["valid" if len(ks) == 1 else f"pass@{k}"] = partial(_pass, k)
    if decoding == Decoding.GUIDED:
        columns["calls"] = lambda r: number(r["verifier_calls"], 2)
    if track == "split":
        columns["spill cost"] = lambda r: number(r["spill_cost"], 0)
        columns["move cost"] = lambda r: number(r["move_cost"], 0)
    else:
        columns["registers/label"] = lambda r: number(r["registers_ratio"], 3)
        columns["fewer"] = lambda r: percent(r["share_better"])
        columns["more"] = lambda r: percent(r["share_worse"])
        columns["above bound"] = lambda r: number(r["gap_to_bound"], 2)
        columns["occupancy +/-"] = _occupancy
    columns["bank conflicts"] = lambda r: number(r["bank_conflicts"], 0)
    columns["seconds"] = lambda r: number(r["allocate_seconds"] + r["verify_seconds"], 2)
    return columns


def _pass(k: int, record: Record) -> str:
    return percent(record[f"pass@{k}"])


def _occupancy(record: Record) -> str:
    if record["occupancy_gained"] is None:
        return "–"
    return f"+{record['occupancy_gained']} −{record['occupancy_lost']}"


def failure_notes(model: str, results: Sequence[RowResult]) -> list[str]:
    """A line for each task and kind of failure of one model, with the commonest reason."""
    counts: Counter[tuple[str, str]] = Counter()
    reasons: dict[tuple[str, str], Counter[str]] = {}
    for result in results:
        for sample in result.samples:
            if sample.kind is not None:
                key = result.task, sample.kind
                counts[key] += 1
                found = [sample.message or ""] if sample.failure else sample.finding_kinds
                reasons.setdefault(key, Counter()).update(found)
    notes = []
    for key, messages in sorted(reasons.items()):
        message, _ = min(messages.items(), key=lambda item: (-item[1], item[0]))
        task, failure = key
        notes.append(f"{model} on {task}: {counts[key]} × {failure}: {message}")
    missing = sum(not sample.counted for result in results for sample in result.samples)
    if missing:
        notes.append(
            f"{model}: {missing} samples are missing for no fault of the allocator; there is no "
            "pass@k before they are there: give the same command again, with --output-path"
        )
    return notes
