"""The tables of the study, in Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tabulate import tabulate

from benchmarks.expert_study.facts import KernelFacts

Groups = Mapping[tuple[str, str], Sequence[KernelFacts]]
"""Kernels by library and family."""

EXAMPLES = 6
"""Kernels in the table of examples."""


def groups_of(found: Sequence[KernelFacts]) -> Groups:
    """The kernels by library and family, experts' libraries as they first appear."""
    groups: dict[tuple[str, str], list[KernelFacts]] = {}
    for each in found:
        groups.setdefault((each.library, each.family), []).append(each)
    return groups


def size_table(groups: Groups) -> str:
    """What the functions are like."""
    rows = [
        (
            *key,
            len(found),
            _middle([each.instructions for each in found]),
            max(each.instructions for each in found),
            _middle([each.loop_depth for each in found]),
            _middle([each.label for each in found]),
            _percent(sum(each.spills > 0 for each in found), len(found)),
        )
        for key, found in groups.items()
    ]
    headers = ("instructions", "largest", "loop depth", "registers", "with spills")
    return markdown_table(rows, ("library", "family", "kernels", *headers))


def register_table(groups: Groups) -> str:
    """The label against the bound and the best known answer."""
    rows = [
        (
            *key,
            len(found),
            _mean([each.gap for each in found]),
            max(each.gap for each in found),
            _percent(sum(each.gap == 0 for each in found), len(found)),
            _percent(sum(each.best < each.label for each in found), len(found)),
            _mean([each.best - each.bound for each in found]),
            _percent(sum(each.best == each.bound for each in found), len(found)),
        )
        for key, found in groups.items()
    ]
    headers = ("gap of the label", "largest gap", "label optimal")
    more = ("`best` has fewer", "gap of `best`", "`best` optimal")
    return markdown_table(rows, ("library", "family", "kernels", *headers, *more))


def occupancy_table(groups: Groups) -> str:
    """What the registers cost in occupancy, and how much room it leaves."""
    rows = [
        (
            *key,
            " ".join(f"{level}: {count}" for level, count in sorted(_levels(found).items())),
            _percent(sum(each.best_occupancy > each.occupancy for each in found), len(found)),
            _middle([each.room for each in found]),
            _percent(sum(each.room <= 1 for each in found), len(found)),
        )
        for key, found in groups.items()
    ]
    headers = ("kernels by occupancy", "more with `best`", "room", "at most 1 left")
    return markdown_table(rows, ("library", "family", *headers))


def conflict_table(groups: Groups) -> str:
    """Weighted bank conflicts of the label and of the best answer."""
    rows = [
        (
            *key,
            _percent(sum(each.conflicts > 0 for each in found), len(found)),
            f"{sum(each.conflicts for each in found):,}",
            f"{sum(each.best_conflicts for each in found):,}",
        )
        for key, found in groups.items()
    ]
    return markdown_table(rows, ("library", "family", "kernels with any", "label", "`best`"))


def example_table(found: Sequence[KernelFacts]) -> str:
    """The kernels whose labels are furthest above the best known answer, of each family some."""
    chosen: list[KernelFacts] = []
    for group in groups_of(found).values():
        ordered = sorted(group, key=lambda each: (each.best - each.label, each.id))
        chosen += ordered[: max(2, EXAMPLES // len(groups_of(found)))]
    rows = [
        (
            f"`{each.id}`",
            each.kernel,
            _short(each.parameters),
            each.label,
            each.best,
            each.bound,
            f"{each.occupancy} → {each.best_occupancy}",
        )
        for each in chosen
    ]
    return markdown_table(
        rows, ("id", "kernel", "parameters", "label", "best", "bound", "occupancy")
    )


def opcode_table(experts: Sequence[KernelFacts], own: Sequence[KernelFacts], most: int = 12) -> str:
    """Opcodes whose shares of all instructions differ most, on one architecture."""
    shares = [_shares(found) for found in (experts, own)]
    names = sorted(
        {*shares[0], *shares[1]}, key=lambda n: (-abs(shares[0].get(n, 0) - shares[1].get(n, 0)), n)
    )
    rows = [
        (f"`{name}`", *(f"{100 * share.get(name, 0):.1f} %" for share in shares))
        for name in names[:most]
    ]
    return markdown_table(rows, ("opcode", "experts", "ours"), named=1)


def allocator_table(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Results of `evaluate`, by the name of the run and by task."""
    rows = [
        (
            task,
            name,
            result["n"],
            f"{100 * result['pass@1']:.0f} %",
            _number(result["registers_ratio"]),
            _share(result["share_better"]),
            _share(result["share_worse"]),
        )
        for task in sorted({task for tasks in results.values() for task in tasks})
        for name, result in ((name, tasks.get(task)) for name, tasks in results.items())
        if result is not None
    ]
    headers = ("kernels", "valid", "registers / label", "fewer", "more")
    return markdown_table(rows, ("task", "allocator", *headers))


def _shares(found: Sequence[KernelFacts]) -> dict[str, float]:
    counts: Counter[str] = Counter()
    for each in found:
        counts.update(each.opcodes)
    total = sum(counts.values())
    return {name: count / total for name, count in counts.items()}


def _levels(found: Sequence[KernelFacts]) -> Counter[int]:
    return Counter(each.occupancy for each in found)


def _short(parameters: str) -> str:
    """The parameters without those that are off, and in few characters."""
    values = json.loads(parameters)
    return " ".join(
        str(name) if value == 1 and name not in ("stages",) else f"{name}={value}"
        for name, value in values.items()
        if value not in (0, "linear") and not str(name).startswith("even")
    )


def _middle(values: Sequence[int]) -> str:
    return f"{median(values):,.0f}"


def _mean(values: Sequence[int]) -> str:
    return f"{sum(values) / len(values):.1f}"


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %"


def _share(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.0f} %"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def markdown_table(rows: Sequence[Sequence[Any]], headers: Sequence[str], named: int = 2) -> str:
    """A table of Markdown whose first `named` columns are words."""
    sides = ["left"] * named + ["right"] * (len(headers) - named)
    return tabulate(rows, headers, tablefmt="pipe", colalign=sides, disable_numparse=True)
