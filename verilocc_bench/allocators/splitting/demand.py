"""The lanes that need registers at each position of a function.

Every instruction has two positions: position 2i of a block stands before
instruction i (when it reads its uses and writes its early clobbers), position
2i + 1 after it. A unit that is put away and brought back around an instruction is
in a register at both, at one, or at neither.

Cost: one count of bits for each position.
"""

from __future__ import annotations

from verilocc_bench.allocators.splitting.split_flow import LaneMasks
from verilocc_bench.analysis import AllocationProblem


def live_masks(problem: AllocationProblem) -> list[int]:
    """The lanes that are live at each point, as bit masks."""
    liveness = problem.liveness
    toggles: list[list[int]] = [[] for _ in range(len(liveness.points) + 1)]
    for lane, first, last, _ in liveness.segments:
        toggles[first].append(lane)
        toggles[last + 1].append(lane)
    masks: list[int] = []
    mask = 0
    for lanes in toggles[:-1]:
        for lane in lanes:
            mask ^= 1 << lane
        masks.append(mask)
    return masks


def lane_counts(
    problem: AllocationProblem, masks: LaneMasks, live: list[int], lanes: int
) -> list[list[int]]:
    """The number of these lanes that need registers, at each position of each block."""
    counts: list[list[int]] = []
    for block, after in enumerate(problem.liveness.after):
        held = masks.held[block]
        row: list[int] = []
        previous = -1  # at the start of a block every held lane may be live
        for index, point in enumerate(after):
            before = previous & held[index] & lanes
            count = before.bit_count()
            if masks.effects[block][index].early:
                count = max(count, (live[point - 1] & lanes).bit_count())
            row += [count, (live[point] & lanes).bit_count()]
            previous = live[point]
        counts.append(row)
    return counts


def lanes_of(problem: AllocationProblem, files: tuple[str, ...], moved: frozenset[int]) -> int:
    """The lanes of some files as a bit mask: fixed ones, and the lanes of virtual registers.

    A virtual register counts for the first file of its class. Registers in `moved`
    do not count.
    """
    liveness = problem.liveness
    mask = 0
    for register, register_class in enumerate(problem.function.virtual_registers):
        if register_class.files and register_class.files[0] in files and register not in moved:
            mask |= ((1 << register_class.width) - 1) << liveness.lane_offsets[register]
    for lane, (file, _) in enumerate(liveness.fixed_lanes, liveness.virtual_lane_count):
        if file in files:
            mask |= 1 << lane
    return mask
