"""Features of a function that tell how hard its allocation is; each takes next to no time."""

from __future__ import annotations

from collections import Counter

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.interference import live_spans

__all__ = ["FEATURES", "features_of"]

FEATURES = (
    "vector_registers",
    "points",
    "blocks",
    "deepest_loop",
    "pressure",
    "slack",
    "alignment",
    "share_of_pairs",
    "share_of_wide",
    "share_of_points_near_peak",
    "share_of_peak_in_tuples",
    "mean_span",
)
"""Their names, in order. Shares and the mean span (of all points) are from 0 to 1."""

_NEAR = 0.95


def features_of(problem: AllocationProblem) -> tuple[float, ...]:
    """The features of a function's scored registers, in the order of FEATURES."""
    function, target = problem.function, problem.target
    vector = set(target.vector_files)
    widths = {
        number: c.width
        for number, c in enumerate(function.virtual_registers)
        if vector.intersection(c.files)
    }
    count, points = max(len(widths), 1), len(problem.liveness.points)
    curve, peak = problem.pressure.curves[VECTOR], problem.pressure.maximum[VECTOR]
    budget = target.vector_use({file.name: file.count for file in function.files})
    by_width = Counter(widths.values())
    spans = live_spans(problem.liveness)
    covered = sum(spans[number][1] - spans[number][0] + 1 for number in widths)
    return (
        float(len(widths)),
        float(points),
        float(len(function.blocks)),
        float(max(problem.loop_depths)),
        float(peak),
        float(budget - peak),
        float(max(target.file(name).tuple_alignment for name in vector)),
        by_width[2] / count,
        sum(n for width, n in by_width.items() if width > 2) / count,
        sum(lanes >= _NEAR * peak for lanes in curve) / points,
        _tuple_share(problem, widths),
        covered / (count * points),
    )


def _tuple_share(problem: AllocationProblem, widths: dict[int, int]) -> float:
    """Of the lanes live at the peak of the scored registers the share that tuples have."""
    peak = problem.pressure.peak[VECTOR]
    liveness = problem.liveness
    lanes = tuples = 0
    for number, width in widths.items():
        first = liveness.lane_offsets[number]
        live = sum(mask >> peak & 1 for mask in liveness.live[first : first + width])
        lanes += live
        tuples += live if width > 1 else 0
    return tuples / max(lanes, 1)
