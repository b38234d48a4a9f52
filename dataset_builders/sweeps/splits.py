"""The split of a row: a function of its sweep point alone.

Some points are set aside for test splits that ask for generalization: whole
ranges of tile shapes, head dimensions, sizes and data types that no training
row has. Every other sweep group goes to `train`, `validation` or `test` as a
whole, so that a kernel in `test` has no near twin in `train`. A group goes to
the same split in every sweep and on every architecture.

Systematic sampling gives eight, one and one of ten groups to these splits: it
sorts groups by kind, element and size of tile, and takes every tenth. So the
three splits have similar shares of each. Random choice among about a hundred
groups would not give that.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from functools import cache

from dataset_builders.sweeps import SweepPoint, sweep_named
from dataset_builders.sweeps.experts import ExpertPoint
from dataset_builders.sweeps.fresh import is_fresh

SPLITS: dict[str, str] = {
    "train": "eight of ten sweep groups",
    "validation": "one of ten sweep groups",
    "test": "one of ten sweep groups: kernels like those of train, whose groups train has not",
    "test_unseen_tile_shape": "tiles of 64x128 and 16x128 (matrix products), 64x32 (attention) "
    "and 16x128 (decoding), which no training row has",
    "test_unseen_head_dimension": "attention heads of 80 and 96, which no training row has",
    "test_larger": "tiles of 32,768 elements and more: rows times columns, of attention times "
    "columns and padded head; training rows have fewer",
    "test_unseen_data_type": "products of int8 and 8-bit floats; training rows have fp16, bf16 "
    "and fp32",
}
"""Every split with its description, in the order of tables."""

TRAINING = ("train", "validation")
"""The splits that a model may learn from, or be chosen with."""

_LARGE = 32_768
_UNSEEN_TYPES = {"int8", "fp8e4b8", "fp8e5b16"}
_UNSEEN_HEADS = {80, 96}
_UNSEEN_TILES = {
    "gemm": {(64, 128), (16, 128)},
    "mha_forward": {(64, 32)},
    "mha_backward_dkdv": {(64, 32)},
    "mha_backward_dq": {(64, 32)},
    "mha_decode": {(16, 128)},
}
"""By kernel, or by family for matrix products."""

_PERIOD = 10
_TENTHS = {4: "validation", 9: "test"}


def split_of(sweep_name: str, point: SweepPoint | ExpertPoint) -> str:
    """The split of a point.

    All points of the sweep `mini` and of fresh sweeps, and all kernels of experts, are
    `test`: they are there to be evaluated on.
    """
    if isinstance(point, ExpertPoint) or sweep_name == "mini" or is_fresh(sweep_name):
        return "test"
    return (
        set_aside(point)
        or _splits_of_groups().get(point.group)
        or _TENTHS.get(int(_digest(point.group)[:16], 16) % _PERIOD, "train")
    )


def set_aside(point: SweepPoint) -> str | None:
    """The generalization split whose rule a point meets first; None if it meets none."""
    return next((split for split, rule in _RULES.items() if rule(point)), None)


def _has_unseen_tile(point: SweepPoint) -> bool:
    unseen = _UNSEEN_TILES.get(point.kernel) or _UNSEEN_TILES.get(point.family, set())
    return "block_n" in point.parameters and point.tile in unseen


_RULES: dict[str, Callable[[SweepPoint], bool]] = {
    "test_unseen_data_type": lambda point: point.parameters["dtype"] in _UNSEEN_TYPES,
    "test_unseen_head_dimension": lambda p: p.parameters.get("head_dim") in _UNSEEN_HEADS,
    "test_larger": lambda point: _accumulated_elements(point) >= _LARGE,
    "test_unseen_tile_shape": _has_unseen_tile,
}


def _accumulated_elements(point: SweepPoint) -> int:
    """Elements that a program accumulates or keeps for the softmax; 0 for kernels without a tile.

    Results of matrix products; outputs and scores of attention.
    """
    if "block_n" not in point.parameters:
        return 0
    rows, columns = point.tile
    if point.family == "gemm":
        return rows * columns * (2 if point.kernel == "gemm_gated" else 1)
    return rows * (columns + point.parameters.integer("block_d"))


@cache
def _splits_of_groups() -> dict[str, str]:
    """The groups of the sweep `default` that no rule sets aside, by systematic sampling."""
    points = sweep_named("default").points()
    groups = {point.group for point in points if set_aside(point) is None}
    ordered = sorted(groups, key=_rank)
    return {group: _TENTHS.get(i % _PERIOD, "train") for i, group in enumerate(ordered)}


def _rank(group: str) -> tuple[str, int, str]:
    stratum, _, shape = group.rpartition("/")
    size = math.prod(int(extent) for extent in shape.split("x"))
    return stratum, size, _digest(group)


def _digest(group: str) -> str:
    return hashlib.sha256(f"split of {group}".encode()).hexdigest()
