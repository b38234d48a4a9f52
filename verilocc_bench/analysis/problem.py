"""An allocation problem: a function with its analyses."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from verilocc_bench.analysis.liveness import Liveness, analyse_liveness
from verilocc_bench.analysis.loops import natural_loops
from verilocc_bench.analysis.placement import Placements
from verilocc_bench.analysis.pressure import Pressure, measure_pressure
from verilocc_bench.errors import InputError
from verilocc_bench.ir import (
    BaseRange,
    FixedUnits,
    Function,
    RegisterClass,
    VirtualLanes,
    instance_id,
    parse_function,
    print_function,
)
from verilocc_bench.targets import Target, get_target

Made = TypeVar("Made")


class AllocationProblem:
    """A function, its target and its analyses, each computed at first use and kept.

    Allocators and verifiers take it. It never changes.
    """

    def __init__(self, function: Function, normalized: str | None = None) -> None:
        self.function = function
        self.target: Target = get_target(function.target)
        self._normalized = normalized
        self._prepared: dict[Callable[[AllocationProblem], Any], Any] = {}
        _check_against_target(function, self.target)

    @classmethod
    def from_text(cls, normalized: str, source: str = "<text>") -> AllocationProblem:
        """The problem of a normalized text. Raises InputError for anything else."""
        return cls(parse_function(normalized, source), normalized)

    @cached_property
    def normalized(self) -> str:
        """The normalized text."""
        return self._normalized or print_function(self.function)

    @cached_property
    def id(self) -> str:
        """The id of the function: a hash of its normalized text."""
        return instance_id(self.normalized)

    def prepared(self, make: Callable[[AllocationProblem], Made]) -> Made:
        """What `make` says of the problem, asked once and kept with it: a verifier, say."""
        if make not in self._prepared:
            self._prepared[make] = make(self)
        found: Made = self._prepared[make]
        return found

    def occupancy(self, used: Mapping[str, int]) -> int:
        """The waves (AMD) or warps (NVIDIA) that can run with the registers `used`.

        `used[file]` is the highest index in use plus one. The result never
        exceeds the function's own limit.
        """
        by_registers, limit = self.target.occupancy(used), self.function.maximum_occupancy
        return by_registers if limit is None else min(by_registers, limit)

    @cached_property
    def liveness(self) -> Liveness:
        """The liveness of every lane. Raises InputError if the guards exceed the bounds."""
        try:
            return analyse_liveness(self.function)
        except InputError as error:
            raise error.located(f"function {self.id}") from None

    @cached_property
    def pressure(self) -> Pressure:
        """Register pressure at every point, in lanes."""
        return measure_pressure(self.function, self.target, self.liveness)

    @cached_property
    def fixed_ends(self) -> Mapping[str, int]:
        """For each file the end of the units that the function itself names, or 0."""
        ends = {file.name: 0 for file in self.function.files}
        locations: list[object] = list(self.function.live_ins)
        for _, _, instruction in self.function.instructions():
            locations += [o.location for o in instruction.definitions + instruction.uses]
            if instruction.guard is not None:
                locations.append(instruction.guard.location)
        for location in locations:
            if isinstance(location, FixedUnits):
                ends[location.file] = max(ends[location.file], location.first + location.count)
        return ends

    @cached_property
    def loop_depths(self) -> tuple[int, ...]:
        """The number of loops around every block."""
        blocks = range(len(self.function.blocks))
        return tuple(self.edge_depth(block, block) for block in blocks)

    @cached_property
    def loops(self) -> list[set[int]]:
        """The blocks of every natural loop."""
        return natural_loops([block.successors for block in self.function.blocks])

    def edge_depth(self, source: int, target: int) -> int:
        """The number of loops that contain both blocks, and so the edge between them."""
        return sum(source in body and target in body for body in self.loops)

    @cached_property
    def placements(self) -> Placements:
        """The unit numbers and the legal bases of each class."""
        return Placements(self.function, self.target)


def _check_against_target(function: Function, target: Target) -> None:
    """Raises InputError if the function does not fit the target or is not canonical."""
    _check_files(function, target)
    limit = function.maximum_occupancy
    if limit is not None and limit >= target.maximum_occupancy:
        raise InputError(
            f"expected an occupancy below {target.maximum_occupancy}, the most "
            f"{target.occupancy_unit} of {target.name}, not {limit}"
        )
    _check_classes(function, target)
    _check_fixed_units(function, target)
    _check_guards(function, target)
    for block, index, instruction in function.instructions():
        for use in instruction.uses:
            if use.tied_to is None:
                continue
            definition = instruction.definitions[use.tied_to]
            if use.location.count != definition.location.count:
                raise InputError(
                    f"bb{block} instruction {index} ties {use.location.count} lanes to "
                    f"{definition.location.count}"
                )
            tied = use.location, definition.location
            if all(isinstance(each, FixedUnits) for each in tied) and tied[0] != tied[1]:
                raise InputError(f"bb{block} instruction {index} ties two physical registers")


def _check_guards(function: Function, target: Target) -> None:
    for block, index, instruction in function.instructions():
        guard = instruction.guard
        if guard is None:
            continue
        place = f"bb{block} instruction {index}"
        location = guard.location
        width = 1
        if isinstance(location, FixedUnits):
            files: tuple[str, ...] = (location.file,)
        else:
            files = function.virtual_registers[location.register].files
            width = function.virtual_registers[location.register].width
        if width > 1 or not files or not target.guard_files.issuperset(files):
            raise InputError(
                f"{place} is guarded by no single register of "
                f"{' or '.join(sorted(target.guard_files)) or 'any file'} of {target.name}"
            )
        each = function.blocks[block]
        branches = index == len(each.instructions) - 1 and len(each.successors) == 2
        if branches and any(_overlap(o.location, location) for o in instruction.definitions):
            raise InputError(f"{place}, a branch, defines its own guard")


def _overlap(a: VirtualLanes | FixedUnits, b: VirtualLanes | FixedUnits) -> bool:
    if isinstance(a, FixedUnits) and isinstance(b, FixedUnits):
        same = a.file == b.file
    else:
        same = (
            isinstance(a, VirtualLanes) and isinstance(b, VirtualLanes) and a.register == b.register
        )
    return same and a.first < b.first + b.count and b.first < a.first + a.count


def _check_files(function: Function, target: Target) -> None:
    known = {file.name: file for file in target.files}
    for file in function.files:
        hardware = known.get(file.name)
        if hardware is None or file.unit_names != hardware.unit_names:
            raise InputError(f"{target.name} has no register file {file.name!r} of that form")
        if file.count > hardware.count:
            raise InputError(
                f"{target.name} has {hardware.count} registers in {file.name!r}, "
                f"the function's budget is {file.count}"
            )
    if [file.name for file in function.files] != list(known):
        raise InputError(f"expected the register files {', '.join(known)} of {target.name}")


def _check_classes(function: Function, target: Target) -> None:
    budgets = {file.name: file.count for file in function.files}
    for register_class in dict.fromkeys(function.virtual_registers):
        bases = {
            name: tuple(r for r in register_class.ranges if r.file == name) for name in budgets
        }
        expected = target.make_class(register_class.width, bases, budgets)
        if register_class != expected:
            raise InputError(
                f"class {register_class.name!r} goes beyond its budget, or is another "
                f"spelling of {expected.name!r}"
            )


def _check_fixed_units(function: Function, target: Target) -> None:
    budgets = {file.name: file.count for file in function.files}
    for units in function.reserved:
        if units.first + units.count > budgets[units.file]:
            raise InputError(f"the reserved {units.file}{units.first} is beyond the budget")
    order = list(budgets)
    masks = function.masks()
    for mask in masks:
        if any(u.file in target.guard_files for u in mask):
            raise InputError("a mask destroys a register that may guard instructions")
        ends = [(order.index(u.file), u.first + u.count) for u in mask]
        starts = [(order.index(u.file), u.first) for u in mask]
        if any(start < end for start, end in zip(starts[1:], ends, strict=False)):
            raise InputError("the registers of a mask must be in order, each once")
    for what, listed in (("reserved", function.reserved), ("live-in", function.live_ins)):
        keys = [(order.index(u.file), u.first, u.count) for u in listed]
        if keys != sorted(set(keys)):
            raise InputError(f"{what} registers must be in order, each once")
    fixed = [*function.reserved, *function.live_ins, *(units for mask in masks for units in mask)]
    for _, _, instruction in function.instructions():
        operands = instruction.definitions + instruction.uses
        locations = [operand.location for operand in operands]
        if instruction.guard is not None:
            locations.append(instruction.guard.location)
        fixed += [location for location in locations if isinstance(location, FixedUnits)]
    for units in dict.fromkeys(fixed):
        if units.first + units.count > target.file(units.file).count:
            raise InputError(f"{target.name} has no register {units.file}{units.first}")


def with_budgets(problem: AllocationProblem, budgets: Mapping[str, int]) -> AllocationProblem:
    """The problem with at most `budgets[file]` units of each file that is named there.

    Classes lose the bases beyond the budget. If a class loses all of them, the
    problem has no answer. The new problem does not list reserved units beyond
    the budget.
    """
    function, target = problem.function, problem.target
    files = tuple(
        replace(file, count=min(file.count, budgets.get(file.name, file.count)))
        for file in function.files
    )
    counts = {file.name: file.count for file in files}
    made: dict[RegisterClass, RegisterClass] = {}
    for register_class in set(function.virtual_registers):
        bases: dict[str, tuple[BaseRange, ...]] = {}
        for one in register_class.ranges:
            bases[one.file] = (*bases.get(one.file, ()), one)
        made[register_class] = target.make_class(register_class.width, bases, counts)
    reserved = [
        FixedUnits(units.file, units.first, min(units.count, counts[units.file] - units.first))
        for units in function.reserved
        if units.first < counts[units.file]
    ]
    return AllocationProblem(
        replace(
            function,
            files=files,
            reserved=tuple(reserved),
            virtual_registers=tuple(made[c] for c in function.virtual_registers),
        )
    )
