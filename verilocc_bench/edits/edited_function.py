"""Reads the edits of an answer against the function and its target.

An edit that does not fit the function becomes a finding and is left out. The checker
judges everything that depends on the answer's registers, such as the files of a move.
Cost: linear in the edits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.edits.records import (
    At,
    EditKind,
    Edits,
    Insertion,
    OnEdge,
    RegisterSpan,
    Replacement,
    SlotSpan,
)
from verilocc_bench.errors import InputError, VerilocError
from verilocc_bench.ir import (
    Function,
    Instruction,
    Operand,
    RegisterClass,
    VirtualLanes,
    parse_class,
)
from verilocc_bench.targets import Target

GUARD = -1
"""The operand number of an instruction's guard."""

MAXIMUM_SLOTS = 4096


@dataclass(frozen=True, slots=True)
class Move:
    """A parallel move of (destination, source): all sources are read before any write."""

    pairs: tuple[tuple[VirtualLanes, VirtualLanes], ...]


@dataclass(frozen=True, slots=True)
class Spill:
    """Stores lanes of a register to spill slots."""

    slots: SlotSpan
    source: VirtualLanes


@dataclass(frozen=True, slots=True)
class Reload:
    """Loads lanes of a register from spill slots."""

    destination: VirtualLanes
    slots: SlotSpan


@dataclass(frozen=True, slots=True)
class Rematerialize:
    """Makes the constant of instruction (block, index) again."""

    destination: VirtualLanes
    block: int
    index: int


_Edit = TypeVar("_Edit", bound=Insertion | Replacement)

Action = Move | Spill | Reload | Rematerialize


@dataclass(frozen=True, slots=True)
class EditedFunction:
    """A function and its edits; without edits all mappings but `registers` are empty.

    `registers` has the class of every virtual register, including new ones.
    `before[block, index]` lists the actions before an instruction, or at the block's
    end, in order. `on_edge[source, target]` lists the actions on an edge.
    `replaced[block, index, operand]` are the lanes that an operand reads or writes
    instead of its own; its value is still the value of its own lanes.
    """

    function: Function
    registers: Mapping[int, RegisterClass]
    before: Mapping[tuple[int, int], tuple[Action, ...]]
    on_edge: Mapping[tuple[int, int], tuple[Action, ...]]
    replaced: Mapping[tuple[int, int, int], VirtualLanes]


def replaced_function(edited: EditedFunction) -> tuple[Function, dict[int, int]]:
    """The function with its operands replaced and nothing inserted.

    Also returns the number of every virtual register in it; new registers follow the
    function's own.
    """
    numbers = {old: new for new, old in enumerate(sorted(edited.registers))}

    def operand(operand: Operand, key: tuple[int, int, int]) -> Operand:
        lanes = edited.replaced.get(key)
        if lanes is None:
            return operand
        return replace(operand, location=VirtualLanes(numbers[lanes.register], *_span(lanes)))

    def instruction(block: int, index: int, old: Instruction) -> Instruction:
        count = len(old.definitions)
        guard = old.guard
        lanes = edited.replaced.get((block, index, GUARD))
        if guard is not None and lanes is not None:
            guard = replace(guard, location=VirtualLanes(numbers[lanes.register], *_span(lanes)))
        return Instruction(
            old.opcode,
            tuple(operand(o, (block, index, n)) for n, o in enumerate(old.definitions)),
            tuple(operand(o, (block, index, n)) for n, o in enumerate(old.uses, count)),
            guard,
            old.destroys,
        )

    blocks = tuple(
        replace(
            block,
            instructions=tuple(instruction(b, i, old) for i, old in enumerate(block.instructions)),
        )
        for b, block in enumerate(edited.function.blocks)
    )
    registers = tuple(edited.registers[old] for old in numbers)
    return replace(edited.function, virtual_registers=registers, blocks=blocks), numbers


def _span(lanes: VirtualLanes) -> tuple[int, int]:
    return lanes.first, lanes.count


def edit_function(
    function: Function, target: Target, edits: Edits | None = None
) -> tuple[EditedFunction, tuple[Finding, ...]]:
    """The edited function, and a finding of kind `invalid_edit` for every invalid edit."""
    editor = _EditReader(function, target)
    if edits is not None:
        editor.add_registers(edits.new)
        for number, insertion in enumerate(edits.insertions):
            editor.guarded(f"insertion {number}", insertion, editor.insert)
        for number, replacement in enumerate(edits.replacements):
            editor.guarded(f"replacement {number}", replacement, editor.replace)
    edited = EditedFunction(
        function,
        editor.registers,
        {place: tuple(actions) for place, actions in editor.before.items()},
        {edge: tuple(actions) for edge, actions in editor.on_edge.items()},
        editor.replaced,
    )
    return edited, tuple(editor.findings)


def last_place(function: Function, target: Target, block: int) -> int:
    """The last place in a block with no terminator before it."""
    each = function.blocks[block]
    last = len(each.instructions) - (each.branch_guard is not None)
    for index, instruction in enumerate(each.instructions[:last]):
        if target.terminators.fullmatch(instruction.opcode):
            return index
    return last


class _InvalidEdit(VerilocError):
    """The reason why an edit is invalid."""


class _EditReader:
    def __init__(self, function: Function, target: Target) -> None:
        self.function, self.target = function, target
        self.registers = dict(enumerate(function.virtual_registers))
        self.before: dict[tuple[int, int], list[Action]] = {}
        self.on_edge: dict[tuple[int, int], list[Action]] = {}
        self.replaced: dict[tuple[int, int, int], VirtualLanes] = {}
        self.findings: list[Finding] = []
        self.classes = {c.name: c for c in function.virtual_registers}
        self.last_places: dict[int, int] = {}

    def reject(self, message: str, *, at: At | None = None, register: int | None = None) -> None:
        self.findings.append(
            Finding(
                FindingKind.INVALID_EDIT,
                message,
                None if at is None else at.block,
                None if at is None else at.index,
                () if register is None else (f"%{register}",),
            )
        )

    def guarded(self, what: str, edit: _Edit, apply: Callable[[_Edit], None]) -> None:
        """Applies an edit, or adds a finding if it is invalid."""
        try:
            apply(edit)
        except _InvalidEdit as error:
            at = At(edit.block, edit.index) if isinstance(edit, Replacement) else edit.where
            self.reject(f"{what}: {error}", at=at if isinstance(at, At) else None)

    def add_registers(self, new: Mapping[int, str]) -> None:
        count = len(self.function.virtual_registers)
        for number, spelled in sorted(new.items()):
            if number < count:
                self.reject(f"%{number} is not a new virtual register", register=number)
                continue
            try:
                self.registers[number] = self.class_of(spelled)
            except (InputError, _InvalidEdit) as error:
                self.reject(f"%{number}: {error}", register=number)

    def class_of(self, spelled: str) -> RegisterClass:
        """A class of the function by its name, or one of the target spelled as in a header."""
        if spelled in self.classes:
            return self.classes[spelled]
        files = {file.name: file for file in self.function.files}
        parsed = parse_class(spelled, files)
        bases = {name: tuple(r for r in parsed.ranges if r.file == name) for name in files}
        budgets = {name: file.count for name, file in files.items()}
        known = self.target.make_class(parsed.width, bases, budgets)
        if known != parsed:
            raise _InvalidEdit(f"the class {spelled[:40]!r} is another spelling of {known.name!r}")
        self.classes[spelled] = parsed
        return parsed

    def insert(self, insertion: Insertion) -> None:
        where = insertion.where
        actions: list[Action]
        if isinstance(where, OnEdge):
            blocks = self.function.blocks
            known = 0 <= where.source < len(blocks)
            if not known or where.target not in blocks[where.source].successors:
                raise _InvalidEdit(f"there is no edge from bb{where.source} to bb{where.target}")
            action = self.action(insertion)
            actions = self.on_edge.setdefault((where.source, where.target), [])
        else:
            last = self.last_place(where.block)
            if not 0 <= where.index <= last:
                raise _InvalidEdit(f"in bb{where.block} the last place to insert is {last}")
            action = self.action(insertion)
            actions = self.before.setdefault((where.block, where.index), [])
        actions.append(action)

    def last_place(self, block: int) -> int:
        """See the function `last_place`. Raises _InvalidEdit for an unknown block."""
        if not 0 <= block < len(self.function.blocks):
            raise _InvalidEdit(f"there is no block bb{block}")
        if block not in self.last_places:
            self.last_places[block] = last_place(self.function, self.target, block)
        return self.last_places[block]

    def action(self, insertion: Insertion) -> Action:
        if insertion.kind is EditKind.MOVE:
            return Move(tuple(self.pair(t.destination, t.source) for t in insertion.transfers))
        (transfer,) = insertion.transfers
        destination, source = transfer.destination, transfer.source
        if isinstance(destination, SlotSpan):
            assert isinstance(source, RegisterSpan)
            lanes = self.lanes(source)
            self.check_slots(destination, lanes)
            return Spill(destination, lanes)
        lanes = self.lanes(destination)
        if isinstance(source, SlotSpan):
            self.check_slots(source, lanes)
            return Reload(lanes, source)
        assert isinstance(source, At)
        return self.rematerialization(lanes, source)

    def pair(self, destination: object, source: object) -> tuple[VirtualLanes, VirtualLanes]:
        assert isinstance(destination, RegisterSpan)
        assert isinstance(source, RegisterSpan)
        pair = self.lanes(destination), self.lanes(source)
        if pair[0].count != pair[1].count:
            raise _InvalidEdit(f"{destination} and {source} are not of one size")
        return pair

    def check_slots(self, slots: SlotSpan, lanes: VirtualLanes) -> None:
        if slots.first < 0 or slots.first + slots.count > MAXIMUM_SLOTS:
            raise _InvalidEdit(f"{slots} is beyond the last, slot{MAXIMUM_SLOTS - 1}")
        if slots.count != lanes.count:
            raise _InvalidEdit(f"{slots} has {slots.count} units, the register {lanes.count} lanes")

    def rematerialization(self, lanes: VirtualLanes, source: At) -> Rematerialize:
        instruction = self.instruction(source)
        if (
            instruction.opcode not in self.target.constant_opcodes
            or instruction.uses
            or instruction.guard is not None
            or len(instruction.definitions) != 1
        ):
            raise _InvalidEdit(
                f"bb{source.block} instruction {source.index} ({instruction.opcode}) "
                "is not a constant that can be made again"
            )
        count = instruction.definitions[0].location.count
        if count != lanes.count:
            raise _InvalidEdit(f"the constant has {count} lanes, the register {lanes.count}")
        return Rematerialize(lanes, source.block, source.index)

    def instruction(self, at: At) -> Instruction:
        blocks = self.function.blocks
        if not 0 <= at.block < len(blocks) or not 0 <= at.index < len(
            blocks[at.block].instructions
        ):
            raise _InvalidEdit(f"there is no instruction {at.index} in bb{at.block}")
        return blocks[at.block].instructions[at.index]

    def lanes(self, span: RegisterSpan) -> VirtualLanes:
        register_class = self.registers.get(span.register)
        if register_class is None:
            raise _InvalidEdit(f"there is no virtual register %{span.register}")
        if span.first is None:
            return VirtualLanes(span.register, 0, register_class.width)
        assert span.last is not None
        if not 0 <= span.first <= span.last < register_class.width:
            raise _InvalidEdit(f"%{span.register} has {register_class.width} lanes: {span}")
        return VirtualLanes(span.register, span.first, span.last - span.first + 1)

    def replace(self, replacement: Replacement) -> None:
        instruction = self.instruction(At(replacement.block, replacement.index))
        operands = instruction.definitions + instruction.uses
        if replacement.operand == GUARD and instruction.guard is not None:
            location = instruction.guard.location
        elif 0 <= replacement.operand < len(operands):
            location = operands[replacement.operand].location
        else:
            raise _InvalidEdit(f"{instruction.opcode} has no such operand")
        if not isinstance(location, VirtualLanes):
            raise _InvalidEdit(f"the operand of {instruction.opcode} is a physical register")
        lanes = self.lanes(replacement.span)
        if lanes.count != location.count:
            raise _InvalidEdit(f"the operand has {location.count} lanes, {replacement.span} others")
        key = (replacement.block, replacement.index, replacement.operand)
        if key in self.replaced:
            raise _InvalidEdit("the operand is replaced twice")
        self.replaced[key] = lanes
