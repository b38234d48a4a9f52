"""Register hazards that the waits of a kernel do not cover.

Stall counts keep an instruction of fixed latency apart from its neighbours. An
instruction of variable latency (memory, conversions, MUFU …) reads its sources and
writes its destinations at unknown times. It may raise one of six barriers until it
has read (bits 113 to 115 of the encoding) or until it has written (bits 110 to
112). A later instruction waits until all barriers of its mask (bits 116 to 121)
are at zero. DEPBAR.LE with count 0 waits, too.

The model is a forward dataflow over the blocks. A *reader* is an instruction that
may still read its general registers (predicates and uniform registers are read at the
start, but for the uniform ones of asynchronous copies). A *writer* may still write its
destinations. Each carries a set of barriers; waiting for any one of them shows that it
is done. The set holds its own barrier (a write barrier shows that it has read, too),
and the barriers of later instructions of the same queue, because a queue works in
order: in a run of loads ptxas lets only the last one raise a barrier. That one may be
guarded: it passes the queue, and raises its barrier, even if its guard fails. ptxas
relies on that where it lets a store under one predicate show that a store under another
has read. At joins, an instruction that is outstanding on some path is outstanding, and
a barrier stays in its set only if it is there on all paths on which the instruction is
outstanding.

Products of a warp group (HGMMA …) read and write general registers until a
`WARPGROUP.DEPBAR.LE gsb0, N` behind them. `gsb0` at a product closes a group; the DEPBAR
waits until at most N groups are at work. So a product carries further bits: bit 6 + N
shows that a DEPBAR of N or less waits for it. Products work in order: one may add to
what the one before it sums up, and overwrite a factor of it, but not what that one adds
to, unless all is one place. Registers that a product writes are its own from the arrival
before it on (warp_groups).

A hazard is an instruction that writes a register that a reader has yet to read
(WAR) or a writer has yet to write (WAW), or that reads a register that a writer has
yet to write (RAW). Readers of one queue have no WAR, but for what products add to: the
later instruction reads, and so writes, later.

Limits: distances in cycles between instructions of fixed latency are another matter
(issue_distances), so "no hazard" alone does not show that a recolouring runs.
Experiments show which operations have variable latency, which share a queue
and which registers are read at the start; the model relies on no more than ptxas
13.5 does in its own code. Of 136 kernels measured 134 have no hazard under their own
assignment. Code without control information (ptxas -O0) has many, so write-back leaves
out the hazards of the original.

Source: Jia, Maggioni, Staiger and Scarpazza, arXiv 1804.06826, section 2.1
(control information).

Cost: a few passes over the instructions, each times what is outstanding.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from verilocc_bench.backends.nvidia.architectures import operations
from verilocc_bench.backends.nvidia.flow import control_flow, opcode_stem
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassBlock,
    SassFunction,
    SassInstruction,
)
from verilocc_bench.backends.nvidia.warp_groups import added_to, behind_arrivals, is_product
from verilocc_bench.backends.nvidia.webs import guard_reference


class HazardKind(StrEnum):
    """The access that the later instruction must not make yet.

    With PARTED_THREADS other threads of the warp write and read (parted_threads).
    """

    WRITE_AFTER_READ = "write-after-read"
    WRITE_AFTER_WRITE = "write-after-write"
    READ_AFTER_WRITE = "read-after-write"
    PARTED_THREADS = "write-by-parted-threads"


@dataclass(frozen=True, slots=True)
class Hazard:
    """The instruction at `later` may access `registers` while the one at `earlier` is at work.

    A wait is missing between them, unless `cycles` says that they are too close: they
    may be issued so far apart, where `least` is the least distance that is allowed.
    """

    kind: HazardKind
    earlier: int
    later: int
    registers: tuple[str, ...]
    cycles: int | None = None
    least: int | None = None


_READ_QUEUE = operations("ATOMS LDG LDGSTS LDL LDS LDSM REDG SHFL STG STL STS STSM")
"""These read registers in the order of the text; others only in order with their own kind."""

_LATE_UNIFORM_READS = operations(
    "SYNCS UBLKCP UBLKPF UBLKRED UTMACCTL UTMALDG UTMAPF UTMAREDG UTMASTG"
)
"""These raise a barrier when they have read their uniform registers, too."""

_WRITE_QUEUE = operations("ATOMS LDS LDSM SHFL")
"""These write registers in the order of the text; others only in order with their own kind."""

_QUEUES = {
    "DADD": "double precision", "DFMA": "double precision", "DMUL": "double precision",
    "DSETP": "double precision",
    "MUFU": "special functions", "FLO": "special functions", "POPC": "special functions",
    "BREV": "special functions", "F2F": "special functions", "F2I": "special functions",
    "FRND": "special functions", "I2F": "special functions",
    "HGMMA": "warp group", "IGMMA": "warp group", "QGMMA": "warp group",
}  # fmt: skip
"""Operations of one unit read and write in order; others only in order with their own kind."""

_WARP_GROUP = "warp group"
_GROUP_BITS = range(6, 14)
"""Bit 6 + N: the product's group is closed, and N later groups are, too."""

_NO_BARRIER = 7
_FILE_OFFSETS = {"R": 0, "UR": 256, "P": 320, "UP": 328}

_LATE_UNITS = {("R",): (1 << 256) - 1, ("R", "UR"): (1 << 320) - 1}

_READS, _WRITES = 0, 1
_Item = tuple[int, int]
"""(instruction, _READS or _WRITES)."""

_State = dict[_Item, int]
"""The outstanding items, each with a bit for every barrier that shows that it is done."""


@dataclass(frozen=True, slots=True)
class _TimedInstruction:
    """The parts of an instruction that the model needs; registers are bit sets of all files.

    The queues are None for an instruction of fixed latency. `accumulator` are the
    registers that a product of a warp group adds to.
    """

    index: int
    reads: int
    writes: int
    late_reads: int
    read_queue: str | None
    write_queue: str | None
    waits: int
    read_barrier: int
    write_barrier: int
    closes_group: bool
    accumulator: int


def find_hazards(function: SassFunction) -> tuple[Hazard, ...]:
    """The hazards of a function in order of the later instruction.

    Raises RejectedKernel if the control flow cannot be analysed.
    """
    return _Analysis(function, control_flow(function)).hazards()


class PendingPair(NamedTuple):
    """The instruction at `later` is issued while that at `earlier` is at work.

    The later one must not make the access of `kind` to a register that the earlier one
    has yet to read (WRITE_AFTER_READ: the files of `files_read_late`) or to write.
    """

    kind: HazardKind
    earlier: int
    later: int


def files_read_late(instruction: SassInstruction) -> tuple[str, ...]:
    """The register files that an instruction of variable latency may read late."""
    return ("R", "UR") if opcode_stem(instruction.opcode) in _LATE_UNIFORM_READS else ("R",)


def pending_pairs(function: SassFunction) -> Iterator[PendingPair]:
    """The pairs of instructions between which no wait stands, whatever their registers.

    A hazard is such a pair with a register in common. Raises RejectedKernel if the
    control flow cannot be analysed.
    """
    for kind, earlier, later, _ in _Analysis(function, control_flow(function)).pairs():
        yield PendingPair(kind, earlier, later)


class _Analysis:
    def __init__(self, function: SassFunction, blocks: tuple[SassBlock, ...]) -> None:
        self.function, self.blocks = function, blocks
        self.steps = {
            index: _step(index, function.instructions[index])
            for block in blocks
            for index in block.instructions
        }

    def hazards(self) -> tuple[Hazard, ...]:
        found: dict[tuple[HazardKind, int, int], int] = {}
        for kind, earlier, later, units in self.pairs():
            if units:
                found[kind, earlier, later] = found.get((kind, earlier, later), 0) | units
        return tuple(
            Hazard(kind, earlier, later, _names(units))
            for (kind, earlier, later), units in sorted(
                found.items(), key=lambda item: (item[0][2], item[0][1], item[0][0])
            )
        )

    def pairs(self) -> Iterator[tuple[HazardKind, int, int, int]]:
        """Pairs without a wait between: (access, earlier, later, the registers in common)."""
        for state, step in self.states():
            for kind, earlier, units in self.candidates(state, step):
                yield kind, earlier, step.index, units
        for earlier, later in behind_arrivals(self.function, self.blocks):
            other, own = self.steps[earlier], self.steps[later].writes
            yield HazardKind.WRITE_AFTER_READ, earlier, later, other.reads & own
            yield HazardKind.WRITE_AFTER_WRITE, earlier, later, other.writes & own

    def states(self) -> Iterator[tuple[_State, _TimedInstruction]]:
        """Each instruction with what is outstanding after its waits."""
        for block, entry in zip(self.blocks, self._entries(), strict=True):
            state = dict(entry)
            for index in block.instructions:
                step = self.steps[index]
                _wait(state, step.waits)
                yield state, step
                self._start(state, step)

    def _entries(self) -> list[_State]:
        """The outstanding items before each block."""
        entries: list[_State] = [{} for _ in self.blocks]
        pending = dict.fromkeys([0]) if self.blocks else {}
        visited: set[int] = set()
        while pending:
            number = min(pending)
            del pending[number]
            visited.add(number)
            state = dict(entries[number])
            for index in self.blocks[number].instructions:
                _wait(state, self.steps[index].waits)
                self._start(state, self.steps[index])
            for successor in self.blocks[number].successors:
                if _join(entries[successor], state) or successor not in visited:
                    pending[successor] = None
        return entries

    def _start(self, state: _State, step: _TimedInstruction) -> None:
        """Adds the items of an instruction to the outstanding ones."""
        if step.read_queue is None:
            return
        counted = _bit(step.read_barrier)
        done = _bit(step.write_barrier)
        if counted | done:
            for item, barriers in state.items():
                earlier = self.steps[item[0]]
                if item[1] == _READS and earlier.read_queue == step.read_queue:
                    state[item] = barriers | done | counted
                elif item[1] == _WRITES and earlier.write_queue == step.write_queue:
                    state[item] = barriers | done
        if step.late_reads:
            state[step.index, _READS] = counted | done
        if step.writes:
            state[step.index, _WRITES] = done
        if step.closes_group:
            for item, barriers in state.items():
                if self.steps[item[0]].read_queue == _WARP_GROUP:
                    # A product gains the bit of its own group, or of a later one.
                    free = (1 << bit for bit in _GROUP_BITS if not barriers >> bit & 1)
                    state[item] = barriers | next(free, 0)

    def candidates(
        self, state: _State, step: _TimedInstruction
    ) -> Iterator[tuple[HazardKind, int, int]]:
        """(access, earlier instruction, the registers in common) of what is outstanding."""
        for earlier, part in state:
            other = self.steps[earlier]
            product, in_order = other.read_queue == _WARP_GROUP, 0
            if product and step.accumulator == other.writes:
                in_order = other.writes
            if part == _READS:
                if step.read_queue is None or step.read_queue != other.read_queue:
                    yield HazardKind.WRITE_AFTER_READ, earlier, step.writes & other.late_reads
                elif product:
                    common = step.writes & other.accumulator & ~in_order
                    yield HazardKind.WRITE_AFTER_READ, earlier, common
                continue
            yield HazardKind.WRITE_AFTER_WRITE, earlier, step.writes & other.writes & ~in_order
            yield HazardKind.READ_AFTER_WRITE, earlier, step.reads & other.writes & ~in_order


def _wait(state: _State, waits: int) -> None:
    if waits:
        for item in [item for item, barriers in state.items() if barriers & waits]:
            del state[item]


def _join(into: _State, state: _State) -> bool:
    """Joins `state` into another. True if that changes."""
    changed = False
    for item, barriers in state.items():
        old = into.get(item)
        new = barriers if old is None else old & barriers
        if new != old:
            into[item] = new
            changed = True
    return changed


def _bit(barrier: int) -> int:
    return 0 if barrier == _NO_BARRIER else 1 << barrier


def _step(index: int, instruction: SassInstruction) -> _TimedInstruction:
    encoding = instruction.encoding
    stem = opcode_stem(instruction.opcode)
    waits = encoding >> 116 & 0x3F
    # Under a guard, some threads do not wait.
    always = instruction.guard is None and not instruction.never
    if stem == "DEPBAR" and always:
        # `DEPBAR.LE SB0, 0x0, {3,2}` waits for those listed, and at the count 0 for the first.
        first, count = (*instruction.operands, "")[:2]
        waits |= 1 << int(first.removeprefix("SB")) if count == "0x0" else 0
        listed = "".join(each for each in instruction.operands if each.startswith("{"))
        waits |= sum(1 << int(number) for number in listed if number.isdigit())
    elif instruction.opcode == "WARPGROUP.DEPBAR.LE" and always:
        groups = int(instruction.operands[1], 0)  # `gsb0, N`
        if groups < len(_GROUP_BITS):
            waits |= 1 << _GROUP_BITS[groups]
    guard = guard_reference(instruction)
    reads = _units(instruction.uses if guard is None else (*instruction.uses, guard))
    writes = _units((*instruction.definitions, *instruction.destroys))
    if instruction.never:
        reads = writes = 0
    product = is_product(instruction)
    added = added_to(instruction)
    variable = instruction.variable_latency and not instruction.never
    return _TimedInstruction(
        index,
        reads,
        writes,
        reads & _LATE_UNITS[files_read_late(instruction)],
        ("memory" if stem in _READ_QUEUE else _QUEUES.get(stem, stem)) if variable else None,
        ("shared memory" if stem in _WRITE_QUEUE else _QUEUES.get(stem, stem))
        if variable
        else None,
        waits,
        encoding >> 113 & 7,
        encoding >> 110 & 7,
        product and "gsb0" in instruction.operands,
        0 if added is None else _units((instruction.uses[added],)),
    )


def _units(references: tuple[RegisterReference, ...]) -> int:
    units = 0
    for reference in references:
        first = _FILE_OFFSETS[reference.file] + reference.first
        units |= ((1 << reference.count) - 1) << first
    return units


def _names(units: int) -> tuple[str, ...]:
    names: list[str] = []
    for file, offset in _FILE_OFFSETS.items():
        end = min([o for o in _FILE_OFFSETS.values() if o > offset], default=units.bit_length())
        names += [f"{file}{unit - offset}" for unit in range(offset, end) if units >> unit & 1]
    return tuple(names)
