"""What the best answers cost as machine code: waits, wait states, instructions, cycles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.expert_study.facts import KernelFacts
from benchmarks.expert_study.tables import Groups, markdown_table
from benchmarks.machine_code import METRICS
from verilocc_bench.evaluation.machine_code import CountedCode, summarise_machine_code

Counted = Mapping[str, Mapping[str, Any]]
"""The record `machine_code` of kernels of a run of evaluate, by id."""


def code_table(groups: Groups, counted: Counted) -> str:
    """The sums of both sides, by library, family and figure."""
    rows = []
    for key, found in groups.items():
        codes = [CountedCode(**counted[each.id]) for each in found if each.id in counted]
        for name, sums in summarise_machine_code(codes)["figures"].items():
            label, best = sums["label"], sums["answer"]
            change = f"{100 * (best / label - 1):+.1f} %" if label else ""
            numbers = (f"{label:,.0f}", f"{best:,.0f}", change)
            rows.append((*key, METRICS[name], *numbers, *(sums[k] for k in ("less", "more"))))
    headers = ("library", "family", "figure", "label", "`best`", "change", "less", "more")
    return markdown_table(rows, headers, named=3)


def runnable(experts: Sequence[KernelFacts], counted: Counted) -> str:
    """How many answers have code, and how many of them run with the waits that it has."""
    sentences = []
    for arch in sorted({each.arch for each in experts}):
        codes = [counted[each.id] for each in experts if each.arch == arch and each.id in counted]
        refused = sum(code["refused"] is not None for code in codes)
        runs = sum(code["runnable"] is True for code in codes)
        sentences.append(
            f"On {arch} {len(codes) - refused} of {len(codes)} best answers have machine code, and "
            f"{runs} of these run by the compiler's own rules."
        )
    return " ".join(sentences)
