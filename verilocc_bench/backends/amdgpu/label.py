"""The compiler's own assignment, read off its machine IR before and after allocation.

Both are stops of one compile. Printed machine IR that is parsed again is another compile: it
knows less (the order of predecessors, lanes that are undefined), and llc allocates it in
another way. So llc is run on the LLVM IR where a kernel comes from some.

LLVM keeps the order of instructions while it allocates. So walking both
versions in parallel gives each virtual register its physical one. Four
differences are harmless: a copy that became an identity and vanished, the KILL
that such a copy may leave, implicit operands appended after an instruction's own,
and the saves of SGPRs that the callers of a function need. Any other difference (a
copy, a spill, a rematerialization) means that a live range was split, and no mapping
can express that.
"""

from __future__ import annotations

from dataclasses import dataclass

from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.backends.amdgpu.kernel import MachineKernel
from verilocc_bench.backends.amdgpu.kernel_definition import lacks_definition, with_definitions
from verilocc_bench.backends.amdgpu.machine import (
    MachineFunction,
    MachineInstruction,
    MachineOperand,
    is_half,
    is_ignored,
)
from verilocc_bench.backends.amdgpu.normalize import NormalizedMachineFunction
from verilocc_bench.backends.amdgpu.read import MirFile
from verilocc_bench.backends.amdgpu.refusals import TAIL_CALLS
from verilocc_bench.backends.amdgpu.tools import (
    AFTER_ALLOCATION,
    COMPILE_OPTIONS,
    OWN_ALLOCATION_OPTIONS,
    llc_version,
    run_llc,
)
from verilocc_bench.edits import NamedAssignment
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.ir import Assignment, PhysicalRegister
from verilocc_bench.targets.amdgpu_classes import fixed_units
from verilocc_bench.targets.amdgpu_sub_registers import SUB_REGISTERS
from verilocc_bench.verification import FastVerifier

_SAVE, _RELOAD = "SI_SPILL_S32_TO_VGPR", "SI_RESTORE_S32_FROM_VGPR"
_RETURNS = TAIL_CALLS | {"SI_RETURN"}


class LiveRangesSplit(Exception):
    """The compiler split live ranges; the message names the first place that shows it."""


@dataclass(frozen=True, slots=True)
class _Pair:
    before: MachineInstruction
    after: MachineInstruction


@dataclass(frozen=True, slots=True)
class LlcInput:
    """What llc makes code of: a text, the name of its file, and llc's options."""

    text: str
    file_name: str
    options: tuple[str, ...]


def own_input(kernel: MachineKernel) -> LlcInput:
    """The input from which llc allocates a kernel's registers itself."""
    code = kernel.code
    if code.llvm_ir is not None:
        return LlcInput(code.llvm_ir, "kernel.ll", COMPILE_OPTIONS)
    text = with_definitions(code.text) if lacks_definition(code) else code.text
    return LlcInput(text, "kernel.mir", OWN_ALLOCATION_OPTIONS)


def compiler_answer(kernel: MachineKernel) -> tuple[NamedAssignment, str]:
    """llc's own assignment of a kernel, and its source, `llvm-greedy 22.1.8`.

    Raises InputError without llc, if llc splits live ranges, and if the assignment contradicts
    the printed machine IR: LLVM knows lanes to be undefined that its text shows as used, and
    copies to fixed registers to be of a value that is there already.
    """
    code, problem, source = kernel.code, kernel.problem, kernel.source
    own = own_input(kernel)
    options = (*own.options, AFTER_ALLOCATION)
    arch = problem.target.name
    allocated = run_llc(own.text, arch, "asm", options, input_name=own.file_name).decode()
    after = MirFile(allocated, f"llc's output for {source}").function(kernel.name)
    try:
        assignment = read_label(code.machine, after, code.normalized)
    except LiveRangesSplit as split:
        made = "" if code.llvm_ir is None else " (in the machine IR that llc makes of it)"
        raise InputError(f"llc splits live ranges: {split}{made}", source=source) from None
    except RejectedKernel as rejection:
        raise InputError(rejection.reason, source=source) from None
    answer = answer_from_assignment(problem, assignment)
    verdict = FastVerifier(problem).verify(answer)
    if not verdict.valid:
        raise InputError(
            "llc's own assignment contradicts the printed machine IR, which does not say all that "
            "LLVM knows of undefined lanes and of equal values: "
            f"{verdict.findings[0].message}",
            source=source,
        )
    return answer, f"llvm-greedy {llc_version()}"


def read_label(
    before: MachineFunction, after: MachineFunction, normalized: NormalizedMachineFunction
) -> Assignment:
    """The assignment that turns `before` into `after`.

    Raises LiveRangesSplit if the two differ by more than vanished identity
    copies, and RejectedKernel if they do not correspond at all.
    """
    if len(before.blocks) != len(after.blocks):
        raise RejectedKernel(
            "label-alignment",
            f"{len(before.blocks)} blocks before allocation, {len(after.blocks)} after",
        )
    registers: dict[str, PhysicalRegister] = {}
    copies: list[tuple[list[MachineInstruction], list[MachineInstruction]]] = []
    entry = after.blocks[0]
    for left_block, right_block in zip(before.blocks, after.blocks, strict=True):
        left = [i for i in left_block.instructions if not is_ignored(i)]
        right = [i for i in right_block.instructions if not is_ignored(i)]
        right = _without_saves(right, is_entry=right_block is entry)
        for pair, runs in _align(left, right):
            if pair is not None:
                for name, base in _bases(pair):
                    if registers.setdefault(name, base) != base:
                        # Rows of datasets say it in these words.
                        raise LiveRangesSplit(
                            f"%{name} has two registers, in line {pair.before.line} another"
                        )
            elif runs is not None:
                copies.append(runs)
    _match_copies(copies, registers)
    names = normalized.original_names
    missing = [name for name in names if name.removeprefix("%") not in registers]
    if missing:
        raise RejectedKernel("label-alignment", f"no register found for {missing[0]}")
    return {number: registers[name.removeprefix("%")] for number, name in enumerate(names)}


def _without_saves(
    instructions: list[MachineInstruction], *, is_entry: bool
) -> list[MachineInstruction]:
    """A block without the saves and reloads of SGPRs that the function's callers need.

    LLVM inserts them after it has allocated SGPRs, as lanes of a VGPR: the saves at the
    start of the function, the reloads before it returns. Where live ranges of the function
    itself were put into lanes, their saves and reloads stand elsewhere, too.
    """
    start, end = 0, len(instructions)
    while is_entry and start < end and instructions[start].opcode == _SAVE:
        start += 1
    if start < end and instructions[-1].opcode in _RETURNS:
        while end - 1 > start and instructions[end - 2].opcode == _RELOAD:
            end -= 1
        return [*instructions[start : end - 1], instructions[-1]]
    return instructions[start:]


_Runs = tuple[list[MachineInstruction], list[MachineInstruction]]


def _align(
    left: list[MachineInstruction], right: list[MachineInstruction]
) -> list[tuple[_Pair | None, _Runs | None]]:
    """Pairs of corresponding instructions, and the runs of copies between them."""
    found: list[tuple[_Pair | None, _Runs | None]] = []
    i = j = 0
    while i < len(left) or j < len(right):
        i_end, j_end = _copies_end(left, i), _copies_end(right, j)
        if i_end > i or j_end > j:
            found.append((None, (left[i:i_end], right[j:j_end])))
            i, j = i_end, j_end
            continue
        if i == len(left) or j == len(right) or left[i].opcode != right[j].opcode:
            there = right[j].opcode if j < len(right) else "nothing"
            here = left[i].opcode if i < len(left) else "the end of the block"
            line = left[i].line if i < len(left) else left[-1].line if left else 0
            raise LiveRangesSplit(f"{there} stands before {here} of line {line}")
        found.append((_Pair(left[i], right[j]), None))
        i, j = i + 1, j + 1
    return found


def _copies_end(instructions: list[MachineInstruction], start: int) -> int:
    end = start
    while end < len(instructions) and instructions[end].opcode in ("COPY", "KILL"):
        end += 1
    return end


def _bases(pair: _Pair) -> list[tuple[str, PhysicalRegister]]:
    before, after = pair.before.operands, pair.after.operands
    if len(after) < len(before):
        raise LiveRangesSplit(f"line {pair.before.line} has lost operands")
    bases: list[tuple[str, PhysicalRegister]] = []
    for (_, left), (_, right) in zip(before, after, strict=False):
        if not left.virtual:
            if left.name != right.name:
                raise LiveRangesSplit(f"${left.name} of line {pair.before.line} has changed")
            continue
        base = _base(left, right)
        if base is None:
            raise LiveRangesSplit(f"%{left.name} of line {pair.before.line} has no register")
        bases.append((left.name, base))
    return bases


def _base(left: MachineOperand, right: MachineOperand) -> PhysicalRegister | None:
    units = None if right.virtual else fixed_units(right.name)
    if units is None:
        return None
    first = _first_lane(left)
    if first is None or units.first < first or (is_half(left) and not is_half(right)):
        return None
    return PhysicalRegister(units.file, units.first - first)


def _match_copies(runs: list[_Runs], registers: dict[str, PhysicalRegister]) -> None:
    """Finds the copies that vanished, with the help of the other instructions.

    Copies within a run keep their order. First come the runs whose copies all
    remain; the others are tried again until no run changes.
    """
    waiting = runs
    while waiting:
        undecided: list[_Runs] = []
        before = len(registers)
        for left, right in waiting:
            if not _settle(left, right, registers):
                undecided.append((left, right))
        if len(undecided) == len(waiting) and len(registers) == before:
            line = undecided[0][0][0].line if undecided[0][0] else 0
            raise LiveRangesSplit(f"the copies near line {line} do not correspond")
        waiting = undecided


def _settle(
    left: list[MachineInstruction],
    right: list[MachineInstruction],
    registers: dict[str, PhysicalRegister],
) -> bool:
    kept = [i for i in right if i.opcode != "KILL"]
    if len(kept) > len([i for i in left if i.opcode == "COPY"]):
        raise LiveRangesSplit(f"{len(kept)} copies where there were {len(left)}")
    solutions = _solutions([i for i in left if i.opcode == "COPY"], kept, registers)
    if not solutions:
        raise LiveRangesSplit("a copy appeared that the function does not have")
    if len(solutions) > 1 and any(s != solutions[0] for s in solutions[1:]):
        return False
    registers.update(solutions[0])
    return True


def _solutions(
    left: list[MachineInstruction],
    right: list[MachineInstruction],
    known: dict[str, PhysicalRegister],
) -> list[dict[str, PhysicalRegister]]:
    """The assignments that follow from matching `right` to a subsequence of `left`; at most two.

    A copy without a match must have become an identity.
    """
    found: list[dict[str, PhysicalRegister]] = []

    def search(i: int, j: int, learned: dict[str, PhysicalRegister]) -> None:
        if len(found) > 1:
            return
        if i == len(left):
            if j == len(right) and learned not in found:
                found.append(learned)
            return
        if j < len(right):
            extended = _matched(_Pair(left[i], right[j]), known, learned)
            if extended is not None:
                search(i + 1, j + 1, extended)
        if len(left) - i > len(right) - j:
            extended = _vanished(left[i], known, learned)
            if extended is not None:
                search(i + 1, j, extended)

    search(0, 0, {})
    return found


def _matched(
    pair: _Pair, known: dict[str, PhysicalRegister], learned: dict[str, PhysicalRegister]
) -> dict[str, PhysicalRegister] | None:
    try:
        bases = _bases(pair)
    except LiveRangesSplit:
        return None
    extended = dict(learned)
    for name, base in bases:
        if known.get(name, base) != base or extended.setdefault(name, base) != base:
            return None
    return extended


def _vanished(
    copy: MachineInstruction,
    known: dict[str, PhysicalRegister],
    learned: dict[str, PhysicalRegister],
) -> dict[str, PhysicalRegister] | None:
    """The assignments that follow if `copy` is an identity; None if it cannot be one."""
    (_, target), (_, source) = copy.operands[0], copy.operands[1]
    places = [_place(operand, known, learned) for operand in (target, source)]
    if places[0] is not None and places[1] is not None:
        return learned if places[0] == places[1] else None
    extended = dict(learned)
    for operand, place in ((target, places[1]), (source, places[0])):
        if place is not None:
            first = _first_lane(operand)
            if first is None or place.index < first:
                return None
            extended[operand.name] = PhysicalRegister(place.file, place.index - first)
    return extended


def _place(
    operand: MachineOperand,
    known: dict[str, PhysicalRegister],
    learned: dict[str, PhysicalRegister],
) -> PhysicalRegister | None:
    """The unit where an operand of a copy starts, if it is known."""
    if not operand.virtual:
        units = fixed_units(operand.name)
        return None if units is None else PhysicalRegister(units.file, units.first)
    base = known.get(operand.name) or learned.get(operand.name)
    if base is None:
        return None
    first = _first_lane(operand)
    return None if first is None else PhysicalRegister(base.file, base.index + first)


def _first_lane(operand: MachineOperand) -> int | None:
    """The first lane of its register that an operand names; None for an unknown index."""
    if operand.sub_register is None:
        return 0
    lanes = SUB_REGISTERS.get(operand.sub_register)
    return None if lanes is None else lanes.first
