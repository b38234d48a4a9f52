"""Distances in cycles between instructions, and the kinds of their accesses to registers.

An instruction of fixed latency reads and writes its registers some cycles after it is
issued. Nothing waits for it: the stall counts of the instructions behind it (bits 105
to 108 of the encoding) keep the next access far enough away. Two instructions are
issued at least the sum of the stall counts between them apart, each taken as 1 or more.

`recent_pairs` finds for each instruction those that may have been issued less than
HORIZON cycles before, over all paths, and the least distance: a forward dataflow in
which distances only shrink. Waits for barriers and branches that are taken cost more
cycles, which nothing promises; they count as their stall counts. A distance is *plain*
if neither lies between: then it is one that the compiler chose.

The classes of accesses follow the units of the machine (one for most integer
operations, one for multiply-add and single precision, one for half precision, one for
the uniform registers) and set apart what reads or writes in several steps: the operands
of matrix operations and the halves of wide products.

Source: Jia, Maggioni, Staiger and Scarpazza, arXiv 1804.06826, section 2.1 and chapter 4
(stall counts; latencies of Volta's instructions).

Cost: instructions times the instructions of HORIZON cycles, times a few passes in loops.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from verilocc_bench.backends.nvidia.architectures import ARCHITECTURES, operations
from verilocc_bench.backends.nvidia.flow import control_flow, opcode_stem
from verilocc_bench.backends.nvidia.records import SassBlock, SassFunction, SassInstruction
from verilocc_bench.backends.nvidia.webs import GUARD, guard_reference

HORIZON = 64
"""Cycles after which every instruction of fixed latency has read and written its registers.

The slowest of them, matrix products, take about 35 on this architecture."""


_INTEGER = operations(
    "BMSK F2FP FMNMX FSEL FSET FSETP IABS IADD3 IMNMX ISETP LEA LOP3 MOV PLOP3 PRMT PSETP SEL "
    "SGXT SHF"
)
_MULTIPLY_ADD = operations("FADD FFMA FMUL IMAD")
_HALF = operations("HADD2 HFMA2 HMNMX2 HMUL2 HSET2 HSETP2")
_SLOW_HALF = "HFMA2.MMA"
"""What uses its result stands 10 cycles behind it, and 4 to 6 behind others of its class."""
_UNIFORM = operations("UBMSK UIADD3 UIMNMX UISETP ULEA ULOP3 UMOV UPLOP3 UPRMT USEL USGXT USHF")
_MATRIX = operations("BMMA HMMA IMMA")
_MEMORY = operations("ATOM ATOMG ATOMS LD LDG LDGSTS LDL LDS LDSM RED REDG ST STG STL STS STSM")
_JUMPS = operations("BRA CALL EXIT")
_NO_LATENCY_MODIFIERS = operations("BF16 SAT S8 U8 S4 U4 ROW COL")
_SLOTS = "dabc"


@dataclass(frozen=True, slots=True)
class RegisterAccess:
    """One register of an instruction: how it is accessed, and where it is named.

    `access` is the class: of the unit, and of the operand where its time depends on it.
    `reference` and `offset` say which reference of the instruction (see
    webs.ReferenceKey) names it, and which of its registers it is.
    """

    access: str
    file: str
    reference: int
    offset: int
    register: int


@dataclass(frozen=True, slots=True)
class TimedAccesses:
    """The accesses of an instruction that distances decide.

    `reads` and `writes` have fixed latency: waits decide about the others. `overwrites`
    are all writes, as what may destroy the value of an earlier instruction.
    """

    reads: tuple[RegisterAccess, ...]
    writes: tuple[RegisterAccess, ...]
    overwrites: tuple[RegisterAccess, ...]


@dataclass(frozen=True, slots=True)
class RecentPair:
    """The one at `later` may be issued `cycles` after the one at `earlier`, or more.

    `plain` is the least plain distance, or None without one below HORIZON.
    """

    earlier: int
    later: int
    cycles: int
    plain: int | None


_State = dict[int, tuple[int, int]]
"""For each recent instruction the least distance, and the least plain one or HORIZON."""


def timed_accesses(instruction: SassInstruction, architecture: str = "sm_80") -> TimedAccesses:
    """The accesses of an instruction that distances decide; none if it never executes."""
    if instruction.never:
        return TimedAccesses((), (), ())
    variable = instruction.variable_latency
    unit = operation_class(instruction.opcode, ARCHITECTURES[architecture].alone)
    count = len(instruction.definitions)
    reads: list[RegisterAccess] = []
    guard = guard_reference(instruction)
    if guard is not None:
        reads.append(RegisterAccess(f"{unit} guard", guard.file, GUARD, 0, guard.first))
    for number, reference in enumerate(instruction.uses, count):
        if variable and reference.file == "R":
            continue
        part = _read_part(unit, reference.operand)
        reads += [
            RegisterAccess(unit + part, reference.file, number, offset, reference.first + offset)
            for offset in range(reference.count)
        ]
    overwrites = tuple(
        RegisterAccess(
            "variable latency" if variable else unit + _write_part(unit, offset),
            reference.file,
            number,
            offset,
            reference.first + offset,
        )
        for number, reference in instruction.numbered_writes()
        for offset in range(reference.count)
    )
    writes = () if variable else overwrites
    if instruction.opcode.startswith(_SLOW_HALF):
        writes = tuple(replace(each, access=_SLOW_HALF) for each in writes)
    return TimedAccesses(tuple(reads), writes, overwrites)


@lru_cache(maxsize=1 << 12)
def operation_class(opcode: str, alone: frozenset[str] = frozenset()) -> str:
    """The class of an operation; its own name for one of `alone`, or of no class."""
    stem, *modifiers = opcode.split(".")
    if stem in alone:
        return stem
    if stem in _MATRIX:
        return ".".join((stem, *(m for m in modifiers if m not in _NO_LATENCY_MODIFIERS)))
    if stem == "IMAD" and {"WIDE", "HI"} & set(modifiers):
        return "wide product"
    for name, stems in (
        ("integer", _INTEGER),
        ("multiply-add", _MULTIPLY_ADD),
        ("half", _HALF),
        ("uniform", _UNIFORM),
        ("memory", _MEMORY),
        ("jump", _JUMPS),
    ):
        if stem in stems:
            return name
    return stem


def _read_part(unit: str, operand: int) -> str:
    if opcode_stem(unit) in _MATRIX and 0 < operand < len(_SLOTS):
        return f" {_SLOTS[operand]}"
    return ""


def _write_part(unit: str, offset: int) -> str:
    """Matrix products are written pair by pair, wide products half by half."""
    if opcode_stem(unit) in _MATRIX:
        return f" d{offset // 2}"
    return f" {offset}" if unit == "wide product" else ""


def recent_pairs(function: SassFunction) -> Iterator[RecentPair]:
    """The pairs of instructions of less than HORIZON cycles, in order of the later one.

    Pairs of which only one can take effect are left out: those in one run of a block
    that stand under a predicate and its negation, with no definition of it between.
    Raises RejectedKernel if the control flow cannot be analysed.
    """
    blocks = control_flow(function)
    for block, entry in zip(blocks, _entries(function, blocks), strict=True):
        state = dict(entry)
        for index in block.instructions:
            _interrupt_at_wait(state, function.instructions[index])
            for earlier, (cycles, plain) in state.items():
                same_run = block.instructions[0] <= earlier < index and earlier not in entry
                if same_run and _exclude_each_other(function, earlier, index):
                    continue
                yield RecentPair(earlier, index, cycles, None if plain == HORIZON else plain)
            state = _issued(state, index, function.instructions[index])


def _exclude_each_other(function: SassFunction, earlier: int, later: int) -> bool:
    """True if two instructions of a run stand under a predicate and its negation."""
    first, second = function.instructions[earlier], function.instructions[later]
    one, other = first.guard, second.guard
    if one is None or other is None:
        return False
    if (one.file, one.index) != (other.file, other.index) or one.negated == other.negated:
        return False
    return not any(
        reference.file == one.file
        and reference.first <= one.index < reference.first + reference.count
        for index in range(earlier, later)
        for reference in function.instructions[index].definitions
    )


def _entries(function: SassFunction, blocks: tuple[SassBlock, ...]) -> list[_State]:
    """The recent instructions before each block."""
    entries: list[_State] = [{} for _ in blocks]
    pending = {0} if blocks else set()
    visited: set[int] = set()
    while pending:
        number = min(pending)
        pending.remove(number)
        visited.add(number)
        state = dict(entries[number])
        block = blocks[number]
        for index in block.instructions:
            _interrupt_at_wait(state, function.instructions[index])
            state = _issued(state, index, function.instructions[index])
        last = block.instructions[-1] if block.instructions else None
        if last is not None and operation_class(function.instructions[last].opcode) == "jump":
            # A jump interrupts all but itself: its own guard is what decides it.
            state = {
                earlier: (cycles, plain if earlier == last else HORIZON)
                for earlier, (cycles, plain) in state.items()
            }
        for successor in block.successors:
            if _join(entries[successor], state) or successor not in visited:
                pending.add(successor)
    return entries


def _interrupt_at_wait(state: _State, instruction: SassInstruction) -> None:
    waits = instruction.encoding >> 116 & 0x3F or opcode_stem(instruction.opcode) == "DEPBAR"
    if waits:
        for earlier, (cycles, _) in state.items():
            state[earlier] = cycles, HORIZON


def _issued(state: _State, index: int, instruction: SassInstruction) -> _State:
    """The recent instructions at the earliest time at which the next one may be issued."""
    stall = max(1, instruction.encoding >> 105 & 0xF)
    after = {
        earlier: (cycles + stall, min(plain + stall, HORIZON))
        for earlier, (cycles, plain) in state.items()
        if cycles + stall < HORIZON
    }
    after[index] = stall, stall
    return after


def _join(into: _State, state: _State) -> bool:
    """Joins `state` into another. True if that changes."""
    changed = False
    for earlier, (cycles, plain) in state.items():
        old = into.get(earlier, (HORIZON, HORIZON))
        new = min(old[0], cycles), min(old[1], plain)
        if new != old:
            into[earlier] = new
            changed = True
    return changed
