"""First fit: registers one by one, each at the lowest base where no lane collides.

The order decides the quality. A lane may use a unit wherever no other lane
in it is live at a common point, so holes in live ranges and dead lanes of
tuples are filled. One pass costs a bit-set operation for each base tried.
"""

from __future__ import annotations

from collections.abc import Iterable

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment

__all__ = ["first_fit"]


def first_fit(problem: AllocationProblem, order: Iterable[int]) -> Assignment:
    """The assignment of all virtual registers, in the given order.

    Raises AllocationFailed at the first register that fits nowhere.
    """
    liveness, placements = problem.liveness, problem.placements
    classes = problem.function.virtual_registers
    occupied = [0] * placements.unit_count
    for lane, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
        occupied[placements.first_unit[file] + index] = liveness.live[lane]
    assignment: Assignment = {}
    for register in order:
        first = liveness.lane_offsets[register]
        masks = liveness.live[first : first + classes[register].width]
        unit = _lowest(placements.legal[classes[register]], masks, occupied)
        if unit is None:
            raise AllocationFailed(
                f"%{register} of class {classes[register].name} fits nowhere: "
                f"{len(assignment)} of {len(classes)} registers placed"
            )
        for lane, mask in enumerate(masks):
            occupied[unit + lane] |= mask
        assignment[register] = placements.register(unit)
    return assignment


def _lowest(units: Iterable[int], masks: tuple[int, ...], occupied: list[int]) -> int | None:
    if len(masks) == 1:
        mask = masks[0]
        return next((unit for unit in units if not occupied[unit] & mask), None)
    lanes = range(len(masks))
    for unit in units:
        for lane in lanes:
            if occupied[unit + lane] & masks[lane]:
                break
        else:
            return unit
    return None
