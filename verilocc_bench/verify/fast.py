"""The fast check: is an assignment valid?

Every physical register unit collects the points at which the lanes in it
are live. If no two lanes of a unit share a point, the assignment is valid.
If two do, the exact condition decides: they collide where one is *defined*
while the other is live (see analysis.liveness). Findings are worked out only
for answers that are wrong.

Cost: two bit-set operations of one bit a point for each lane.
"""

from __future__ import annotations

from collections.abc import Mapping

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.findings import Verdict
from verilocc_bench.verify.explain import Tie, explain

__all__ = ["FastVerifier"]


class FastVerifier:
    """Judges any number of answers for one problem.

    >>> FastVerifier(problem).verify({"%0": "v1"}).valid  # doctest: +SKIP
    """

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        liveness, placements = problem.liveness, problem.placements
        self._rows = [
            (
                f"%{number}",
                placements.by_name[register_class],
                liveness.live[offset : offset + register_class.width],
            )
            for number, (register_class, offset) in enumerate(
                zip(problem.function.virtual_registers, liveness.lane_offsets, strict=True)
            )
        ]
        self._occupied = [0] * placements.unit_count
        self._touched = bytearray(placements.unit_count)
        for lane, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
            unit = placements.first_unit[file] + index
            self._occupied[unit] = liveness.live[lane]
            self._touched[unit] = 1
        self._ties = tied_operands(problem)

    def verify(self, answer: Mapping[str, str]) -> Verdict:
        """The verdict on an answer: names of virtual registers to names of bases."""
        units = self._place(answer)
        if units is None:
            return self._explained(answer)
        touched = bytearray(self._touched)
        for unit, (_, _, masks) in zip(units, self._rows, strict=True):
            touched[unit + len(masks) - 1] = 1
        used = self._registers_used(touched)
        return Verdict(self.problem.id, True, (), used, self.problem.target.occupancy(used))

    def _place(self, answer: Mapping[str, str]) -> list[int] | None:
        """The unit of each virtual register, or None where a closer look is needed."""
        if len(answer) != len(self._rows) or self._ties:
            return None
        occupied = list(self._occupied)
        units: list[int] = []
        for key, by_name, masks in self._rows:
            unit = by_name.get(answer.get(key, ""))
            if unit is None:
                return None
            units.append(unit)
            for mask in masks:
                held = occupied[unit]
                if held & mask:
                    return None
                occupied[unit] = held | mask
                unit += 1
        return units

    def _explained(self, answer: Mapping[str, str]) -> Verdict:
        findings, touched = explain(self.problem, answer, self._ties)
        used = None
        if touched is not None:
            used = self._registers_used(bytearray(map(max, touched, self._touched)))
        occupancy = None if used is None else self.problem.target.occupancy(used)
        return Verdict(self.problem.id, not findings, findings, used, occupancy)

    def _registers_used(self, touched: bytearray) -> dict[str, int]:
        """Highest index + 1 by file, and the scored number, from the units touched."""
        target, placements = self.problem.target, self.problem.placements
        used: dict[str, int] = {}
        for file in target.files:
            first = placements.first_unit[file.name]
            last = touched.rfind(1, first, first + file.count)
            used[file.name] = last - first + 1 if last >= 0 else 0
        return {VECTOR: target.vector_use(used), **used}


def tied_operands(problem: AllocationProblem) -> list[Tie]:
    """(block, instruction, definition, use) of ties that equal operands do not already meet."""
    ties: list[Tie] = []
    for block, index, instruction in problem.function.instructions():
        for use in instruction.uses:
            if use.tied_to is None:
                continue
            definition = instruction.definitions[use.tied_to]
            if definition.location != use.location:
                ties.append((block, index, definition, use))
    return ties
