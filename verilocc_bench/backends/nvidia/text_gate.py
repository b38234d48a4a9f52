"""The gate's last step: compares the normalized text with the code that it was made of.

A text that is too weak passes everything after it: allocators, judges and labels know
nothing else. So the text is parsed again, the label puts its registers back, and

- each instruction of the text must name what the code names: opcode, definitions, uses,
  fixed registers, and the guard as its bits in the encoding have it; the class of each
  tuple must keep the alignment that the instruction needs;
- each block must lead where the code leads; reserved registers and budgets must be right;
- plain liveness of the text must agree with NVIDIA's own life ranges, in each row.

nvdisasm shows a register in use in a row if it is live on either side or defined there.
Under guards it guesses where a value begins. So two bounds are compared. What it shows
must be live in the text, where a guarded definition ends nothing. What is live in the
text it must show, upwards from each use to the next definition of the register, guarded
or of another value: where guards rule a way out, two values may lie in one register.
What the text never defines it must show at the entry. Registers that the text fixes are
not compared: nvdisasm does not mark them (predicates in masks), or keeps them in use to
the end (R1). Neither are rows that the entry does not reach.

Cost: a backward dataflow over blocks, and one walk over the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from verilocc_bench.backends.nvidia.context_code import copied_size, copies_of
from verilocc_bench.backends.nvidia.flow import control_flow, has_effect, returns
from verilocc_bench.backends.nvidia.life_ranges import LifeRanges
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassBlock,
    SassFunction,
    SassInstruction,
)
from verilocc_bench.backends.nvidia.text_gate_liveness import (
    ALWAYS_FIXED,
    LivenessCheck,
    place_of,
    rejected,
)
from verilocc_bench.ir import (
    Assignment,
    FixedUnits,
    Function,
    Instruction,
    Operand,
    VirtualLanes,
    parse_function,
)
from verilocc_bench.targets import get_target
from verilocc_bench.targets.nvidia import COMPILER_REGISTERS, RESERVED

_GUARD_BITS, _GUARD_NEGATION = 12, 15
_NO_GUARD = 7


def check_text(
    text: str,
    label: Assignment,
    function: SassFunction,
    ranges: LifeRanges,
    register_limit: int,
) -> Function:
    """The function of a normalized text. Raises RejectedKernel if it contradicts its code.

    `label` is the compiler's own assignment. `ranges` are NVIDIA's life ranges of
    `function`, one row for each instruction but trailing NOPs (as check_marks demands).
    """
    subject = parse_function(text, "the normalized text")
    _check_header(subject, function, register_limit)
    for number, register_class in enumerate(subject.virtual_registers):
        # A class has no base where the budget has no room for it.
        if register_class.files not in ((), (label[number].file,)):
            files = " and ".join(register_class.files)
            reason = f"%{number} may lie in {files}, the code has it in {label[number].file}"
            raise rejected(function, "", reason)
    blocks = control_flow(function)
    indices = [
        [i for i in block.instructions if has_effect(function.instructions[i])] for block in blocks
    ]
    _InstructionCheck(subject, label, function).check(blocks, indices)
    copies, size = copies_of(blocks), copied_size(function)
    firsts = [copies[block.calls] * size for block in blocks]
    LivenessCheck(subject, label, function, ranges).check(indices, firsts)
    return subject


def _check_header(subject: Function, function: SassFunction, register_limit: int) -> None:
    reserved = {(u.file, u.first + n) for u in subject.reserved for n in range(u.count)}
    for units in RESERVED:
        for index in range(units.first, units.first + units.count):
            if (units.file, index) not in reserved:
                raise rejected(function, "", f"the text does not reserve {units.file}{index}")
    target = get_target(function.architecture)
    if subject.target != target.name:
        raise rejected(function, "", f"the text is for {subject.target}")
    for file in target.files:
        room = file.count
        if file.name == "R":
            room = min(room, max(0, register_limit - COMPILER_REGISTERS))
        found = subject.file(file.name).count
        if found != room:
            reason = f"the text allows {found} registers of {file.name}, not {room}"
            raise rejected(function, "", reason)
    if subject.live_ins:
        raise rejected(function, "", "the text has registers that are live into the entry")


class _InstructionCheck:
    """Compares blocks and instructions, one by one."""

    def __init__(self, subject: Function, label: Assignment, function: SassFunction) -> None:
        self.subject, self.label, self.function = subject, label, function

    def check(self, blocks: Sequence[SassBlock], indices: Sequence[Sequence[int]]) -> None:
        if len(self.subject.blocks) != len(blocks):
            raise rejected(
                self.function, "", f"{len(self.subject.blocks)} blocks, the code has {len(blocks)}"
            )
        for number, (block, own) in enumerate(zip(self.subject.blocks, blocks, strict=True)):
            for instruction, index in zip_longest(block.instructions, indices[number]):
                if instruction is None or index is None:
                    extra = "lacks an instruction" if instruction is None else "has one too many"
                    raise rejected(self.function, f", bb{number}", f"the text {extra}")
                self._check(instruction, self.function.instructions[index])
            if block.successors != own.successors or not self._branches_rightly(own, blocks):
                place = ""
                if own.instructions:
                    place = place_of(self.function.instructions[own.instructions[-1]])
                led = ", ".join(f"bb{each}" for each in block.successors) or "nowhere"
                raise rejected(
                    self.function, place, f"the text leads from bb{number} to {led}, the code not"
                )

    def _branches_rightly(self, block: SassBlock, blocks: Sequence[SassBlock]) -> bool:
        """False if a guarded jump does not lead to its label first, or to what follows next."""
        if len(block.successors) != 2:
            return True
        last = self.function.instructions[block.instructions[-1]]
        if last.target is None or last.guard is None:
            return True
        if returns(last):  # its label is the base of the return address
            return blocks[block.successors[1]].instructions[:1] == (block.instructions[-1] + 1,)
        starts = [blocks[each].instructions[:1] for each in block.successors]
        return starts == [(self.function.labels[last.target],), (block.instructions[-1] + 1,)]

    def _check(self, instruction: Instruction, code: SassInstruction) -> None:
        room = {file.name: file.count for file in self.subject.files}
        destroyed, owed = (
            {(u.file, u.first + n) for u in units for n in range(u.count)}
            for units in (instruction.destroys, code.destroys)
        )
        owed = {(file, index) for file, index in owed if index < room[file]}
        if instruction.opcode != code.opcode or destroyed != owed:
            raise rejected(self.function, place_of(code), f"the text has {instruction.opcode}")
        uses = list(code.uses)
        guard = code.encoding >> _GUARD_BITS & 7
        file = code.guard.file if code.guard is not None else "P"
        expected = "no guard"
        if guard != _NO_GUARD and code.is_conditional_branch:
            # Either value of the guard may branch, so the guard is only read.
            uses.insert(0, RegisterReference(file, guard, 1, -1))
        elif guard != _NO_GUARD:
            negated = code.encoding >> _GUARD_NEGATION & 1
            expected = f"@{'!' if negated else ''}{file}{guard}"
        if self._guard(instruction) != expected:
            raise rejected(
                self.function,
                place_of(code),
                f"the text has {self._guard(instruction)}, the code {expected}",
            )
        pairs = (
            ("definitions", instruction.definitions, code.definitions),
            ("uses", instruction.uses, uses),
        )
        for what, operands, references in pairs:
            for operand, reference in zip_longest(operands, references):
                if operand is None or reference is None:
                    raise rejected(
                        self.function,
                        place_of(code),
                        f"the text has {len(operands)} {what}, the code {len(references)}",
                    )
                self._check_operand(operand, reference, code)

    def _check_operand(
        self, operand: Operand, reference: RegisterReference, code: SassInstruction
    ) -> None:
        location = operand.location
        file, first, count = reference.file, reference.first, reference.count
        if isinstance(location, FixedUnits):
            same = location.file == file and location.first == first
        else:
            base = self.label[location.register]
            same = base.file == file and base.index + location.first == first
        marked = operand.undef or operand.early_clobber or operand.implicit
        if not same or location.count != count or marked or operand.tied_to is not None:
            reason = f"the text has {self._named(location)}, the code {_name(file, first, count)}"
            raise rejected(self.function, place_of(code), reason)
        if isinstance(location, FixedUnits):
            return
        if reference.fixed or (file, first) == ALWAYS_FIXED:
            raise rejected(
                self.function, place_of(code), f"the text does not fix {_name(file, first, count)}"
            )
        register_class = self.subject.virtual_registers[location.register]
        if not all(
            (each.first + location.first) % reference.step == 0
            and (each.step % reference.step == 0 or each.last == each.first)
            for each in register_class.ranges
        ):
            reason = f"the class {register_class.name} does not align {_name(file, first, count)}"
            raise rejected(self.function, place_of(code), reason)

    def _guard(self, instruction: Instruction) -> str:
        if instruction.guard is None:
            return "no guard"
        negation = "!" if instruction.guard.negated else ""
        return f"@{negation}{self._named(instruction.guard.location)}"

    def _named(self, location: VirtualLanes | FixedUnits) -> str:
        """The registers of an operand under the label."""
        if isinstance(location, FixedUnits):
            return _name(location.file, location.first, location.count)
        base = self.label[location.register]
        return _name(base.file, base.index + location.first, location.count)


def _name(file: str, first: int, count: int) -> str:
    more = f" and {count - 1} more" if count > 1 else ""
    return f"{file}{first}{more}"
