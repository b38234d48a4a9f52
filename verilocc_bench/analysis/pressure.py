"""Register pressure: how many lanes must be in registers at each point.

Only lanes that a definition surely reaches are counted. Lanes that are live
together at a point and defined on every path to it cannot share a unit, so
the maximum is a lower bound on the registers of any allocation. A lane whose
class draws on several files counts for the group of those files, if they are one group.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from verilocc_bench.analysis.liveness import Liveness
from verilocc_bench.ir import Function
from verilocc_bench.targets import Target

VECTOR = "vector"
"""The group of the files whose use is scored."""


@dataclass(frozen=True, slots=True)
class Pressure:
    """The pressure of each group of files.

    `curves[group][point]` is the number of lanes, `maximum[group]` the largest
    of them, `peak[group]` the first point that has it. The group `vector` is
    all scored files together; every other file is a group by its own name. A
    class that draws on several other files counts for the first, one of vector files and others
    for none.
    """

    curves: Mapping[str, tuple[int, ...]]
    maximum: Mapping[str, int]
    peak: Mapping[str, int]


def measure_pressure(function: Function, target: Target, liveness: Liveness) -> Pressure:
    """The pressure curves of a function, in lanes. Linear in the segments of liveness."""
    group_of_file = {
        file.name: VECTOR if file.name in target.vector_files else file.name
        for file in target.files
    }
    groups: list[str | None] = []
    for register_class in function.virtual_registers:
        found = [group_of_file[file] for file in register_class.files]
        # It may lie outside the vector files, and then counts nowhere.
        group = found[0] if found and (VECTOR not in found or {*found} == {VECTOR}) else None
        groups += [group] * register_class.width
    groups += [group_of_file[file] for file, _ in liveness.named_units]
    # A unit that is destroyed needs no register.
    groups += [None] * (liveness.lane_count - liveness.destroyed_from)
    changes = {group: [0] * (len(liveness.points) + 1) for group in group_of_file.values()}
    for lane, first, last, surely in liveness.segments:
        group = groups[lane]
        if surely and group is not None:
            change = changes[group]
            change[first] += 1
            change[last + 1] -= 1
    curves = {group: tuple(accumulate(change[:-1])) for group, change in changes.items()}
    maximum = {group: max(curve) for group, curve in curves.items()}
    peak = {group: curve.index(maximum[group]) for group, curve in curves.items()}
    return Pressure(curves, maximum, peak)
