"""The same answer under other names of physical registers: augmentation of labels.

Physical registers differ only in alignment and bank, and some are named by the
function itself. So the registers of a file can change places, in blocks whose
size is a multiple of the widest alignment in use and of the number of banks.
Blocks that one value spans stay together, in their order. A block keeps its
place if it holds a reserved unit, a unit that the function names, a unit
beyond the budget, or a register whose class allows fewer than the usual bases.
Only blocks up to the highest one in use change places, so the registers used
of a file rise by less than a block.

Interference, ties and bank conflicts do not change, and copies that are
identities stay identities.

Virtual registers keep their numbers: a normalized text numbers them by first
mention. They get other numbers when blocks change their order, see
`training.ordering`.

The cost is linear in the function.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import FixedUnits, Function, PhysicalRegister, RegisterClass
from verilocc_bench.targets import TargetFile

BlockRun = tuple[int, ...]
"""Numbers of blocks that stay together, ascending."""


def rename(problem: AllocationProblem, answer: Mapping[str, str], seed: int) -> Mapping[str, str]:
    """A valid answer with the registers of each file permuted.

    Bank conflicts and identity copies stay the same. If no block can move, it
    is the same answer.
    """
    generator = Random(seed)  # noqa: S311  no secret depends on it
    placements = problem.placements
    places = [
        _PlacedRegister(
            number, kind, placements.register(placements.by_name[kind][answer[f"%{number}"]])
        )
        for number, kind in enumerate(problem.function.virtual_registers)
        if f"%{number}" in answer
    ]
    moves = {
        file.name: _move(problem, file, places, generator)
        for file in problem.target.files
        if not file.unit_names  # few, and each has a meaning of its own
    }
    found: dict[str, str] = {}
    for place in places:
        file, index = place.base.file, place.base.index
        base = PhysicalRegister(file, moves.get(file, {}).get(index, index))
        found[f"%{place.register}"] = placements.legal[place.kind][placements.unit(base)]
    return found


def renamed(
    problem: AllocationProblem, answer: Mapping[str, str], times: int, seed: int
) -> Iterator[Mapping[str, str]]:
    """Yields the answer itself, then `times` renamed ones."""
    yield answer
    for number in range(times):
        yield rename(problem, answer, seed * (times + 1) + number)


@dataclass(frozen=True, slots=True)
class _PlacedRegister:
    """A virtual register, its class, and the physical register it is assigned to."""

    register: int
    kind: RegisterClass
    base: PhysicalRegister


def _move(
    problem: AllocationProblem, file: TargetFile, places: list[_PlacedRegister], generator: Random
) -> dict[int, int]:
    """The new number of each unit of a file, by its present number."""
    own = [place for place in places if place.base.file == file.name]
    # The least multiple of the alignments of the function's classes and of the file's banks.
    steps = [
        legal.step
        for kind in problem.function.classes()
        for legal in kind.ranges
        if legal.file == file.name
    ]
    size = math.lcm(file.banks, *steps)
    end = max((place.base.index + place.kind.width for place in own), default=0)
    pinned = {unit // size for unit in _pinned_units(problem, file, own)}
    new_blocks = _shuffled(_runs(own, size, end // size, pinned), generator)
    return {
        old * size + unit: new * size + unit
        for old, new in new_blocks.items()
        for unit in range(size)
    }


def _pinned_units(
    problem: AllocationProblem, file: TargetFile, own: list[_PlacedRegister]
) -> Iterator[int]:
    """The units that must stay where they are."""
    for units in _fixed(problem.function):
        if units.file == file.name:
            yield from range(units.first, units.first + units.count)
    budget = problem.function.file(file.name).count
    for place in own:
        ranges = [legal for legal in place.kind.ranges if legal.file == file.name]
        room = budget - place.kind.width
        # A usual class allows all aligned bases of the file at which it fits in the budget.
        if len(ranges) != 1 or ranges[0].first or ranges[0].last + ranges[0].step <= room:
            yield from range(place.base.index, place.base.index + place.kind.width)


def _fixed(function: Function) -> Iterator[FixedUnits]:
    yield from function.reserved
    yield from function.live_ins
    for _, _, instruction in function.instructions():
        locations = [each.location for each in instruction.definitions + instruction.uses]
        if instruction.guard is not None:
            locations.append(instruction.guard.location)
        yield from instruction.destroys
        yield from (location for location in locations if isinstance(location, FixedUnits))


def _runs(own: list[_PlacedRegister], size: int, count: int, pinned: set[int]) -> list[BlockRun]:
    """The first `count` blocks of a file in runs that stay together, without pinned runs."""
    joined: set[int] = set()
    for place in own:
        last = (place.base.index + place.kind.width - 1) // size
        joined.update(range(place.base.index // size, last))
    runs: list[list[int]] = []
    for block in range(max(count, max(joined, default=-1) + 2)):
        if runs and block - 1 in joined:
            runs[-1].append(block)
        else:
            runs.append([block])
    return [tuple(run) for run in runs if run[-1] < count and pinned.isdisjoint(run)]


def _shuffled(runs: list[BlockRun], generator: Random) -> dict[int, int]:
    """The new place of each block of these runs, within the places that they have now.

    First, runs of one length change places at random. Then neighbouring runs
    without a pinned block between them are put in a random order.
    """
    by_length: dict[int, list[BlockRun]] = {}
    for run in runs:
        by_length.setdefault(len(run), []).append(run)
    drawn = {length: generator.sample(alike, len(alike)) for length, alike in by_length.items()}
    order = [drawn[len(run)].pop() for run in runs]
    movable = {block for run in runs for block in run}
    found: dict[int, int] = {}
    stretch: list[BlockRun] = []
    for place, (run, new) in enumerate(zip(runs, order, strict=True)):
        stretch.append(new)
        following = run[-1] + 1
        if following in movable and place + 1 < len(runs):
            continue
        start = following - sum(map(len, stretch))
        for moved in generator.sample(stretch, len(stretch)):
            for block in moved:
                found[block] = start
                start += 1
        stretch = []
    return found
