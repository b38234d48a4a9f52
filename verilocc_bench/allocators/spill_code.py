"""Spill code: a function in which some virtual registers live elsewhere.

A spilled register has a *home*: spill slots, or a register of another file.
Every instruction that reads it reads a temporary register instead, which is
filled just before. Every instruction that writes it writes a temporary, which is
stored just after. The method follows Chaitin et al., "Register Allocation via
Coloring" (Computer Languages 1981), with a temporary for each instruction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import (
    At,
    EditKind,
    Edits,
    Insertion,
    RegisterSpan,
    Replacement,
    SlotSpan,
    Transfer,
    VectorPlaces,
    last_place,
)
from verilocc_bench.ir import (
    BaseRange,
    Block,
    Function,
    Instruction,
    Operand,
    RegisterClass,
    VirtualLanes,
    format_class,
)
from verilocc_bench.targets import Target


@dataclass(frozen=True, slots=True)
class Home:
    """The home of a spilled register: slots from a number on, or a register of this class."""

    first_slot: int | None
    register_class: RegisterClass | None


@dataclass(frozen=True, slots=True)
class SpilledFunction:
    """The function with spill code, ready for allocation, and the edits that make it.

    Its virtual registers are the original's, then the new ones of the edits.
    """

    function: Function
    edits: Edits


def unspillable(problem: AllocationProblem) -> set[int]:
    """Registers that cannot be spilled, by their file or by the places of their accesses."""
    function, target = problem.function, problem.target
    found = {
        register
        for register, register_class in enumerate(function.virtual_registers)
        if not register_class.files or not target.spill_files.issuperset(register_class.files)
    }
    places = VectorPlaces(function, target)
    last_places = [last_place(function, target, block) for block in range(len(function.blocks))]
    for block, place, instruction in function.instructions():
        accessed = {register for register in _accesses(instruction) if register not in found}
        if place >= last_places[block]:
            found |= accessed
        elif accessed and any(
            [*places.objections(block, place), *places.objections(block, place + 1)]
        ):
            found |= {
                register
                for register in accessed
                if not target.masked_files.isdisjoint(function.virtual_registers[register].files)
            }
    return found


def _accesses(instruction: Instruction) -> dict[int, dict[VirtualLanes, list[int]]]:
    """For each virtual register the spans of its lanes, with the numbers of their operands."""
    found: dict[int, dict[VirtualLanes, list[int]]] = {}
    for number, operand in enumerate(instruction.definitions + instruction.uses):
        location = operand.location
        if isinstance(location, VirtualLanes):
            found.setdefault(location.register, {}).setdefault(location, []).append(number)
    if instruction.guard is not None and isinstance(instruction.guard.location, VirtualLanes):
        location = instruction.guard.location
        found.setdefault(location.register, {}).setdefault(location, []).append(-1)
    return found


def insert_spill_code(
    problem: AllocationProblem, homes: Mapping[int, Home], classes: Mapping[int, RegisterClass]
) -> SpilledFunction:
    """The function with the registers of `homes` spilled, and classes narrowed by `classes`."""
    inserter = _Inserter(problem, homes)
    blocks = tuple(inserter.block(index) for index in range(len(problem.function.blocks)))
    own = [classes.get(n, c) for n, c in enumerate(problem.function.virtual_registers)]
    files = {file.name: file for file in problem.function.files}
    edits = Edits(
        {number: format_class(c, files) for number, c in enumerate(inserter.new, len(own))},
        tuple(inserter.insertions),
        tuple(inserter.replacements),
    )
    registers = (*own, *inserter.new)
    function = replace(problem.function, virtual_registers=registers, blocks=blocks)
    return SpilledFunction(function, edits)


class _Inserter:
    def __init__(self, problem: AllocationProblem, homes: Mapping[int, Home]) -> None:
        self.function, self.target = problem.function, problem.target
        self.budgets = {file.name: file.count for file in problem.function.files}
        self.homes = homes
        self.new: list[RegisterClass] = []
        self.insertions: list[Insertion] = []
        self.replacements: list[Replacement] = []
        self.home_registers = {
            register: self.new_register(home.register_class)
            for register, home in sorted(homes.items())
            if home.register_class is not None
        }

    def new_register(self, register_class: RegisterClass) -> int:
        self.new.append(register_class)
        return len(self.function.virtual_registers) + len(self.new) - 1

    def block(self, index: int) -> Block:
        block = self.function.blocks[index]
        made: list[Instruction] = []
        for place, instruction in enumerate(block.instructions):
            spilled = {r: s for r, s in _accesses(instruction).items() if r in self.homes}
            if spilled:
                made += self.instruction(index, place, instruction, spilled)
            else:
                made.append(instruction)
        return Block(tuple(made), block.successors)

    def instruction(
        self,
        block: int,
        place: int,
        instruction: Instruction,
        spilled: Mapping[int, Mapping[VirtualLanes, list[int]]],
    ) -> list[Instruction]:
        """An instruction with the code that fills its temporaries and stores them."""
        operands = list(instruction.definitions + instruction.uses)
        definition_count = len(instruction.definitions)
        before: list[Instruction] = []
        after: list[Instruction] = []
        for register, spans in spilled.items():
            whole = VirtualLanes(register, 0, self.function.virtual_registers[register].width)
            hull = next(iter(spans)) if len(spans) == 1 else whole
            temporary = self.new_register(self.temporary_class(register, hull))
            for span, numbers in spans.items():
                lanes = VirtualLanes(temporary, span.first - hull.first, span.count)
                reads = [n for n in numbers if n >= definition_count and not operands[n].undef]
                writes = [n for n in numbers if n < definition_count]
                if reads or (writes and instruction.guard is not None):
                    before.append(self.fetch(At(block, place), lanes, span))
                if writes:
                    after.append(self.put(At(block, place + 1), lanes, span))
                for number in numbers:
                    operands[number] = replace(operands[number], location=lanes)
                    text = _span(lanes, self.new[temporary - len(self.function.virtual_registers)])
                    self.replacements.append(Replacement(block, place, number, text))
        changed = Instruction(
            instruction.opcode,
            tuple(operands[:definition_count]),
            tuple(operands[definition_count:]),
            instruction.guard,
            instruction.destroys,
        )
        return [*before, changed, *after]

    def temporary_class(self, register: int, hull: VirtualLanes) -> RegisterClass:
        own = self.function.virtual_registers[register]
        if hull.count == own.width:
            return own
        return natural_class(self.target, self.budgets, own.files, hull.count)

    def fetch(self, at: At, lanes: VirtualLanes, span: VirtualLanes) -> Instruction:
        destination = _span(lanes, self.class_of(lanes.register))
        if span.register in self.home_registers:
            home = replace(span, register=self.home_registers[span.register])
            self.insert(at, EditKind.MOVE, destination, _span(home, self.class_of(home.register)))
            return Instruction("MOVE", (Operand(lanes),), (Operand(home),))
        self.insert(at, EditKind.RELOAD, destination, self.slots(span))
        return Instruction("RELOAD", (Operand(lanes),))

    def put(self, at: At, lanes: VirtualLanes, span: VirtualLanes) -> Instruction:
        source = _span(lanes, self.class_of(lanes.register))
        if span.register in self.home_registers:
            home = replace(span, register=self.home_registers[span.register])
            self.insert(at, EditKind.MOVE, _span(home, self.class_of(home.register)), source)
            return Instruction("MOVE", (Operand(home),), (Operand(lanes),))
        self.insert(at, EditKind.SPILL, self.slots(span), source)
        return Instruction("SPILL", (), (Operand(lanes),))

    def insert(
        self, at: At, kind: EditKind, destination: RegisterSpan | SlotSpan, source: object
    ) -> None:
        assert isinstance(source, RegisterSpan | SlotSpan)
        self.insertions.append(Insertion(at, kind, (Transfer(destination, source),)))

    def slots(self, span: VirtualLanes) -> SlotSpan:
        first = self.homes[span.register].first_slot
        assert first is not None
        return SlotSpan(first + span.first, span.count)

    def class_of(self, register: int) -> RegisterClass:
        count = len(self.function.virtual_registers)
        if register < count:
            return self.function.virtual_registers[register]
        return self.new[register - count]


def natural_class(
    target: Target, budgets: Mapping[str, int], files: tuple[str, ...], width: int
) -> RegisterClass:
    """The class of all usual bases of some files."""
    bases: dict[str, tuple[BaseRange, ...]] = {}
    for name in files:
        step = target.file(name).usual_step(width)
        room = budgets[name] - width
        if room >= 0:
            bases[name] = (BaseRange(name, 0, room - room % step, step),)
    return target.make_class(width, bases, budgets)


def _span(lanes: VirtualLanes, register_class: RegisterClass) -> RegisterSpan:
    if lanes.count == register_class.width:
        return RegisterSpan(lanes.register)
    return RegisterSpan(lanes.register, lanes.first, lanes.first + lanes.count - 1)
