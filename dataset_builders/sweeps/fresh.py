"""Sweeps of unseen kernels: drawn anew by a seed, from more values than `default` has.

The products are those of `default` with wider axes. No point is of a sweep
group that `default` or `mini` has. A few still give kernels that are published, because
heads are padded to the same size, say; a build with `--beside` leaves these out. One seed
gives one list of points.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from dataset_builders.sweeps.mini import MINI_POINTS
from dataset_builders.sweeps.point import ARCHITECTURES
from dataset_builders.sweeps.registry import PRODUCTS
from dataset_builders.sweeps.sweep import Axis, Sweep, axis, joint
from verilocc_bench.errors import InputError

FRESH = "fresh"
"""The name for people. In a manifest the SHA-256 of the seed follows, after a colon.

So a dataset does not tell its seed: a board publishes it when it closes.
"""

_SEED = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Gives about 330 points, a tenth of which the compilers or the search for duplicates drop.
_FRACTION = 0.03

_EXTENTS = (16, 32, 64, 128, 256)
_WARPS = axis("num_warps", 1, 2, 4, 8)
_HEADS = joint(
    "head_dim block_d",
    (16, 16), (24, 32), (32, 32), (48, 64), (56, 64), (64, 64), (72, 128), (88, 128), (112, 128),
    (120, 128), (128, 128), (160, 256), (224, 256), (256, 256),
)  # fmt: skip
_ROWS_AND_COLUMNS = (axis("block_m", *_EXTENTS), axis("block_n", *_EXTENTS))
_WIDER: Mapping[tuple[str, ...], tuple[Axis, ...]] = {
    ("block_m", "block_n", "block_k", "num_warps"): (
        *_ROWS_AND_COLUMNS, axis("block_k", 16, 32, 64, 128), _WARPS,
    ),
    ("block_m", "block_n", "num_warps"): (*_ROWS_AND_COLUMNS, _WARPS),
    ("block_h", "block_n", "num_warps"): (
        axis("block_h", 16, 32, 64), axis("block_n", *_EXTENTS), _WARPS,
    ),
    ("block_m", "block_n"): _ROWS_AND_COLUMNS,
    ("block_m",): (axis("block_m", *_EXTENTS),),
    ("head_dim", "block_d"): (_HEADS,),
    ("splits",): (axis("splits", 2, 4, 8, 16, 32, 64),),
    ("split_k",): (axis("split_k", 2, 3, 4, 6, 8, 16),),
    ("group_m",): (axis("group_m", 1, 2, 4, 6, 8, 16),),
    ("query_group",): (axis("query_group", 1, 2, 4, 6, 8),),
    ("page_size",): (axis("page_size", 0, 8, 16, 32, 64, 128),),
    ("num_stages",): (axis("num_stages", 1, 2, 3, 4),),
    ("bias", "activation", "residual"): (
        axis("bias", False, True), axis("activation", "none", "relu", "gelu", "silu"),
        axis("residual", False, True),
    ),
    ("bias", "activation"): (
        axis("bias", False, True), axis("activation", "none", "relu", "gelu", "silu"),
    ),
}  # fmt: skip
"""The axes that take the place of an axis of `default`, by its names."""


def is_fresh(name: str) -> bool:
    """True if `name` names a sweep of fresh points."""
    return name.startswith(f"{FRESH}:")


@cache
def fresh_sweep(seed: str) -> Sweep:
    """The sweep of a seed: letters, digits, `.`, `_` and `-`, at most 64. Raises InputError."""
    if not _SEED.fullmatch(seed):
        raise InputError(f"the seed {seed!r} is not 1 to 64 letters, digits, '.', '_' or '-'")
    products = tuple(
        replace(
            product.scaled(_FRACTION),
            axes=tuple(wider for a in product.axes for wider in _WIDER.get(a.names, (a,))),
            constraints=(
                *product.constraints,
                lambda point: point.group not in _published_groups(),
            ),
            label=f"{product.label} {FRESH} {seed}",
        )
        for product in PRODUCTS
    )
    digest = hashlib.sha256(seed.encode()).hexdigest()
    return Sweep(f"{FRESH}:{digest}", "points that no published split has", ARCHITECTURES, products)


@cache
def _published_groups() -> frozenset[str]:
    products = (*PRODUCTS, *MINI_POINTS)
    return frozenset(
        point.group for arch in ARCHITECTURES for each in products for point in each.points(arch)
    )
