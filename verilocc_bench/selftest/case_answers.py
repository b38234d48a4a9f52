"""Random answers that should be valid: first fit in a random order, at random bases.

Tied registers are placed together. Without free registers the answer is None.
The judges decide if an answer is valid. One pass costs two bit-set operations
for each base that it tries.
"""

from __future__ import annotations

import random

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import VirtualLanes

Tie = tuple[int, int, int]
"""(register, other register, distance from the base of the first to the base of the second)."""


def random_answer(problem: AllocationProblem, generator: random.Random) -> dict[str, str] | None:
    """An answer, or None if the registers run out."""
    return _RandomFit(problem).place(generator)


class _RandomFit:
    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        liveness, placements = problem.liveness, problem.placements
        self.live = [0] * placements.unit_count
        self.defined = [0] * placements.unit_count
        for lane, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
            unit = placements.first_unit[file] + index
            self.live[unit], self.defined[unit] = liveness.live[lane], liveness.defined[lane]
        self.ties: dict[int, list[tuple[int, int]]] = {}
        for first, second, distance in _ties(problem):
            self.ties.setdefault(first, []).append((second, distance))
            self.ties.setdefault(second, []).append((first, -distance))

    def place(self, generator: random.Random) -> dict[str, str] | None:
        classes = self.problem.function.virtual_registers
        order = list(range(len(classes)))
        generator.shuffle(order)
        low = generator.random() < 0.6
        order.sort(key=lambda register: -classes[register].width)
        units: dict[int, int] = {}
        for register in order:
            legal = self.problem.placements.legal[classes[register]]
            bases = list(legal)
            if not low:
                generator.shuffle(bases)
            for other, distance in self.ties.get(register, ()):
                if other in units:
                    bases = [base for base in bases if base + distance == units[other]]
            unit = next((base for base in bases if self.fits(register, base)), None)
            if unit is None:
                return None
            self.occupy(register, unit)
            units[register] = unit
        return {
            f"%{n}": self.problem.placements.legal[each][units[n]] for n, each in enumerate(classes)
        }

    def masks(self, register: int) -> list[tuple[int, int]]:
        liveness = self.problem.liveness
        first = liveness.lane_offsets[register]
        last = first + self.problem.function.virtual_registers[register].width
        return list(zip(liveness.live[first:last], liveness.defined[first:last], strict=True))

    def fits(self, register: int, base: int) -> bool:
        return not any(
            self.live[unit] & defined or self.defined[unit] & live
            for unit, (live, defined) in enumerate(self.masks(register), base)
        )

    def occupy(self, register: int, base: int) -> None:
        for unit, (live, defined) in enumerate(self.masks(register), base):
            self.live[unit] |= live
            self.defined[unit] |= defined


def _ties(problem: AllocationProblem) -> list[Tie]:
    """The ties between different virtual registers."""
    found: list[Tie] = []
    for _, _, instruction in problem.function.instructions():
        for use in instruction.uses:
            if use.tied_to is None:
                continue
            definition = instruction.definitions[use.tied_to].location
            tied = use.location
            if (
                isinstance(definition, VirtualLanes)
                and isinstance(tied, VirtualLanes)
                and tied.register != definition.register
            ):
                found.append((definition.register, tied.register, definition.first - tied.first))
    return found
