"""The accesses of a kernel that may not meet in one register, by its control words.

ptxas placed the waits and stalls of a kernel for its own registers. With other
registers an instruction may write what an earlier one has still to read or to write.
Two instructions can be too close in two ways, and clash in a third:

- the earlier one has variable latency, and no wait for it stands between (hazards);
- the earlier one has fixed latency, and the later one may be issued sooner than ptxas
  itself relies on for such a pair (distance_table);
- threads of a warp may part between the two, and share uniform registers
  (parted_threads).

A pair that has a register in common under the compiler's own registers is left out:
the compiler knows that it does no harm. So the compiler's own assignment, and every
permutation of it, keeps all pairs apart. An assignment that keeps them apart relies on
nothing that ptxas does not rely on in its own code. Renaming changes no true
dependence: producer, consumer, their distance and their waits stay.

Cost: the pairs of instructions that are close to each other, times their registers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from verilocc_bench.analysis.effects import LaneNumbering
from verilocc_bench.analysis.liveness import Liveness
from verilocc_bench.analysis.machine_live_ranges import MachineLiveRanges
from verilocc_bench.backends.nvidia.distance_table import DistanceTable, PairKind, distance_table
from verilocc_bench.backends.nvidia.flow import control_flow, has_effect
from verilocc_bench.backends.nvidia.hazards import (
    Hazard,
    HazardKind,
    files_read_late,
    pending_pairs,
)
from verilocc_bench.backends.nvidia.issue_distances import (
    RecentPair,
    RegisterAccess,
    TimedAccesses,
    recent_pairs,
    timed_accesses,
)
from verilocc_bench.backends.nvidia.normalize import NormalizedSass
from verilocc_bench.backends.nvidia.parted_threads import parted_pairs
from verilocc_bench.backends.nvidia.records import SassFunction, SassInstruction
from verilocc_bench.backends.nvidia.warp_groups import added_to, is_product
from verilocc_bench.backends.nvidia.webs import GUARD, ReferenceKey, guard_reference


class ApartPair(NamedTuple):
    """Two accesses that may not meet in one register.

    `cycles` and `least` are the distance between the instructions and the least one that
    is allowed; both are None if a wait is missing instead.
    """

    hazard: HazardKind
    earlier: int
    first: RegisterAccess
    later: int
    second: RegisterAccess
    cycles: int | None = None
    least: int | None = None


def kept_apart(function: SassFunction, table: DistanceTable | None = None) -> Iterator[ApartPair]:
    """The pairs of accesses that the control words of a kernel keep apart.

    Raises RejectedKernel if the control flow cannot be analysed.
    """
    yield from _without_wait(function)
    yield from _too_close(function, table or distance_table(function.architecture))
    accesses = [_plain_accesses(each) for each in function.instructions]
    for (earlier, first), (later, second) in parted_pairs(function, accesses):
        yield from _pairs(HazardKind.PARTED_THREADS, earlier, [first], later, [second])


def met(
    pairs: Iterable[ApartPair], renaming: Mapping[ReferenceKey, int]
) -> Iterator[tuple[ApartPair, int]]:
    """The pairs that meet under other registers, each with the register.

    `renaming` has the first register of each reference that is allocated.
    """
    for pair in pairs:
        first = _renamed(pair.earlier, pair.first, renaming)
        if first == _renamed(pair.later, pair.second, renaming):
            yield pair, first


def new_hazards(function: SassFunction, renaming: Mapping[ReferenceKey, int]) -> tuple[Hazard, ...]:
    """The hazards of a kernel under other registers that it has not under its own.

    They are in order of the later instruction. Raises RejectedKernel if the control flow
    cannot be analysed.
    """
    found: dict[tuple[int, int, HazardKind, bool], dict[str, ApartPair]] = {}
    for pair, register in met(kept_apart(function), renaming):
        key = (pair.later, pair.earlier, pair.hazard, pair.cycles is not None)
        found.setdefault(key, {})[f"{pair.first.file}{register}"] = pair
    return tuple(
        Hazard(
            hazard,
            earlier,
            later,
            tuple(sorted(pairs)),
            min((p.cycles for p in pairs.values() if p.cycles is not None), default=None),
            max((p.least for p in pairs.values() if p.least is not None), default=None),
        )
        for (later, earlier, hazard, _), pairs in sorted(found.items())
    )


def machine_live_ranges(
    function: SassFunction,
    normalized: NormalizedSass,
    liveness: Liveness,
    table: DistanceTable | None = None,
) -> MachineLiveRanges:
    """What the control words add to the live ranges of a kernel's problem.

    `liveness` belongs to `normalized.function`. A pair whose later access is a
    definition becomes a point at which the first lane is still in use, unless that
    would also keep it from a lane that it may meet.
    """
    lane_of = _lane_lookup(normalized)
    defined: dict[int, dict[int, set[int]]] = {}
    apart: set[tuple[int, int]] = set()
    for pair in kept_apart(function, table):
        first, second = lane_of(pair.earlier, pair.first), lane_of(pair.later, pair.second)
        if first is None or second is None or first == second:
            continue
        if pair.hazard in (HazardKind.READ_AFTER_WRITE, HazardKind.PARTED_THREADS):
            apart.add((second, first))
        else:
            defined.setdefault(pair.later, {}).setdefault(first, set()).add(second)
    points_of = _points(function, liveness)
    in_use: dict[int, int] = {}
    for later, by_lane in defined.items():
        points = points_of[later]
        there = _lanes_defined(later, function.instructions[later], lane_of)
        for lane, others in by_lane.items():
            file = there[next(iter(others))]
            same_file = {other for other, its_file in there.items() if its_file == file}
            if same_file - {lane} == others:
                in_use[lane] = in_use.get(lane, 0) | points
            else:
                apart |= {(lane, other) for other in others}
    return MachineLiveRanges(
        {lane: points & ~liveness.live[lane] for lane, points in sorted(in_use.items())},
        tuple(sorted(pair for pair in apart if not _collide(liveness, *pair))),
    )


def _collide(liveness: Liveness, a: int, b: int) -> bool:
    live, defined = liveness.live, liveness.defined
    return bool(live[a] & defined[b] or live[b] & defined[a])


def _renamed(index: int, access: RegisterAccess, renaming: Mapping[ReferenceKey, int]) -> int:
    first = renaming.get((index, access.reference))
    return access.register if first is None else first + access.offset


def _without_wait(function: SassFunction) -> Iterator[ApartPair]:
    """The pairs of which the earlier instruction may still be at work."""
    definitions: list[list[RegisterAccess]] = []
    uses: list[list[RegisterAccess]] = []
    late: list[list[RegisterAccess]] = []
    instructions = function.instructions
    for instruction in instructions:
        first, second = _plain_accesses(instruction)
        definitions.append(first)
        uses.append(second)
        late.append([each for each in second if each.file in files_read_late(instruction)])
    for hazard, earlier, later in pending_pairs(function):
        match hazard:
            case HazardKind.WRITE_AFTER_READ:
                firsts = late[earlier]
                # Products run in order: a later one may write over a factor of an earlier one,
                # but ptxas never lets it write over what that one adds to.
                if is_product(instructions[earlier]) and is_product(instructions[later]):
                    added = added_to(instructions[earlier])
                    firsts = [each for each in firsts if each.reference - 1 == added]
                yield from _pairs(hazard, earlier, firsts, later, definitions[later])
            case HazardKind.WRITE_AFTER_WRITE:
                yield from _pairs(hazard, earlier, definitions[earlier], later, definitions[later])
            case HazardKind.READ_AFTER_WRITE:
                yield from _pairs(hazard, earlier, definitions[earlier], later, uses[later])
    for index, instruction in enumerate(instructions):
        if is_product(instruction):
            # What a product writes and what it reads stay apart where the code has them apart:
            # neither may begin inside the other. ptxas has no such overlap.
            written = definitions[index]
            read = [each for each in late[index] if each.file == "R"]
            firsts = [each for each in read if not each.offset]
            hazard = HazardKind.READ_AFTER_WRITE
            yield from _pairs(hazard, index, written[:1], index, read)
            yield from _pairs(hazard, index, written[1:], index, firsts)


def _pairs(
    hazard: HazardKind,
    earlier: int,
    firsts: Iterable[RegisterAccess],
    later: int,
    seconds: Iterable[RegisterAccess],
) -> Iterator[ApartPair]:
    for first in firsts:
        for second in seconds:
            if first.file == second.file and first.register != second.register:
                yield ApartPair(hazard, earlier, first, later, second)


def _plain_accesses(
    instruction: SassInstruction,
) -> tuple[list[RegisterAccess], list[RegisterAccess]]:
    """What it writes and what it uses, the guard among that; none if it never executes."""
    if instruction.never:
        return [], []
    count = len(instruction.definitions)
    definitions, uses = (
        [
            RegisterAccess("", reference.file, number, offset, reference.first + offset)
            for number, reference in references
            for offset in range(reference.count)
        ]
        for references in (instruction.numbered_writes(), enumerate(instruction.uses, count))
    )
    guard = guard_reference(instruction)
    if guard is not None:
        uses.append(RegisterAccess("", guard.file, GUARD, 0, guard.first))
    return definitions, uses


def _too_close(function: SassFunction, table: DistanceTable) -> Iterator[ApartPair]:
    """The pairs of which the earlier instruction has fixed latency."""
    timed = [timed_accesses(each, function.architecture) for each in function.instructions]
    kinds = [(_kinds(each.reads), _kinds(each.writes), _kinds(each.overwrites)) for each in timed]
    furthest: dict[object, int] = {}
    for pair in recent_pairs(function):
        reads, writes, _ = kinds[pair.earlier]
        overwrites = kinds[pair.later][2]
        key = (reads, writes, overwrites)
        if key not in furthest:
            furthest[key] = max(
                (
                    table.least(PairKind(hazard, access, other, file))
                    for hazard, accesses in (
                        (HazardKind.WRITE_AFTER_READ, reads),
                        (HazardKind.WRITE_AFTER_WRITE, writes),
                    )
                    for access, file in accesses
                    for other, its_file in overwrites
                    if file == its_file
                ),
                default=0,
            )
        if pair.cycles < furthest[key]:
            yield from _close_accesses(table, pair, timed[pair.earlier], timed[pair.later])


def _kinds(accesses: Iterable[RegisterAccess]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted({(each.access, each.file) for each in accesses}))


def _close_accesses(
    table: DistanceTable, pair: RecentPair, first: TimedAccesses, second: TimedAccesses
) -> Iterator[ApartPair]:
    cycles = pair.cycles
    for hazard, accesses in (
        (HazardKind.WRITE_AFTER_READ, first.reads),
        (HazardKind.WRITE_AFTER_WRITE, first.writes),
    ):
        for one in accesses:
            for other in second.overwrites:
                if one.file != other.file or one.register == other.register:
                    continue
                least = table.least(PairKind(hazard, one.access, other.access, one.file))
                if cycles < least:
                    yield ApartPair(hazard, pair.earlier, one, pair.later, other, cycles, least)


_LaneOf = Callable[[int, RegisterAccess], int | None]


def _lane_lookup(normalized: NormalizedSass) -> _LaneOf:
    """The lane of an access of an instruction; None for one that the problem does not have."""
    numbering, places = LaneNumbering(normalized.function), normalized.places

    def lane_of(index: int, access: RegisterAccess) -> int | None:
        place = places.get((index, access.reference))
        if place is None:
            return numbering.fixed.get((access.file, access.register))
        return numbering.offsets[place.register] + place.first + access.offset

    return lane_of


def _lanes_defined(index: int, instruction: SassInstruction, lane_of: _LaneOf) -> dict[int, str]:
    """The lanes that an instruction defines, with their files."""
    found: dict[int, str] = {}
    for access in _plain_accesses(instruction)[0]:
        lane = lane_of(index, access)
        if lane is not None:
            found[lane] = access.file
    return found


def _points(function: SassFunction, liveness: Liveness) -> dict[int, int]:
    """The points after each instruction that the problem has, as a mask; one for each copy."""
    found: dict[int, int] = {}
    for block, after in zip(control_flow(function), liveness.after, strict=True):
        kept = [i for i in block.instructions if has_effect(function.instructions[i])]
        for index, point in zip(kept, after, strict=True):
            found[index] = found.get(index, 0) | 1 << point
    return found
