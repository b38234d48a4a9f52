"""`candidates`: one virtual register, and up to 16 legal bases with features to choose by."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, pairwise

from verilocc_bench.allocators import Assistance
from verilocc_bench.allocators.register_state import (
    FIXED,
    Lifetime,
    RegisterState,
    base_distances,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.prompts.decisions import DecisionFormat, View

__all__ = ["CANDIDATES", "OFFERED"]

OFFERED = 16
"""At most so many bases are offered."""

ROOM = 16
"""Room beside a base is counted up to here."""

SYSTEM = """\
You allocate registers for a GPU kernel, one virtual register at a time. The first line names it, \
its class, how many registers wide it is and its legal bases. Each other line is a base that it \
can have now: "below" and "above" count the registers beside it that are free as long as it \
lives, "copies" the copies that would become needless, "grows" how far the kernel's use of that \
kind of register would rise. Answer with the name of one of these bases alone, such as v4."""


class _CandidatesViewer:
    """Legal bases: those that spare copies, the lowest of each gap, then the lowest."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        opcodes = problem.target.copy_opcodes
        pairs = (
            (instruction.definitions[0], instruction.uses[0])
            for _, _, instruction in problem.function.instructions()
            if instruction.opcode in opcodes and instruction.definitions and instruction.uses
        )
        self.copies = base_distances(problem, pairs)

    def __call__(self, state: RegisterState, register: int, choices: Mapping[int, str], /) -> View:
        """See Viewer."""
        spared = self._spared(state, register)
        offered = _select(choices, spared)
        lifetimes = state.lifetimes(register)
        tops: dict[str, int] = {}
        lines: list[str] = []
        for base in offered:
            file = self.problem.placements.register(base).file
            top = tops.setdefault(file, self._top(state, file))
            end = base + len(lifetimes)
            below = self._room(state, lifetimes[0], base - 1, -1)
            above = self._room(state, lifetimes[-1], end, 1)
            features = f"below {below} above {above} copies {spared.get(base, 0)}"
            lines.append(f"{choices[base]} {features} grows {max(0, end - top)}")
        return View(tuple(lines), tuple(choices[base] for base in offered))

    def _spared(self, state: RegisterState, register: int) -> dict[int, int]:
        """How many copies each base would make needless, given what is placed."""
        found: dict[int, int] = {}
        for other, distance in self.copies.get(register, ()):
            base = 0 if other == FIXED else state.placed.get(other)
            if base is not None and other != register:
                found[base + distance] = found.get(base + distance, 0) + 1
        return found

    def _units(self, file: str) -> range:
        """The units of a file that the function may use."""
        first = self.problem.placements.first_unit[file]
        return range(first, first + self.problem.function.file(file).count)

    def _top(self, state: RegisterState, file: str) -> int:
        """The unit after the last of a file that is in use."""
        units = self._units(file)
        return next((u + 1 for u in reversed(units) if state.is_used(u)), units.start)

    def _room(self, state: RegisterState, lifetime: Lifetime, unit: int, step: int) -> int:
        """How many units from one on, in one direction, are free for a lane."""
        file = self.problem.placements.register(unit - step).file
        units = self._units(file)
        room = 0
        while room < ROOM and unit in units and state.is_free(lifetime, unit):
            room += 1
            unit += step
        return room


def _select(choices: Mapping[int, str], spared: Mapping[int, int]) -> list[int]:
    """Up to OFFERED of the choices, in their order."""
    bases = list(choices)
    steps = [after - base for base, after in pairwise(bases)]
    usual = min((step for step in steps if step > 0), default=1)
    lowest = [base for base, step in zip(bases[1:], steps, strict=True) if step != usual]
    preferred = [base for base in bases if base in spared]
    ranked = dict.fromkeys([*preferred, *bases[:1], *lowest, *bases])
    chosen = set(islice(ranked, OFFERED))
    return [base for base in bases if base in chosen]


CANDIDATES = DecisionFormat("candidates", Assistance.CANDIDATES, SYSTEM, _CandidatesViewer)
