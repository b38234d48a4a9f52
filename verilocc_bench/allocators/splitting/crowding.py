"""The crowded groups of files of a function, with their lanes and units.

Registers that may be AGPRs become AGPRs while there is room, which costs nothing.
The others count in their own files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verilocc_bench.allocators.splitting.candidates import Candidates, UnitTraits
from verilocc_bench.allocators.splitting.demand import lane_counts, lanes_of, live_masks
from verilocc_bench.allocators.splitting.loop_nest import find_loops
from verilocc_bench.allocators.splitting.regions import find_regions
from verilocc_bench.allocators.splitting.sites import Sites
from verilocc_bench.allocators.splitting.split_flow import held_lanes
from verilocc_bench.allocators.splitting.split_units import spill_units
from verilocc_bench.allocators.splitting.split_webs import WebFinder
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import At
from verilocc_bench.ir import RegisterClass

VGPRS, ACCUMULATORS = "v", "a"


def available(problem: AllocationProblem, files: Sequence[str]) -> int:
    """The number of units of some files within the budget that are not reserved."""
    total = sum(file.count for file in problem.function.files if file.name in files)
    return total - sum(u.count for u in problem.function.reserved if u.file in files)


class Crowding:
    """The crowded groups of files, with all that splitting needs to know about them.

    `counts[group][block][position]` is the number of lanes that need registers of
    a group, and `capacity[group]` the number of its registers. `constants[unit]`
    is the place of the constant that is the only value of a unit. `classes` are
    the narrowed classes of the virtual registers.
    """

    def __init__(self, problem: AllocationProblem, groups: Sequence[tuple[str, ...]]) -> None:
        self.problem, self.groups = problem, groups
        function, target = problem.function, problem.target
        self.classes, narrowed = narrowed_classes(problem)
        self.files = frozenset(file for group in groups for file in group)
        units = [
            unit
            for unit in spill_units(function, target)
            if self.files.issuperset(self.classes[unit.register].files)
        ]
        masks, live = held_lanes(function), live_masks(problem)
        self.units = find_regions(function, masks, find_loops(function), units)
        self.constants = self._constants()
        self.finder = WebFinder(function, target, self.units, self.classes)
        self.counts: list[list[list[int]]] = []
        self.capacity: list[int] = []
        for files in groups:
            counted = tuple(f for f in files if f != ACCUMULATORS)
            lanes = lanes_of(problem, counted, narrowed)
            self.counts.append(lane_counts(problem, masks, live, lanes))
            self.capacity.append(available(problem, counted))
        traits = [self._traits(number) for number in range(len(self.units))]
        self.candidates = Candidates(self.units, Sites(problem), traits)

    def _traits(self, unit: int) -> UnitTraits:
        files = self.unit_files(unit)
        return UnitTraits(
            group=self.group_of(files),
            is_constant=unit in self.constants,
            is_masked=files[0] in self.problem.target.masked_files,
            is_spillable=ACCUMULATORS not in files,
        )

    def unit_files(self, unit: int) -> tuple[str, ...]:
        """The files of a unit's register."""
        return self.classes[self.units[unit].unit.register].files

    def group_of(self, files: Sequence[str]) -> int:
        """The number of the group of some files."""
        return next(number for number, group in enumerate(self.groups) if files[0] in group)

    def _constants(self) -> Mapping[int, At]:
        found: dict[int, At] = {}
        for number, each in enumerate(self.units):
            writes = [access for access in each.unit.accesses if access.writes]
            if len(writes) == 1 and writes[0].certain:
                block, index = writes[0].block, writes[0].index
                instruction = self.problem.function.blocks[block].instructions[index]
                if (
                    instruction.opcode in self.problem.target.constant_opcodes
                    and not instruction.uses
                    and len(instruction.definitions) == 1
                    and instruction.definitions[0].location.count == len(each.unit.lanes)
                ):
                    found[number] = At(block, index)
        return found


def narrowed_classes(
    problem: AllocationProblem,
) -> tuple[list[RegisterClass], frozenset[int]]:
    """All classes, narrowed to AGPRs for registers that fit there; and these registers."""
    function = problem.function
    classes = list(function.virtual_registers)
    budgets = {file.name: file.count for file in function.files}
    room = available(problem, [ACCUMULATORS])
    curve = [0] * len(problem.liveness.points)
    spans = _spans(problem)
    found = []
    for register, register_class in enumerate(classes):
        if ACCUMULATORS not in register_class.files:
            continue
        own = spans.get(register, [])
        crowded = any(max(curve[a : b + 1]) + register_class.width > room for a, b in own)
        if crowded and len(register_class.files) > 1:
            continue
        for first, last in own:
            for point in range(first, last + 1):
                curve[point] += 1
        bases = {ACCUMULATORS: tuple(r for r in register_class.ranges if r.file == ACCUMULATORS)}
        classes[register] = problem.target.make_class(register_class.width, bases, budgets)
        found.append(register)
    return classes, frozenset(found)


def _spans(problem: AllocationProblem) -> dict[int, list[tuple[int, int]]]:
    """The runs of live points of each register that may be an AGPR, lane by lane."""
    offsets = [*problem.liveness.lane_offsets, problem.liveness.virtual_lane_count]
    owner = {
        lane: register
        for register, register_class in enumerate(problem.function.virtual_registers)
        if ACCUMULATORS in register_class.files
        for lane in range(offsets[register], offsets[register + 1])
    }
    spans: dict[int, list[tuple[int, int]]] = {}
    for lane, first, last, _ in problem.liveness.segments:
        if lane in owner:
            spans.setdefault(owner[lane], []).append((first, last))
    return spans
