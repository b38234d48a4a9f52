"""A timing model of sm_80 and sm_90: executes control words, and sees values destroyed.

It is a second opinion on the question whether a kernel runs with other registers, and
shares no code with the analysis (hazards, issue_distances, kept_apart): it reads the
instructions, the control words and the data of the distance table itself, and it
follows single executions instead of joining paths.

An execution issues one instruction after another. Guards and branches are decided at
random, but every guard on one value in the same way. The *schedule* of an execution is
as hostile as the control words allow:

- The time between two instructions is the stall count of the first.
- An instruction of variable latency reads its general registers and writes its results
  only when a wait forces it to: a later instruction waits for a barrier that it raised,
  or that a later instruction of its queue raised. Other schedules let some of them
  finish at random times before.
- Products of a warp group (sm_90) finish where a `WARPGROUP.DEPBAR` waits for their group.
- An instruction whose guard fails reads and writes nothing, but passes its queue and
  raises its barriers. ptxas's own code relies on that.
- An instruction of fixed latency has its results at once, since renaming changes no
  true dependence. But it still reads, and writes, for as long as the table of distances
  says of the instruction that would overwrite its register.

A value is destroyed if a late read finds another value than the text means, if a late
write comes after a younger one, or if a register is overwritten too soon for an
instruction of fixed latency. A value that the compiler's own registers destroy does
not count: the model knows less than ptxas does. Executions are the same for all assignments, so a
model makes its schedules once, and judges any number of assignments by them.

Limits: executions are samples. Each instruction that control can reach is executed at
least once, if need be in an execution that begins in the middle of the kernel.

Source: Jia, Maggioni, Staiger and Scarpazza, arXiv 1804.06826, section 2.1.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from benchmarks.timing_operations import (
    FILE_BASE,
    Registers,
    TimedOperation,
    registers_of,
    timed_operation,
)
from verilocc_bench.backends.nvidia.records import SassFunction

_BARRIERS = 6
"""Numbers from here on say that a product's group is closed, and how many behind it."""

FARTHEST = 64
"""The distance that a pair of a kind without a cell in the table needs."""

Distances = Mapping[tuple[str, str, str, str], int]
"""The least cycles by (`write-after-read` or `write-after-write`, earlier, later, file)."""


class Destroyed(NamedTuple):
    """A destroyed value: how, and by which place of which instruction for which other.

    Places count the registers that an instruction reads, guard first, or writes.
    """

    what: str
    earlier: int
    earlier_place: int
    later: int
    later_place: int


class _Step(NamedTuple):
    """An instruction is issued as number `number`, or finishes a part of its work.

    `part` is `issue`, `read` or `write`. `place` is the index of the instruction; its
    complement says that it is issued under a guard that fails.
    """

    part: str
    number: int
    place: int


@dataclass(slots=True)
class _Late:
    """A part of the work of an instruction that is still to be done."""

    number: int
    index: int
    reads: bool
    queue: str
    barriers: set[int]
    lazy: bool


class TimingModel:
    """The schedules of one kernel, and the verdicts on assignments to its registers."""

    def __init__(self, function: SassFunction, distances: Distances, schedules: int = 3) -> None:
        self._operations = [timed_operation(function, i) for i in function.instructions]
        self._distances = distances
        self._own = registers_of(function)
        self._close: set[tuple[str, int, int, int, int]] = set()
        self._schedules = list(self._all_schedules(schedules))
        self._known = frozenset(self._destroyed(self._own))

    @property
    def executed(self) -> int:
        """The number of instructions that the schedules issue."""
        return sum(step.part == "issue" for each in self._schedules for step in each)

    def destroyed(self, registers: Registers) -> list[Destroyed]:
        """The values that other registers destroy, and the kernel's own do not."""
        return sorted(self._destroyed(registers) - self._known)

    def _destroyed(self, registers: Registers) -> set[Destroyed]:
        found = set()
        for what, earlier, place, later, other in self._close:
            side = 0 if what == "write-after-read" else 1
            if registers[earlier][side][place] == registers[later][1][other]:
                found.add(Destroyed(what, earlier, place, later, other))
        for schedule in self._schedules:
            found |= _replayed(schedule, self._operations, registers)
        return found

    def _all_schedules(self, count: int) -> Iterator[list[_Step]]:
        covered: set[int] = set()
        for seed in range(count):
            yield self._execution(0, seed, covered)
        starts = {target for operation in self._operations for target in operation.targets}
        starts |= {
            index + 1
            for index, operation in enumerate(self._operations)
            if operation.targets or operation.ends
        }
        for start in sorted(start for start in starts if start < len(self._operations)):
            if start not in covered:
                yield self._execution(start, 0, covered)

    def _execution(self, start: int, seed: int, covered: set[int]) -> list[_Step]:
        """One execution from `start` on; the first seed is as late as possible throughout."""
        chance = random.Random(f"{start} {seed}")
        schedule, late = list[_Step](), list[_Late]()
        values: dict[int, str] = {}
        recent: list[tuple[int, int]] = []
        index, number, time = start, 0, 0
        while index < len(self._operations) and number < 4 * len(self._operations):
            operation = self._operations[index]
            covered.add(index)
            reads, writes = self._own[index]
            acts = True
            if operation.guard is not None:
                unit, negated = operation.guard
                acts = _truth(f"{seed} {values.get(unit, 'nothing')}") != negated
            _finish(schedule, late, operation.waits, chance)
            schedule.append(_Step("issue", number, index if acts else ~index))
            recent = [(other, then) for other, then in recent if time - then < FARTHEST]
            lazy = seed == 0 or chance.random() < 0.6
            _start(late, number, index if acts else ~index, operation, lazy=lazy)
            if acts:
                self._note_close(index, time, recent)
                for unit in writes:
                    values[unit] = f"{number} {writes.index(unit)}"
                if not operation.late or reads:
                    recent.append((index, time))
            if acts and operation.ends:
                break
            time += operation.stall
            ways = operation.targets if acts else ()
            if operation.may_fall_through or not ways:
                ways = (*ways, index + 1)
            index = ways[0] if len(ways) == 1 else chance.choice(ways)
            number += 1
        _finish(schedule, late, ~0, chance)
        return schedule

    def _note_close(self, later: int, time: int, recent: Iterable[tuple[int, int]]) -> None:
        """Notes the places of recent instructions that are too close to be overwritten."""
        second = self._operations[later]
        for earlier, then in recent:
            first = self._operations[earlier]
            for what, classes, files in (
                ("write-after-read", first.read_classes, first.read_files),
                ("write-after-write", first.write_classes, first.write_files),
            ):
                if what == "write-after-write" and first.late:
                    continue
                for place, (one, file) in enumerate(zip(classes, files, strict=True)):
                    if first.late and file == "R":
                        continue
                    for other, (two, its) in enumerate(
                        zip(second.write_classes, second.write_files, strict=True)
                    ):
                        if file != its:
                            continue
                        least = self._distances.get((what, one, two, file), FARTHEST)
                        if time - then < least:
                            self._close.add((what, earlier, place, later, other))


def _replayed(
    schedule: Sequence[_Step], operations: Sequence[TimedOperation], registers: Registers
) -> set[Destroyed]:
    """Executes a schedule with registers, and compares what is there with what the text means."""
    replay = _Replay(operations, registers)
    for part, number, index in schedule:
        if index < 0:
            continue
        if part == "issue":
            replay.issue(number, index)
        elif part == "read":
            replay.read(number, index)
        else:
            replay.write(number, index)
    return replay.found


_Value = tuple[int, int, int]
"""(number of the instruction that wrote it, its index, the place of the register)."""


class _Replay:
    """The registers of one execution: the values that the text means, and those that are there."""

    def __init__(self, operations: Sequence[TimedOperation], registers: Registers) -> None:
        self.found: set[Destroyed] = set()
        self._operations, self._registers = operations, registers
        self._meant: dict[int, _Value] = {}
        self._there: dict[int, _Value] = {}
        self._expected: dict[int, list[tuple[int, int, _Value | None]]] = {}

    def issue(self, number: int, index: int) -> None:
        """Makes the early reads of an instruction, and its writes if its latency is fixed."""
        reads, writes = self._registers[index]
        late, meant, there = self._operations[index].late, self._meant, self._there
        if late:
            self._expected[number] = [
                (place, unit, meant.get(unit))
                for place, unit in enumerate(reads)
                if unit < FILE_BASE["UR"]
            ]
        for place, unit in enumerate(reads):
            if late and unit < FILE_BASE["UR"]:
                continue
            if there.get(unit) != meant.get(unit):
                self.found.add(_wrong(index, place, there.get(unit), meant.get(unit)))
        for place, unit in enumerate(writes):
            meant[unit] = number, index, place
            if not late:
                there[unit] = meant[unit]

    def read(self, number: int, index: int) -> None:
        """Reads late."""
        for place, unit, value in self._expected.pop(number):
            if self._there.get(unit) != value:
                self.found.add(_wrong(index, place, self._there.get(unit), value))

    def write(self, number: int, index: int) -> None:
        """Writes late."""
        for place, unit in enumerate(self._registers[index][1]):
            old = self._there.get(unit)
            if old is not None and old[0] > number:
                self.found.add(Destroyed("late write", index, place, old[1], old[2]))
            self._there[unit] = number, index, place


def _wrong(index: int, place: int, seen: _Value | None, value: _Value | None) -> Destroyed:
    """A read of a wrong value: a younger one in its place, or the meant one is not there yet."""
    if seen is not None and (value is None or seen[0] > value[0]):
        return Destroyed("late read", index, place, seen[1], seen[2])
    assert value is not None
    return Destroyed("early read", value[1], value[2], index, place)


def _start(
    late: list[_Late], number: int, index: int, operation: TimedOperation, *, lazy: bool
) -> None:
    """Adds the late parts of an instruction to those of others."""
    if not operation.late:
        return
    read, write = operation.read_barrier, operation.write_barrier
    for other in late:
        # A queue works in order: a younger one that is done shows that this one is.
        if other.reads and other.queue == operation.read_queue:
            other.barriers |= {read, write} - {7}
        elif not other.reads and other.queue == operation.write_queue:
            other.barriers |= {write} - {7}
    late.append(_Late(number, index, True, operation.read_queue, {read, write} - {7}, lazy))
    late.append(_Late(number, index, False, operation.write_queue, {write} - {7}, lazy))
    if operation.closes_group:
        for other in late:
            if other.queue == operation.read_queue:
                other.barriers.add(max(other.barriers | {_BARRIERS - 1}) + 1)


def _finish(schedule: list[_Step], late: list[_Late], waits: int, chance: random.Random) -> None:
    """Finishes what the waits force to finish, and some of what may finish, in order."""
    left: list[_Late] = []
    kept: set[tuple[bool, str]] = set()
    unread: set[int] = set()
    for each in late:
        forced = waits < 0 or any(waits >> barrier & 1 for barrier in each.barriers)
        free = not each.lazy and chance.random() < 0.3 and (each.reads, each.queue) not in kept
        if forced or (free and each.number not in unread):
            part = "read" if each.reads else "write"
            schedule.append(_Step(part, each.number, each.index))
        else:
            left.append(each)
            kept.add((each.reads, each.queue))
            if each.reads:
                unread.add(each.number)
    late[:] = left


def _truth(value: str) -> bool:
    return hashlib.sha256(value.encode()).digest()[0] & 1 == 1
