"""Spill everywhere: linear scan, and where registers run out, spill code.

Registers are spilled greedily until the pressure fits at every point. The next
one is the register whose accesses, weighted by ten to the power of their loop
depth, cost least for each point of excess pressure that it covers. Registers that
can serve as homes (AGPRs) come before spill slots. If linear scan still fails,
because tuples do not fit the holes, more registers are spilled. The allocator is
deterministic. It is a baseline that every allocator of the split track should
beat.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate

from verilocc_bench.allocators.first_fit import first_fit
from verilocc_bench.allocators.linear_scan import linear_scan, scan_order
from verilocc_bench.allocators.protocol import answer_from_assignment
from verilocc_bench.allocators.spill_code import Home, insert_spill_code, natural_class, unspillable
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import DEEPEST, LOOP_WEIGHT
from verilocc_bench.edits import Answer
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment, RegisterClass, VirtualLanes

VGPR, AGPR = "v", "a"
ATTEMPTS = 10


def spill_everywhere(problem: AllocationProblem) -> Assignment | Answer:
    """An assignment, with spill code if registers run out.

    Raises AllocationFailed if spill code does not help.
    """
    try:
        return linear_scan(problem)
    except AllocationFailed as error:
        failure = error
    spiller = _Spiller(problem)
    for attempt in range(ATTEMPTS):
        try:
            return spiller.allocate(slack=2 + 3 * attempt)
        except AllocationFailed as error:
            failure = error
    raise failure


class _Spiller:
    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        self.budgets = {file.name: file.count for file in problem.function.files}
        self.available = dict(self.budgets)
        for units in problem.function.reserved:
            self.available[units.file] -= units.count
        self.fixed = unspillable(problem)
        self.costs = self._costs()
        self.segments: dict[int, list[tuple[int, int]]] = {}
        self.fixed_segments: dict[str, list[tuple[int, int]]] = {}
        self._collect_segments()
        self.classes = self._narrowed() if AGPR in self.budgets else {}

    def allocate(self, slack: int) -> Assignment | Answer:
        """An answer that leaves `slack` units of each file for temporaries."""
        problem = self.problem
        homes = self._homes(slack)
        spilled = insert_spill_code(problem, homes, self.classes)
        rewritten = AllocationProblem(spilled.function)
        assignment = first_fit(rewritten, scan_order(rewritten))
        if not homes:
            return assignment  # it fits once some registers use other files
        names = answer_from_assignment(rewritten, assignment)
        return Answer(names, spilled.edits)

    def _collect_segments(self) -> None:
        """Collects the runs of live points of each register's lanes, and of fixed lanes by file."""
        liveness = self.problem.liveness
        owner = [
            n for n, c in enumerate(self.problem.function.virtual_registers) for _ in range(c.width)
        ]
        for lane, first, last, _ in liveness.segments:
            if lane < len(owner):
                self.segments.setdefault(owner[lane], []).append((first, last))
            else:
                file, _ = liveness.fixed_lanes[lane - len(owner)]
                self.fixed_segments.setdefault(file, []).append((first, last))

    def _costs(self) -> dict[int, int]:
        """The lanes that the spill code of each register would transfer, weighted by loop depth."""
        costs = dict.fromkeys(range(len(self.problem.function.virtual_registers)), 0)
        for block, _, instruction in self.problem.function.instructions():
            weight = LOOP_WEIGHT ** min(self.problem.loop_depths[block], DEEPEST)
            for operand in instruction.definitions + instruction.uses:
                if isinstance(operand.location, VirtualLanes):
                    costs[operand.location.register] += weight * operand.location.count
        return costs

    def _narrowed(self) -> dict[int, RegisterClass]:
        """Moves registers of either vector file to the AGPRs while these have room."""
        narrowed: dict[int, RegisterClass] = {}
        curve = self._curve(AGPR, {})
        for number, register_class in enumerate(self.problem.function.virtual_registers):
            if AGPR in register_class.files and len(register_class.files) > 1:
                if not self._fits(curve, number, self.available[AGPR]):
                    continue
                self._add(curve, number, 1)
                bases = {AGPR: tuple(r for r in register_class.ranges if r.file == AGPR)}
                narrowed[number] = self.problem.target.make_class(
                    register_class.width, bases, self.budgets
                )
        return narrowed

    def _file(self, register: int, classes: Mapping[int, RegisterClass]) -> str | None:
        """The file that a register counts for: the first of its class."""
        own = classes.get(register, self.problem.function.virtual_registers[register])
        return own.files[0] if own.files else None

    def _curve(self, file: str, classes: Mapping[int, RegisterClass]) -> list[int]:
        """The lanes live at each point in a file; a class of several files counts for the first."""
        curve = [0] * len(self.problem.liveness.points)
        for number in self.segments:
            if self._file(number, classes) == file:
                self._add(curve, number, 1)
        for first, last in self.fixed_segments.get(file, ()):
            for point in range(first, last + 1):
                curve[point] += 1
        return curve

    def _add(self, curve: list[int], register: int, count: int) -> None:
        for first, last in self.segments.get(register, ()):
            for point in range(first, last + 1):
                curve[point] += count

    def _fits(self, curve: list[int], register: int, room: int) -> bool:
        """True if the curve with the register stays within `room`."""
        width = self.problem.function.virtual_registers[register].width
        return all(
            max(curve[first : last + 1]) + width <= room
            for first, last in self.segments.get(register, ())
        )

    def _homes(self, slack: int) -> dict[int, Home]:
        homes: dict[int, Home] = {}
        slots = 0
        agprs = self._curve(AGPR, self.classes) if AGPR in self.budgets else []
        files = [file.name for file in self.problem.target.files]
        for file in [f for f in files if f in self.problem.target.spill_files and f != AGPR]:
            for register in self._chosen(file, self.available[file] - slack):
                width = self.problem.function.virtual_registers[register].width
                if file == VGPR and self._fits(agprs, register, self.available[AGPR] - slack):
                    self._add(agprs, register, 1)
                    home = natural_class(self.problem.target, self.budgets, (AGPR,), width)
                    homes[register] = Home(None, home)
                else:
                    homes[register] = Home(slots, None)
                    slots += width
        return homes

    def _chosen(self, file: str, room: int) -> list[int]:
        """The registers to spill so that no point of a file has more than `room` lanes."""
        curve = self._curve(file, self.classes)
        candidates = {
            n for n in self.segments if self._file(n, self.classes) == file and n not in self.fixed
        }
        chosen: list[int] = []
        while max(curve) > room:
            # excess[p] is the number of points before p with more than `room` lanes.
            excess = list(accumulate((lanes > room for lanes in curve), initial=0))
            points = {
                n: sum(excess[last + 1] - excess[first] for first, last in self.segments[n])
                for n in candidates
            }
            covered = {n: count for n, count in points.items() if count}
            if not covered:
                break  # the rest cannot be spilled; perhaps it fits anyway
            best = min(covered, key=lambda n: (self.costs[n] / covered[n], n))
            candidates.discard(best)
            chosen.append(best)
            self._add(curve, best, -1)
        return chosen
