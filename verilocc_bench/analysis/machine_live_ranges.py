"""Live ranges as the machine sees them: a stricter view of a problem.

By the text a register is free after its last read. The machine may read or write it
later: until then, another value in the register would be destroyed, or would destroy.
The stricter view keeps such lanes apart. It is a problem like any other, with the same
function and more conflicts, so every allocator can work on it. An answer to it is also
an answer to the original problem.

The record of lanes to keep apart names no vendor. Back ends make it from compiled
code.

Cost: linear in what is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from verilocc_bench.analysis.effects import iterate_bits
from verilocc_bench.analysis.liveness import Liveness, Segment
from verilocc_bench.analysis.problem import AllocationProblem


@dataclass(frozen=True, slots=True)
class MachineLiveRanges:
    """What a machine adds to the live ranges of a function.

    Lanes and points are numbered as in the function's Liveness. `in_use` maps a lane to
    the further points, as a bit mask, at which it is still to be read or written: no
    lane that is defined there may share its unit. `apart` are pairs of lanes that may
    not share a unit for a reason that no point expresses.
    """

    in_use: dict[int, int]
    apart: tuple[tuple[int, int], ...]


class MachineProblem(AllocationProblem):
    """A problem with the live ranges of the machine in place of the text's.

    It has the id and the function of `problem`. Its `liveness`
    has a further point for each pair of `ranges.apart`, after all others, at which the
    first lane of the pair is live and the second is defined. Such points stand for no
    instruction.
    """

    def __init__(self, problem: AllocationProblem, ranges: MachineLiveRanges) -> None:
        super().__init__(problem.function, problem.normalized)
        self.ranges = ranges
        self._text = problem.liveness

    @cached_property
    def liveness(self) -> Liveness:
        """The liveness of the text, and the points at which the machine uses a lane longer."""
        return _extended(self._text, self.ranges)


def _extended(text: Liveness, ranges: MachineLiveRanges) -> Liveness:
    segments: list[Segment] = list(text.segments)
    for lane, points in sorted(ranges.in_use.items()):
        segments += [(lane, *run, False) for run in _runs(points & ~text.live[lane])]
    places, written = list(text.points), list(text.written)
    for a, b in ranges.apart:
        point = len(places)
        places.append(text.points[-1])
        written.append(1 << b)
        segments += [(a, point, point, False), (b, point, point, False)]
    return replace(text, written=tuple(written), points=tuple(places), segments=tuple(segments))


def _runs(points: int) -> Iterator[tuple[int, int]]:
    """(first, last) of each run of neighbouring points in a bit mask."""
    first = last = None
    for point in iterate_bits(points):
        if last is not None and point == last + 1:
            last = point
            continue
        if first is not None and last is not None:
            yield first, last
        first = last = point
    if first is not None and last is not None:
        yield first, last
