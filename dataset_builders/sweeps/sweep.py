"""Sweeps: products of axes under constraints, in an order that does not depend on the machine."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, TypeAlias

from dataset_builders.kernels.specifications import ParameterValue
from dataset_builders.sweeps.point import (
    ARCHITECTURES,
    ArchitectureName,
    SweepPoint,
    architecture_named,
    make_point,
)

Constraint: TypeAlias = Callable[[SweepPoint], bool]

# The most combinations that are tried for each point that is kept. Constraints
# drop most combinations of some products; this only bounds the search.
_DRAWS_PER_POINT = 100

# Triton writes PTX with wgmma for sm_90a alone; ptxas makes mma.sync code of sm_80's PTX.
_CAPABILITIES: Mapping[ArchitectureName, tuple[int, ...]] = {"sm_90": (0, 80)}


@dataclass(frozen=True, slots=True)
class Axis:
    """Parameters that change together, and their values."""

    names: tuple[str, ...]
    values: tuple[tuple[ParameterValue, ...], ...]

    def __post_init__(self) -> None:
        for value in self.values:
            if len(value) != len(self.names):
                raise ValueError(f"axis {' '.join(self.names)} has the value {value!r}")


def axis(name: str, *values: ParameterValue) -> Axis:
    """An axis of one parameter."""
    return Axis((name,), tuple((value,) for value in values))


def joint(names: str, *values: tuple[ParameterValue, ...]) -> Axis:
    """An axis of several parameters, named with spaces between them, that change together."""
    return Axis(tuple(names.split()), values)


@dataclass(frozen=True, slots=True)
class AxisProduct:
    """All combinations of some axes that meet the constraints, or a sample of them.

    With `keep`, that many points for each architecture are drawn. Each axis goes
    through its values in an order that a hash shuffles anew in every round, so
    that all values come up equally often. The draws depend on the axis's own
    names and values alone: another axis does not change them, a smaller `keep`
    takes the first of them, and all architectures get the same points if the
    constraints allow it. Products of one kernel draw differently by their
    labels. `archs` excludes all other architectures. Where Triton has several ways to an
    architecture (`_CAPABILITIES`), each point stands once for each.
    """

    kernel: str
    axes: tuple[Axis, ...]
    constraints: tuple[Constraint, ...] = ()
    keep: int | None = None
    label: str = ""
    archs: tuple[ArchitectureName, ...] | None = None

    @cache  # noqa: B019  products are few and stay; several sweeps have the same ones
    def points(self, arch: ArchitectureName) -> tuple[SweepPoint, ...]:
        """The points for one architecture, each once."""
        if self.archs is not None and arch not in self.archs:
            return ()
        found: dict[SweepPoint, None] = {}
        for combination in self._combinations():
            changes: dict[str, ParameterValue] = {}
            for a, values in zip(self.axes, combination, strict=True):
                changes.update(zip(a.names, values, strict=True))
            point = make_point(arch, self.kernel, changes)
            if all(allows(point) for allows in self.constraints):
                found[point] = None
            if len(found) == self.keep:
                break
        ways = _CAPABILITIES.get(arch)
        if ways is None or any("capability" in a.names for a in self.axes):
            return tuple(found)
        return tuple(
            make_point(arch, self.kernel, {**point.parameters, "capability": way})
            for point in found
            for way in ways
        )

    def scaled(self, fraction: float) -> AxisProduct:
        """The same product with `keep` (which it must have) scaled by a fraction, at least 2."""
        if self.keep is None:
            raise ValueError("only a sampled product can be scaled")
        return replace(self, keep=max(2, round(self.keep * fraction)))

    def only(self, *archs: ArchitectureName) -> AxisProduct:
        """The same product for these architectures alone."""
        return replace(self, archs=archs)

    def _combinations(self) -> Iterator[tuple[tuple[ParameterValue, ...], ...]]:
        if self.keep is None:
            return itertools.product(*(a.values for a in self.axes))
        draws = [self._draws(a) for a in self.axes]
        return itertools.islice(zip(*draws, strict=True), _DRAWS_PER_POINT * self.keep)

    def _draws(self, drawn: Axis) -> Iterator[tuple[ParameterValue, ...]]:
        for turn in itertools.count():
            seed = f"{self.kernel} {self.label} {' '.join(drawn.names)} {turn}"
            yield from sorted(
                drawn.values, key=lambda v: hashlib.sha256(f"{seed} {v!r}".encode()).digest()
            )


def fixed(kernel: str, **parameters: ParameterValue) -> AxisProduct:
    """A product of one point: the kernel's defaults with these changes."""
    return AxisProduct(kernel, tuple(axis(name, value) for name, value in parameters.items()))


@dataclass(frozen=True, slots=True)
class Sweep:
    """A named list of products.

    The order "listed" is product by product, with the architectures of a point
    next to each other. The order "shuffled" alternates between architectures
    and families, and sorts by hash within each, so that a prefix is varied.
    """

    name: str
    description: str
    archs: tuple[ArchitectureName, ...]
    products: tuple[AxisProduct, ...]
    order: Literal["listed", "shuffled"] = "shuffled"

    def points(self, archs: Sequence[str] | None = None) -> tuple[SweepPoint, ...]:
        """The points for these architectures (the sweep's own by default), each once.

        The order in which they are named changes nothing. Raises InputError for an
        unknown architecture.
        """
        chosen = self.archs if archs is None else [architecture_named(a) for a in archs]
        return _points(self, tuple(a for a in ARCHITECTURES if a in chosen))


@cache
def _points(sweep: Sweep, archs: tuple[ArchitectureName, ...]) -> tuple[SweepPoint, ...]:
    lanes: list[tuple[SweepPoint, ...]] = []
    for arch in archs:
        points = dict.fromkeys(p for product in sweep.products for p in product.points(arch))
        if sweep.order == "listed":
            lanes.append(tuple(points))
            continue
        by_family: dict[str, list[SweepPoint]] = {}
        for point in points:
            by_family.setdefault(point.family, []).append(point)
        lanes += (
            tuple(sorted(by_family[family], key=lambda point: point.digest))
            for family in sorted(by_family)
        )
    turns = itertools.zip_longest(*lanes)
    return tuple(point for turn in turns for point in turn if point is not None)


# What one would write: nothing, mostly; everything that a thread can name; or
# what lets 3, 4, 5 or 8 blocks of 128 threads run on a multiprocessor at once.
# The last ask for less than the code was compiled for, which mostly makes a
# problem of the split track. A value that stands several times is drawn as often.
BUDGETS = joint(
    "maxnreg asked_maxnreg",
    (0, 0), (0, 0), (0, 0), (0, 0), (255, 0), (168, 0), (128, 0), (96, 0), (64, 0),
    (0, 168), (0, 128), (0, 96),
)  # fmt: skip
"""The axis of register budgets, which AMD points do not have."""
