"""What a number of registers means for the files of a group."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.model import PlacementModel
from verilocc_bench.allocators.search.placing import Shapes
from verilocc_bench.analysis import VECTOR
from verilocc_bench.analysis.lower_bounds.shapes import fixed_ends, shapes_of_value

__all__ = ["scalar_shapes", "used_by_file", "vector_shapes"]

Integers = NDArray[np.int64]


def used_by_file(model: PlacementModel, bases: Integers) -> dict[str, int]:
    """For each file of the group the highest unit that a placement names, and one."""
    used = {}
    for name, (first, end) in model.file_ends.items():
        inside = (bases >= first) & (bases < end)
        ends = bases[inside] + model.last[inside] + 1
        used[name] = int(ends.max()) - first if len(ends) else 0
    return used


def vector_shapes(model: PlacementModel) -> Shapes:
    """Shapes of the scored files, by the target's own count.

    Where there are two (VGPRs and AGPRs), of the shapes of one number the one
    with the most VGPRs is taken: what can be in either file finds as much
    room in the sum, and what cannot, more.
    """
    function, target = model.problem.function, model.problem.target
    fixed = fixed_ends(function)
    budget = {file.name: file.count for file in function.files}

    def used(bases: Integers) -> int:
        own = used_by_file(model, bases)
        return target.vector_use({name: max(own.get(name, 0), fixed[name]) for name in fixed})

    def limits(registers: int) -> Mapping[str, int]:
        shapes = shapes_of_value(function, target, VECTOR, registers)
        return dict(shapes[0]) if shapes else dict.fromkeys(model.files, 0)

    most = target.vector_use({**fixed, **{name: budget[name] for name in model.files}})
    return Shapes(limits, used, most)


def scalar_shapes(model: PlacementModel) -> Shapes:
    """Shapes of other files: the first counts, the others come along."""
    fixed = fixed_ends(model.problem.function)
    budget = {file.name: file.count for file in model.problem.function.files}
    first = model.files[0]

    def used(bases: Integers) -> int:
        return max(used_by_file(model, bases)[first], fixed[first])

    return Shapes(lambda registers: {first: registers}, used, budget[first])
