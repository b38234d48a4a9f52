"""Turns a number of registers into limits on the files of a group.

The scored files may belong to different groups: if no class draws on both VGPRs
and AGPRs, each file has its own model. The score still counts them together, so
the limits of one model depend on the registers of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

import numpy as np

from verilocc_bench.allocators.search.placement_model import Integers, PlacementModel
from verilocc_bench.allocators.search.placing import Limits, Shapes
from verilocc_bench.analysis import VECTOR
from verilocc_bench.analysis.lower_bounds import Shape
from verilocc_bench.analysis.lower_bounds.shapes import shapes_of_value

MOST_WAYS = 4
"""The most shapes to search for one number of registers."""


def used_by_file(model: PlacementModel, bases: Integers) -> dict[str, int]:
    """For each file of the group the highest unit of a placement plus one."""
    used = {}
    for name, (first, end) in model.file_ends.items():
        inside = (bases >= first) & (bases < end)
        ends = bases[inside] + model.last[inside] + 1
        used[name] = int(ends.max()) - first if len(ends) else 0
    return used


def least_ends(model: PlacementModel) -> dict[str, int]:
    """For each file of the group the units that its widest node without another file needs."""
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

    `beside[file]` is the number of units taken in scored files outside the model.
    A model of one file may use what the target's count leaves beside them.

    If the model has several files (VGPRs, AGPRs and a class that draws on both), a
    number has a shape for each way to divide it. If no node needs a later file,
    only the shape with the most units of the first file is searched: nodes of
    several files have the same room in the sum, and nodes of the first file have
    more. Otherwise the shapes are those that `is_refuted` does not rule out, and
    the one with the most units of the first file comes first.
    """
    function, target = model.problem.function, model.problem.target
    fixed = model.problem.fixed_ends
    budget = {file.name: max(file.count, fixed[file.name]) for file in function.files}
    first, end = model.file_ends[model.files[0]]
    divisible = len(model.files) > 1 and not model.domain[:, first:end].any(axis=1).all()

    def used(bases: Integers) -> int:
        own = {**beside, **used_by_file(model, bases)}
        return target.vector_use({name: max(own.get(name, 0), fixed[name]) for name in fixed})

    def shapes_with(registers: int, taken: Mapping[str, int]) -> Iterator[Shape]:
        for shape in shapes_of_value(model.problem, VECTOR, registers):
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
        # A single file: the shape that leaves it the most.
        return sorted(map(own, shapes), key=lambda limits: -limits[model.files[0]])[:1]

    def around(bases: Integers | None, registers: int) -> Limits:
        placed = {} if bases is None else used_by_file(model, bases)
        shapes = map(own, shapes_with(registers, {**beside, **placed}))
        return max(shapes, key=lambda limits: limits[model.files[0]], default={})

    most = target.vector_use({**fixed, **beside, **{name: budget[name] for name in model.files}})
    return Shapes(ways, around, used, most)


def scalar_shapes(model: PlacementModel) -> Shapes:
    """Shapes of unscored files: the first file counts; the others keep their whole budget."""
    fixed = model.problem.fixed_ends
    budget = {file.name: file.count for file in model.problem.function.files}
    first = model.files[0]

    def used(bases: Integers) -> int:
        return max(used_by_file(model, bases)[first], fixed[first])

    most = max(budget[first], fixed[first])
    return Shapes(
        lambda registers: [{first: registers}], lambda _, registers: {first: registers}, used, most
    )
