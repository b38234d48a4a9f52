"""What a number of registers means for the files of a group.

Scored files need not be of one group: where no class draws on both VGPRs and
AGPRs, each has a model of its own. The score counts them together all the same,
so that what one model may use depends on what the other one takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.allocators.search.model import PlacementModel
from verilocc_bench.allocators.search.placing import Limits, Shapes
from verilocc_bench.analysis import VECTOR
from verilocc_bench.analysis.lower_bounds import Shape
from verilocc_bench.analysis.lower_bounds.shapes import fixed_ends, shapes_of_value

__all__ = ["least_ends", "scalar_shapes", "used_by_file", "vector_shapes"]

Integers = NDArray[np.int64]

MOST_WAYS = 4
"""Shapes of one number of registers that are searched."""


def used_by_file(model: PlacementModel, bases: Integers) -> dict[str, int]:
    """For each file of the group the highest unit that a placement names, and one."""
    used = {}
    for name, (first, end) in model.file_ends.items():
        inside = (bases >= first) & (bases < end)
        ends = bases[inside] + model.last[inside] + 1
        used[name] = int(ends.max()) - first if len(ends) else 0
    return used


def least_ends(model: PlacementModel) -> dict[str, int]:
    """For each file of the group how many units the widest node that must be there needs."""
    first_base = model.domain.argmax(axis=1)
    ends = np.where(model.domain.any(axis=1), first_base + model.last + 1, 0)
    least = {}
    for name, (first, end) in model.file_ends.items():
        outside = model.domain.copy()
        outside[:, first:end] = False
        there = ends[~outside.any(axis=1)]
        least[name] = max(int(there.max(initial=0)) - first, 0)
    return least


def vector_shapes(
    model: PlacementModel, beside: Mapping[str, int], is_refuted: Callable[[Shape], bool]
) -> Shapes:
    """Shapes of the scored files, by the target's own count.

    `beside[file]`: how many units are taken of the scored files that are not the
    model's. A number of registers leaves a model of one file what the target
    counts beside that.

    Where the model has several files (VGPRs and AGPRs, and something that may be
    in either), a number has a shape for each way to divide it. If no node must be
    in a later file, the shape with the most of the first is the only one: what
    can be in any file finds as much room in the sum, and what cannot, more. Else
    those are taken that `is_refuted` does not rule out, and of them first the one
    with the most of the first file.
    """
    function, target = model.problem.function, model.problem.target
    fixed = fixed_ends(function)
    budget = {file.name: max(file.count, fixed[file.name]) for file in function.files}
    first, end = model.file_ends[model.files[0]]
    divisible = len(model.files) > 1 and not model.domain[:, first:end].any(axis=1).all()

    def used(bases: Integers) -> int:
        own = {**beside, **used_by_file(model, bases)}
        return target.vector_use({name: max(own.get(name, 0), fixed[name]) for name in fixed})

    def shapes_with(registers: int, taken: Mapping[str, int]) -> Iterator[Shape]:
        for shape in shapes_of_value(function, target, VECTOR, registers):
            limits = dict(shape)
            if all(limits[file] >= count for file, count in taken.items()):
                yield shape

    def own(shape: Shape) -> Limits:
        return {file: limit for file, limit in shape if file in model.files}

    def ways(registers: int) -> Sequence[Limits]:
        shapes = shapes_with(registers, beside)
        if divisible:
            kept = (shape for shape in shapes if not is_refuted(shape))
            return [own(shape) for shape in islice(kept, MOST_WAYS)]
        # Of one file, the shape that leaves it most.
        return sorted(map(own, shapes), key=lambda limits: -limits[model.files[0]])[:1]

    def around(bases: Integers | None, registers: int) -> Limits:
        placed = {} if bases is None else used_by_file(model, bases)
        shapes = map(own, shapes_with(registers, {**beside, **placed}))
        return max(shapes, key=lambda limits: limits[model.files[0]], default={})

    most = target.vector_use({**fixed, **beside, **{name: budget[name] for name in model.files}})
    return Shapes(ways, around, used, most)


def scalar_shapes(model: PlacementModel) -> Shapes:
    """Shapes of other files: the first counts, the others come along."""
    fixed = fixed_ends(model.problem.function)
    budget = {file.name: file.count for file in model.problem.function.files}
    first = model.files[0]

    def used(bases: Integers) -> int:
        return max(used_by_file(model, bases)[first], fixed[first])

    most = max(budget[first], fixed[first])
    return Shapes(
        lambda registers: [{first: registers}], lambda _, registers: {first: registers}, used, most
    )
