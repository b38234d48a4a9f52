"""First fit: registers one by one, each at the lowest base where no lane collides.

The order decides the quality. A lane may share a unit with another if neither is
defined while the other is live, so registers fill holes in live ranges, dead
lanes of tuples, and lanes under opposite guards. One pass costs two bit-set
operations for each base that it tries.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from verilocc_bench.allocators.register_state import FIXED, tie_distances
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment


def first_fit(problem: AllocationProblem, order: Iterable[int]) -> Assignment:
    """The assignment of all virtual registers, in the given order.

    Raises AllocationFailed at the first register that fits nowhere.
    """
    liveness, placements = problem.liveness, problem.placements
    classes = problem.function.virtual_registers
    live = [0] * placements.unit_count
    defined = [0] * placements.unit_count
    for lane, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
        unit = placements.first_unit[file] + index
        live[unit], defined[unit] = liveness.live[lane], liveness.defined[lane]
    ties = tie_distances(problem)
    units: dict[int, int] = {}
    assignment: Assignment = {}
    for register in order:
        first = liveness.lane_offsets[register]
        last = first + classes[register].width
        lanes = list(zip(liveness.live[first:last], liveness.defined[first:last], strict=True))
        bases: Collection[int] = placements.legal[classes[register]]
        if register in ties:
            bases = _tied_bases(bases, ties[register], units)
        base = _lowest(bases, lanes, live, defined)
        if base is None:
            raise AllocationFailed(
                f"%{register} of class {classes[register].name} fits nowhere: "
                f"{len(assignment)} of {len(classes)} registers placed"
            )
        for unit, (lane_live, lane_defined) in enumerate(lanes, base):
            live[unit] |= lane_live
            defined[unit] |= lane_defined
        units[register] = base
        assignment[register] = placements.register(base)
    return assignment


def _tied_bases(
    bases: Collection[int], distances: Mapping[int, int] | None, units: Mapping[int, int]
) -> Collection[int]:
    """The bases that ties to physical registers and to placed registers allow."""
    if distances is None:
        return ()
    for other, distance in distances.items():
        unit = 0 if other == FIXED else units.get(other)
        if unit is not None:
            bases = [base for base in bases if base == unit + distance]
    return bases


def _lowest(
    bases: Iterable[int], lanes: list[tuple[int, int]], live: list[int], defined: list[int]
) -> int | None:
    if len(lanes) == 1:
        lane_live, lane_defined = lanes[0]
        for base in bases:
            if not live[base] & lane_defined and not defined[base] & lane_live:
                return base
        return None
    for base in bases:
        for unit, (lane_live, lane_defined) in enumerate(lanes, base):
            if live[unit] & lane_defined or defined[unit] & lane_live:
                break
        else:
            return base
    return None
