"""The words of the page; figures are of the kernels that were measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.expert_study.facts import KernelFacts
from dataset_builders.experts.sweep import EXPERT_SWEEPS_BY_NAME
from dataset_builders.sweeps.experts import EXPERT

TITLE = """\
# Experts' kernels: how many registers they take, and why

For readers who ask how well experts' kernels use registers.
[experts.md](experts.md) says where the kernels come from. `make expert-study` makes this page."""

REGISTERS = """\
The gap is the number of vector registers above the proved lower bound, a mean over kernels.
`best` is the search of verilocc-bench ([search.md](search.md)) on the same order of instructions.
It is brief on experts' larger kernels, so its own gap says less there about what is possible."""

CONFLICTS = """\
An instruction with three vector sources that want more of a bank than the bank delivers at once,
ten times for each loop around it."""

WAITS = """\
The label and the best answer as machine code, counted as `compare` does
([comparison.md](comparison.md)): sums over the eight smallest kernels of each family, ten times for
each loop around an instruction. *less* and *more* are numbers of kernels. On gfx942 llc adds waits
to both sides; waits that the authors wrote by hand stay. The search for fewer registers does not
look at hazards, so it can cost wait states. On sm_80 the order and the waits are ptxas's own."""

FUNCTIONS = """\
Shares of all instructions, registers or kernels of the two sides."""

ALLOCATORS = """\
One answer of each allocator to the smallest kernels of each task. `best` stands for the best known
answers of the dataset. The ratio counts valid answers alone. `reference` is the model that
ships: it copies a rule of text intervals (assistance `intervals`), and was not trained on experts'
kernels."""

UNKNOWN = """\
- On sm_80 the order of instructions is ptxas's own, made for the registers of the label. Answers
  of `best` without `--runnable` need other waits before they run ([sm_80.md](sm_80.md)).
- Nothing was run on a GPU. Fewer registers help where they raise the occupancy; a kernel whose
  local memory allows one block at a time gains nothing."""

REPEAT = """\
```
make expert-study DATASET=regalloc
```

reads `regalloc/expert` and `regalloc`, and evaluates into `results/expert-study`."""


def found(experts: Sequence[KernelFacts], own: Sequence[KernelFacts]) -> str:
    """The result in a few sentences."""
    fewer = sum(each.best < each.label for each in experts)
    more = sum(each.best_occupancy > each.occupancy for each in experts)
    optimal = sum(each.gap == 0 for each in experts)
    words = (
        f"Of {len(experts)} kernels of experts, the label is proved optimal in registers for "
        f"{optimal}, and `best` has fewer for {fewer}. The mean label is {_mean(experts):.1f} "
        "registers above its bound"
    )
    if own:
        words += f", on our own kernels {_mean(own):.1f}"
    return f"{words}. Fewer registers mean a higher occupancy for {more}."


def sample(
    experts: Sequence[KernelFacts],
    own: Sequence[KernelFacts],
    manifests: Sequence[Mapping[str, Any]],
) -> str:
    """The kernels that were measured, and those that have no row."""
    counts = Counter(each.library for each in experts)
    listed = ", ".join(f"{count} of {name}" for name, count in sorted(counts.items()))
    rejected: Counter[str] = Counter()
    for manifest in manifests:
        rejected.update(manifest.get("rejected") or {})
    lost = ", ".join(f"{kind} {count}" for kind, count in sorted(rejected.items())) or "none"
    taken = ", and ".join(_candidates(manifest) for manifest in manifests)
    return (
        f"{listed}, of {taken} (rejected: {lost}). "
        f"Beside them stand {len(own)} kernels of our own for the same architectures. "
        "Instructions and registers are medians; spills are stores to the stack that the compiler "
        "added."
    )


def occupancy(experts: Sequence[KernelFacts]) -> str:
    """What the registers are held against, if not the least number."""
    tight = sum(each.room <= 1 for each in experts)
    wide = sum(each.room >= 8 for each in experts)
    return (
        "Experts do not minimise registers, and neither does their compiler. The tile decides how "
        "many warps or waves run at once, and within that a label takes what is convenient. The "
        "*room* is the median number of further registers that a kernel could take at the same "
        f"occupancy: {tight} of {len(experts)} kernels have at most one left, {wide} have eight or "
        "more."
    )


def _candidates(manifest: Mapping[str, Any]) -> str:
    taken, every = manifest["points"], manifest.get("every", 1)
    archs = " and ".join(manifest["archs"])
    whole = len(EXPERT_SWEEPS_BY_NAME[EXPERT].points(manifest["archs"]))
    if taken >= whole:
        return f"{taken:,} candidates for {archs}"
    sample = f"every {every}th of " if every > 1 else ""
    return f"the first {taken:,} of {sample}the sweep's {whole:,} candidates for {archs}"


def _mean(kernels: Sequence[KernelFacts]) -> float:
    return sum(each.gap for each in kernels) / len(kernels)
