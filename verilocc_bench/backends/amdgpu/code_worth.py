"""Two assignments of one kernel, compared by their machine code.

The counts and the estimates of llvm-mca stay apart; if they disagree, the
comparison says so in words. Neither is a measurement: only the hardware shows
which of two kernels is faster.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT, BankConflicts
from verilocc_bench.backends.amdgpu.assembly import CodeCounts, count_code, innermost_loops
from verilocc_bench.backends.amdgpu.cycles import Analyzer, LoopEstimate, estimate_loops

CLOSING_WORDS = (
    "llvm-mca knows nothing of register banks, of memory or of other waves: "
    "these are not measurements"
)

_EQUAL_CYCLES = 0.001  # of the cycles
_CYCLES = "loop_cycles"

# For each metric: the words for fewer and for more, and why llvm-mca does not see it.
_WORDS = {
    "vector_registers": ("fewer vector registers", "more vector registers", None),
    "occupancy": ("a lower occupancy", "a higher occupancy", "it runs one wave alone"),
    "bank_conflicts": (
        "fewer bank conflicts",
        "more bank conflicts",
        "it knows nothing of register banks",
    ),
    "loop_waits": ("fewer s_waitcnt by loops", "more s_waitcnt by loops", None),
    "loop_wait_states": ("fewer wait states of s_nop", "more wait states of s_nop", None),
    "loop_register_moves": ("fewer register moves", "more register moves", None),
    "loop_spill_code": ("less spill code", "more spill code", None),
    "code_bytes": ("less code", "more code", None),
}
_MORE_IS_BETTER = {"occupancy"}


@dataclass(frozen=True, slots=True)
class CodeWorth:
    """The counts of the machine code of one assignment, and llvm-mca's estimates of its loops."""

    code: CodeCounts
    loops: tuple[LoopEstimate, ...]

    @property
    def loop_cycles(self) -> float | None:
        """The cycles of one iteration of each innermost loop, times 10 for each loop around it.

        None without a loop, or if a loop has no estimate.
        """
        total = 0.0
        for loop in self.loops:
            if loop.cycles is None:
                return None
            total += loop.cycles * LOOP_WEIGHT ** (loop.depth - 1)
        return total if self.loops else None

    def metrics(
        self,
        registers_used: Mapping[str, int] | None,
        occupancy: int | None,
        conflicts: BankConflicts | None,
        identity_copies: int | None,
    ) -> dict[str, float | None]:
        """The figures of a comparison by name, and the figures of the answer itself.

        An unknown figure is None. `occupancy` is the answer's occupancy; `waves` is
        the code's, which may need registers that no answer names.
        """
        code = self.code
        return {
            "vector_registers": registers_used["vector"] if registers_used else None,
            "occupancy": occupancy,
            "waves": code.metadata.get("waves"),
            "bank_conflicts": conflicts.any if conflicts else None,
            "bank_conflicts_all": conflicts.all if conflicts else None,
            "identity_copies": identity_copies,
            "instructions": code.instructions,
            "loop_instructions": code.weighted_instructions,
            "waits": code.waits,
            "loop_waits": code.weighted_waits,
            "nops": code.nops,
            "wait_states": code.wait_states,
            "loop_wait_states": code.weighted_wait_states,
            "register_moves": code.register_moves,
            "loop_register_moves": code.weighted_register_moves,
            "long_encodings": code.long_encodings,
            "spill_code": code.spill_code,
            "loop_spill_code": code.weighted_spill_code,
            "code_bytes": code.code_bytes,
            "vgprs": code.metadata.get("vgprs"),
            "sgprs": code.metadata.get("sgprs"),
            "scratch_bytes": code.metadata.get("scratch_bytes"),
            _CYCLES: self.loop_cycles,
        }

    def to_json(self) -> dict[str, Any]:
        """The counts and the loops as JSON."""
        return {"code": asdict(self.code), "loops": [asdict(loop) for loop in self.loops]}


def analyse_assembly(assembly: str, function: str, arch: str, analyzer: Analyzer) -> CodeWorth:
    """The worth of a kernel's assembly. Raises InputError if it does not contain the function."""
    loops = estimate_loops(innermost_loops(assembly, function), arch, analyzer)
    return CodeWorth(count_code(assembly, function), loops)


def compare_metrics(
    answer: Mapping[str, float | None], other: Mapping[str, float | None]
) -> list[str]:
    """The disagreements of the counts with llvm-mca's cycles, in words.

    Empty without cycles, or if all differences point one way. Cycles within 0.1 %
    count as equal.
    """
    cycles, before = answer.get(_CYCLES), other.get(_CYCLES)
    if cycles is None or before is None:
        return []
    slower = 1 if cycles > before else -1
    if abs(cycles - before) <= _EQUAL_CYCLES * before:
        slower = 0
    return list(_disagreements(answer, other, slower, f"({cycles:.2f} for {before:.2f})"))


def _disagreements(
    answer: Mapping[str, float | None], other: Mapping[str, float | None], slower: int, cycles: str
) -> Iterator[str]:
    for name, (fewer, more, blind) in _WORDS.items():
        here, there = answer.get(name), other.get(name)
        if here is None or there is None or here == there:
            continue
        worse = (here > there) != (name in _MORE_IS_BETTER)
        counted = f"{more if here > there else fewer} ({here:g} for {there:g})"
        because = f"; {blind}" if blind else ""
        if slower and worse != (slower > 0):
            word = "more" if slower > 0 else "fewer"
            yield f"{counted}, but llvm-mca estimates {word} cycles in loops {cycles}{because}"
        elif not slower and blind:
            yield f"{counted}, and the same cycles by llvm-mca in loops {cycles}{because}"


def estimate_words(name: str, worth: CodeWorth) -> list[str]:
    """The gaps in llvm-mca's estimate of one side, in words."""
    if not worth.loops:
        return [f"{name}: there is no loop, and so no estimate by llvm-mca"]
    words = []
    for loop in worth.loops:
        if loop.reason is not None:
            words.append(f"{name}: no cycles of {loop.label}: {loop.reason}")
        elif loop.skipped:
            opcodes = ", ".join(f"{opcode} {count}" for opcode, count in loop.skipped.items())
            words.append(
                f"{name}: the cycles of {loop.label} leave out {sum(loop.skipped.values())} of "
                f"{loop.instructions} instructions that llvm-mca does not know: {opcodes}"
            )
    return words
