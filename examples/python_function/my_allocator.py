"""An allocator as a function: first fit in an order that the seed shuffles a little."""

from __future__ import annotations

from random import Random

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed

JITTER_POINTS = 50.0


def allocate(problem: AllocationProblem, seed: int) -> dict[str, str]:
    """A base register for every virtual register; each seed gives another answer.

    `problem` has the text (`problem.normalized`), the parsed function, and
    analyses. Liveness is by lanes and points: `live[lane]` and `defined[lane]`
    are sets of points as bit masks. Two lanes cannot share a register unit if
    one is defined while the other is live.
    """
    random = Random(seed)  # noqa: S311  no secret
    liveness, placements = problem.liveness, problem.placements
    classes = problem.function.virtual_registers
    # What each register unit already holds; at first the function's own registers.
    held: list[list[tuple[int, int]]] = [[] for _ in range(placements.unit_count)]
    for lane, (file, index) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
        held[placements.first_unit[file] + index].append(
            (liveness.live[lane], liveness.defined[lane])
        )
    lanes_of = {
        register: [
            (liveness.live[lane], liveness.defined[lane])
            for lane in range(first, first + classes[register].width)
        ]
        for register, first in enumerate(liveness.lane_offsets)
    }

    def order(register: int) -> float:
        live = 0
        for lane_live, _ in lanes_of[register]:
            live |= lane_live
        start = (live & -live).bit_length()
        return start + random.uniform(0, JITTER_POINTS)

    answer: dict[str, str] = {}
    for register in sorted(lanes_of, key=order):
        for base, name in placements.legal[classes[register]].items():
            if not any(
                live & other_defined or defined & other_live
                for unit, (live, defined) in enumerate(lanes_of[register], base)
                for other_live, other_defined in held[unit]
            ):
                answer[f"%{register}"] = name
                for unit, placed in enumerate(lanes_of[register], base):
                    held[unit].append(placed)
                break
        else:
            raise AllocationFailed(f"%{register} fits nowhere")
    return answer
