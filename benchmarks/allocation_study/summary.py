"""The summary: the study's main figures as sentences."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.allocation_study.figures import total, worth
from benchmarks.allocation_study.questions import BEST
from benchmarks.allocation_study.records import Measurement
from benchmarks.allocation_study.tables import share

_COMPILERS = {"gfx90a": "LLVM", "gfx942": "LLVM", "sm_80": "ptxas"}


def summary_sentences(measurements: Sequence[Measurement]) -> list[str]:
    """One paragraph for each compiler."""
    found = []
    for compiler in sorted({_COMPILERS[each.arch] for each in measurements}):
        own = [each for each in measurements if _COMPILERS[each.arch] == compiler]
        found.append(
            f"**{compiler}**, {len(own)} kernels. {_registers(compiler, own)} {_rest(own)}"
        )
    return found


def _registers(compiler: str, own: Sequence[Measurement]) -> str:
    label, best = worth(own, "compiler"), worth(own, "best")
    assert label is not None
    assert best is not None
    return (
        f"{compiler}'s assignment is proved optimal on {share(label.optimal, label.valid)} of "
        f"them, `best`'s on {share(best.optimal, best.kernels)}. `best` takes fewer registers on "
        f"{share(best.fewer, best.kernels)} (up to {best.most_saved}), more on "
        f"{share(best.more, best.kernels)}; the mean gap to the bound falls from {label.gap:.2f} "
        f"to {best.gap:.2f}. Occupancy rises on {share(best.higher, best.kernels)} of the kernels "
        f"and falls on {share(best.lower, best.kernels)}."
    )


def _rest(own: Sequence[Measurement]) -> str:
    have = [e for e in own if all(name in e.answers and e.answers[name].valid for name in BEST)]
    before, after, least = (
        total(have, name, lambda measured: measured.conflicts)
        for name in ("compiler", "best", "best bank-conflicts")
    )
    if not before:
        return "The compiler has no bank conflicts."
    words = f"Weighted bank conflicts go from {before:,} to {after:,}"
    return f"{words}, and to {least:,} where they come first."
