"""The code that LLVM inserts if live ranges do not fit: the reference on gfx90a and gfx942.

Every instruction of the machine IR gets a number (`debug-instr-number`, which
LLVM carries along and which changes no code). llc allocates registers, and
instructions without a number are then LLVM's own: copies, spills, reloads,
constants made again. Missing numbers are copies that became identities, and
definitions that became useless. Blocks correspond by their order, which
allocation keeps, though it may renumber them.

A spill counts as a spill wherever it ends: LLVM decides only later if a vector
register goes to scratch memory or to an unused AGPR. `scratch_bytes` tells.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.inserted_code import InsertedCode, InsertedKind, add_up
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT
from verilocc_bench.backends.amdgpu.machine import (
    MachineBlock,
    MachineFunction,
    MachineInstruction,
    MachineOperand,
    is_ignored,
)
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.tools import (
    OWN_ALLOCATION_OPTIONS,
    llc_version,
    machine_code_counts,
    run_llc,
)
from verilocc_bench.errors import InputError
from verilocc_bench.targets.amdgpu_classes import class_bases, fixed_units
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS

# AMDGPU allocates in three rounds (SGPRs, whole-wave registers, VGPRs): the
# third virtual register rewriter is the one that ends it.
ALLOCATION_OPTIONS = (*OWN_ALLOCATION_OPTIONS, "-stop-after=virtregrewriter,2")
"""What llc is asked for, up to allocation and to the end; spills to AGPRs are as LLVM has them by
default."""

_BOOKKEEPING = {"KILL", "IMPLICIT_DEF"}
_NUMBER = re.compile(r" debug-instr-number (\d+)")
_TAIL = re.compile(r" :: |,? debug-location ")
_QUOTED = re.compile(r'"[^"]*"')
_SPILL = re.compile(r"SI_SPILL_(?P<scalar>S(?=\d))?\w+_(?P<action>SAVE|RESTORE)")
_COPIES = re.compile(r"COPY|V_ACCVGPR_(READ|WRITE|MOV)_B32\w*")


_SPILLS = {
    (False, "SAVE"): InsertedKind.VECTOR_SPILL,
    (False, "RESTORE"): InsertedKind.VECTOR_RELOAD,
    (True, "SAVE"): InsertedKind.SCALAR_SPILL,
    (True, "RESTORE"): InsertedKind.SCALAR_RELOAD,
}


@dataclass(frozen=True, slots=True)
class ReferenceSplitting:
    """The code that LLVM inserted into a function.

    `blocks[b]` holds what it inserted into block b of the problem, by kind.
    `vanished` are the function's own copies that became identities, `removed`
    its other instructions that are gone (such as a constant that is made again
    elsewhere). `scratch_bytes` is the stack of the final code; None if the
    function is not a kernel.
    """

    blocks: tuple[Mapping[InsertedKind, InsertedCode], ...]
    vanished: InsertedCode
    removed: InsertedCode
    scratch_bytes: int | None
    llc_version: str

    @property
    def kinds(self) -> dict[InsertedKind, InsertedCode]:
        """What was inserted in all blocks, by kind; kinds that do not occur are left out."""
        found = {
            kind: add_up(block.get(kind, InsertedCode()) for block in self.blocks)
            for kind in InsertedKind
        }
        return {kind: counts for kind, counts in found.items() if counts}

    @property
    def total(self) -> InsertedCode:
        """All that was inserted."""
        return add_up(self.kinds.values())


def reference_splitting(
    text: str, machine: MachineFunction, problem: AllocationProblem, source: str = "<mir>"
) -> ReferenceSplitting:
    """What LLVM's own allocation inserts into a function of a machine IR file.

    `machine` is parsed from `text`, and `problem` is made from it. Raises
    InputError without llc, and LlcFailed if it refuses the code.
    """
    arch = problem.target.name
    numbered, own = _number(text, machine)
    allocated = run_llc(numbered, arch, "asm", ALLOCATION_OPTIONS).decode()
    after = parse_mir(allocated, source, machine.name).functions[0]
    if len(after.blocks) != len(machine.blocks):
        message = f"LLVM made {len(after.blocks)} blocks of {len(machine.blocks)}"
        raise InputError(message, source=source)
    weights = [LOOP_WEIGHT**depth for depth in problem.loop_depths]
    found, kept = _inserted(after, allocated.split("\n"), weights)
    vanished = removed = InsertedCode()
    for number, (block, instruction) in own.items():
        if number in kept:
            continue
        lost = InsertedCode.one(_lanes(instruction.operands[0][1], machine.classes), weights[block])
        if instruction.opcode == "COPY":
            vanished += lost
        else:
            removed += lost
    assembly = run_llc(text, arch, "asm", OWN_ALLOCATION_OPTIONS).decode()
    scratch_bytes = machine_code_counts(assembly, machine.name).get("scratch_bytes")
    return ReferenceSplitting(found, vanished, removed, scratch_bytes, llc_version())


def inserted_between(
    before: MachineFunction, after: MachineFunction, loop_depths: Sequence[int]
) -> tuple[dict[InsertedKind, InsertedCode], ...]:
    """What the second text of a function has more than the first, by block and kind.

    This is for texts without numbers. Spills and reloads are exact. Copies and
    other instructions are lower bounds, because one that is gone from a block
    hides a new one. Raises InputError if blocks do not correspond.
    """
    if not len(before.blocks) == len(after.blocks) == len(loop_depths):
        raise InputError(f"{len(after.blocks)} blocks stand for {len(before.blocks)}")
    found = []
    for old, new, depth in zip(before.blocks, after.blocks, loop_depths, strict=True):
        left = Counter(
            (each.opcode, _lanes(each.operands[0][1], before.classes))
            for each in _members(old)
            if _is_code(each)
        )
        counts: dict[InsertedKind, InsertedCode] = {}
        for instruction in _members(new):
            if not _is_code(instruction):
                continue
            kind, lanes = _kind(instruction)
            if left[instruction.opcode, lanes] > 0:
                left[instruction.opcode, lanes] -= 1
                continue
            one = InsertedCode.one(lanes, LOOP_WEIGHT**depth)
            counts[kind] = counts.get(kind, InsertedCode()) + one
        found.append(counts)
    return tuple(found)


_Own = dict[int, tuple[int, MachineInstruction]]
"""The block and the instruction of each number."""


def _number(text: str, machine: MachineFunction) -> tuple[str, _Own]:
    """The text with a number on every instruction of the function, and the numbers' meaning."""
    lines = text.split("\n")
    own: _Own = {}
    for index, block in enumerate(machine.blocks):
        for instruction in _members(block):
            if not _is_code(instruction):
                continue
            number = len(own) + 1
            own[number] = (index, instruction)
            at = instruction.line - 1
            lines[at] = _numbered(lines[at], instruction.opcode, number)
    return "\n".join(lines), own


def _members(block: MachineBlock) -> Iterator[MachineInstruction]:
    """The instructions of a block, members of bundles in place of their heads."""
    for instruction in block.instructions:
        yield from instruction.bundled or (instruction,)


def _is_code(instruction: MachineInstruction) -> bool:
    """True if an instruction does something to a register.

    LLVM does not accept numbers on other instructions: the barriers of its
    scheduler have no register.
    """
    return bool(instruction.operands) and not (
        instruction.opcode in _BOOKKEEPING or is_ignored(instruction)
    )


def _numbered(line: str, opcode: str, number: int) -> str:
    """A line of machine IR with a number behind its operands."""
    plain = _QUOTED.sub(lambda match: "_" * len(match[0]), line)
    tail = _TAIL.search(plain)
    end = tail.start() if tail else len(line.rstrip())
    comma = "" if line[:end].endswith(opcode) else ","
    return f"{line[:end]}{comma} debug-instr-number {number}{line[end:]}"


_Inserted = tuple[dict[InsertedKind, InsertedCode], ...]


def _inserted(
    after: MachineFunction, lines: list[str], weights: list[int]
) -> tuple[_Inserted, set[int]]:
    """Instructions without a number, by block and kind; and the remaining numbers."""
    blocks: list[dict[InsertedKind, InsertedCode]] = []
    kept: set[int] = set()
    for block, weight in zip(after.blocks, weights, strict=True):
        counts: dict[InsertedKind, InsertedCode] = {}
        for instruction in _members(block):
            if not _is_code(instruction):
                continue
            number = _NUMBER.search(lines[instruction.line - 1])
            if number is not None:
                kept.add(int(number[1]))
                continue
            kind, lanes = _kind(instruction)
            counts[kind] = counts.get(kind, InsertedCode()) + InsertedCode.one(lanes, weight)
        blocks.append(counts)
    return tuple(blocks), kept


def _kind(instruction: MachineInstruction) -> tuple[InsertedKind, int]:
    """What an inserted instruction does, to how many lanes."""
    units = [fixed_units(operand.name) for _, operand in instruction.operands]
    value = units[0]  # what is copied, spilled, reloaded or made again comes first
    lanes = 1 if value is None else value.count
    if instruction.opcode == "SI_SPILL_S32_TO_VGPR":
        return InsertedKind.SCALAR_SPILL, 1
    if instruction.opcode == "SI_RESTORE_S32_FROM_VGPR":
        return InsertedKind.SCALAR_RELOAD, 1
    if spill := _SPILL.fullmatch(instruction.opcode):
        return _SPILLS[spill["scalar"] is not None, spill["action"]], lanes
    if not _COPIES.fullmatch(instruction.opcode):
        return InsertedKind.REMATERIALIZED, lanes
    files = {each.file for each in units if each is not None}
    if "a" in files:
        return InsertedKind.ACCUMULATOR_COPY, lanes
    return InsertedKind.VECTOR_COPY if "v" in files else InsertedKind.SCALAR_COPY, lanes


def _lanes(operand: MachineOperand, classes: Mapping[str, str]) -> int:
    """The lanes of an operand of the function; a register outside allocation counts as one."""
    if operand.sub_register and (lanes := SUB_REGISTERS.get(operand.sub_register)):
        return lanes.count
    if operand.virtual:
        bases = class_bases(classes[operand.name])
        return bases[0] if bases else 1
    units = fixed_units(operand.name)
    return units.count if units else 1
