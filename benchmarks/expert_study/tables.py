"""The tables of the study, in Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tabulate import tabulate

from benchmarks.expert_study.facts import KernelFacts

Groups = Mapping[tuple[str, str], Sequence[KernelFacts]]
"""Kernels by library and family."""


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
            _middle([each.label for each in found]),
            _percent(sum(each.spills > 0 for each in found), len(found)),
        )
        for key, found in groups.items()
    ]
    headers = ("instructions", "registers", "with spills")
    return markdown_table(rows, ("library", "family", "kernels", *headers))


def register_table(groups: Groups) -> str:
    """The label against the bound and the best known answer."""
    rows = [
        (
            *key,
            len(found),
            _mean([each.gap for each in found]),
            _percent(sum(each.gap == 0 for each in found), len(found)),
            _percent(sum(each.best < each.label for each in found), len(found)),
            _mean([each.best - each.bound for each in found]),
            _percent(sum(each.best == each.bound for each in found), len(found)),
        )
        for key, found in groups.items()
    ]
    headers = ("gap of the label", "label optimal")
    more = ("`best` has fewer", "gap of `best`", "`best` optimal")
    return markdown_table(rows, ("library", "family", "kernels", *headers, *more))


def occupancy_table(groups: Groups) -> str:
    """What the registers cost in occupancy, and how much room it leaves."""
    rows = [
        (
            *key,
            _percent(sum(each.best_occupancy > each.occupancy for each in found), len(found)),
            _middle([each.room for each in found]),
            _percent(sum(each.room <= 1 for each in found), len(found)),
        )
        for key, found in groups.items()
    ]
    headers = ("more with `best`", "room", "at most 1 left")
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
    """The kernel of each family whose label is furthest above the best known answer."""
    groups = groups_of(found).values()
    chosen = [min(group, key=lambda each: (each.best - each.label, each.id)) for group in groups]
    rows = [
        (
            f"`{each.id}`",
            each.kernel,
            each.label,
            each.best,
            each.bound,
            f"{each.occupancy} → {each.best_occupancy}",
        )
        for each in chosen
    ]
    return markdown_table(rows, ("id", "kernel", "label", "best", "bound", "occupancy"))


def allocator_table(results: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> str:
    """Results of `evaluate` over all kernels, by the name of the run."""
    rows = [
        (
            name,
            result["n"],
            f"{100 * result['pass@1']:.0f} %",
            _number(result["registers_ratio"]),
            _share(result["share_better"]),
            _share(result["share_worse"]),
        )
        for name, tasks in results.items()
        if (result := tasks.get("overall")) is not None
    ]
    headers = ("kernels", "valid", "registers / label", "fewer", "more")
    return markdown_table(rows, ("allocator", *headers), named=1)


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
