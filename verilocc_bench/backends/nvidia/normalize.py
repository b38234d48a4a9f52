"""Turns SASS into the IR of allocation problems, with the compiler's own assignment.

It drops everything that allocation cannot depend on: immediates, constant banks,
addresses, the constants RZ, URZ, PT and UPT, convergence barriers, NOPs,
instructions under @!PT, and code that the entry does not reach. R1, the stack
pointer, is fixed. Virtual registers are numbered by their first place in the text,
so the compiler's registers leave no trace in it. The copies of a subroutine (flow) have
the same instructions, with the same virtual registers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verilocc_bench.backends.nvidia.flow import control_flow, has_effect
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassBlock,
    SassFunction,
    SassInstruction,
)
from verilocc_bench.backends.nvidia.webs import (
    GUARD,
    ReferenceKey,
    ReferencePlace,
    WebGroup,
    WebGroups,
    find_webs,
    guard_reference,
)
from verilocc_bench.ir import (
    Assignment,
    BaseRange,
    Block,
    FixedUnits,
    Function,
    Guard,
    Instruction,
    Operand,
    PhysicalRegister,
    RegisterClass,
    VirtualLanes,
)
from verilocc_bench.targets import get_target
from verilocc_bench.targets.nvidia import RESERVED
from verilocc_bench.targets.nvidia_budget import nameable_registers
from verilocc_bench.targets.nvidia_calls import destroyed_units


@dataclass(frozen=True, slots=True)
class NormalizedSass:
    """A function of the IR, and the places of its virtual registers in the code.

    `places` maps references of instructions (see webs.ReferenceKey) to virtual
    registers and the first lane. `assignment` is the compiler's own.
    """

    name: str
    function: Function
    assignment: Assignment
    places: Mapping[ReferenceKey, VirtualLanes]

    @property
    def original_names(self) -> tuple[str, ...]:
        """The compiler's register for each virtual register."""
        bases = (self.assignment[number] for number in range(len(self.function.virtual_registers)))
        return tuple(f"{base.file}{base.index}" for base in bases)


def normalize_sass(function: SassFunction, register_limit: int) -> NormalizedSass:
    """The allocation problem of one SASS function.

    `register_limit` is the number of registers that a thread may have, with those
    that ptxas adds to the ones it names. Raises RejectedKernel if the code cannot
    be analysed.
    """
    blocks = control_flow(function)
    webs = find_webs(function, blocks)
    return _SassNormalizer(function, blocks, webs, register_limit).normalize()


class _SassNormalizer:
    def __init__(
        self, function: SassFunction, blocks: tuple[SassBlock, ...], webs: WebGroups, limit: int
    ) -> None:
        self.sass, self.blocks, self.webs = function, blocks, webs
        self.target = get_target(function.architecture)
        self.budgets = {file.name: file.count for file in self.target.files}
        self.budgets["R"] = nameable_registers(min(self.budgets["R"], limit))
        self.places: dict[ReferenceKey, VirtualLanes] = {}
        self.classes: dict[tuple[str, int, int, int], RegisterClass] = {}

    def normalize(self) -> NormalizedSass:
        blocks = tuple(
            Block(
                tuple(
                    self._instruction(index, self.sass.instructions[index])
                    for index in block.instructions
                    if has_effect(self.sass.instructions[index])
                ),
                block.successors,
            )
            for block in self.blocks
        )
        # Groups are numbered by their first place in the code, as virtual registers in the text.
        groups = self.webs.groups
        function = Function(
            target=self.target.name,
            files=tuple(file.with_budget(self.budgets[file.name]) for file in self.target.files),
            reserved=RESERVED,
            virtual_registers=tuple(self._class(group) for group in groups),
            live_ins=(),
            blocks=blocks,
        )
        assignment = {
            number: PhysicalRegister(group.file, group.base) for number, group in enumerate(groups)
        }
        return NormalizedSass(self.sass.name, function, assignment, self.places)

    def _class(self, group: WebGroup) -> RegisterClass:
        key = (group.file, group.width, group.first, group.step)
        if key not in self.classes:
            bases = BaseRange(group.file, group.first, self.budgets[group.file], group.step)
            self.classes[key] = self.target.make_class(
                group.width, {group.file: (bases,)}, self.budgets
            )
        return self.classes[key]

    def _instruction(self, index: int, instruction: SassInstruction) -> Instruction:
        guard = None
        conditions: tuple[Operand, ...] = ()
        reference = guard_reference(instruction)
        if reference is not None and instruction.guard is not None:
            location = self._location((index, GUARD), reference)
            if instruction.is_conditional_branch:
                conditions = (Operand(location),)
            else:
                guard = Guard(location, instruction.guard.negated)
        count = len(instruction.definitions)
        definitions = tuple(
            Operand(self._location((index, number), reference))
            for number, reference in enumerate(instruction.definitions)
        )
        uses = tuple(
            Operand(self._location((index, number), reference))
            for number, reference in enumerate(instruction.uses, count)
        )
        destroys = destroyed_units(self.budgets["R"]) if instruction.destroys else ()
        return Instruction(instruction.opcode, definitions, (*conditions, *uses), guard, destroys)

    def _location(
        self, key: ReferenceKey, reference: RegisterReference
    ) -> VirtualLanes | FixedUnits:
        place: ReferencePlace | None = self.webs.places.get(key)
        if place is None:
            return FixedUnits(reference.file, reference.first, reference.count)
        lanes = VirtualLanes(place.group, place.offset, reference.count)
        self.places[key] = lanes
        return lanes
