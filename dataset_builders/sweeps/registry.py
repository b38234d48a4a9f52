"""The sweeps by name."""

from __future__ import annotations

from dataset_builders.sweeps.gemm import GEMM_PRODUCTS
from dataset_builders.sweeps.mha import MHA_PRODUCTS
from dataset_builders.sweeps.mini import MINI_POINTS
from dataset_builders.sweeps.point import ARCHITECTURES
from dataset_builders.sweeps.sweep import AxisProduct, Sweep
from verilocc_bench.errors import InputError

PRODUCTS: tuple[AxisProduct, ...] = (*GEMM_PRODUCTS, *MHA_PRODUCTS)
"""The products of the sweep `default`."""

_SMALL_FRACTION = 0.045

SWEEPS: dict[str, Sweep] = {
    sweep.name: sweep
    for sweep in (
        Sweep(
            "mini",
            "a few kernels of every kind and size, chosen by hand; ships inside the package",
            ARCHITECTURES,
            MINI_POINTS,
            order="listed",
        ),
        Sweep(
            "small",
            "a sample of `default`, about 500 points, for everyday work",
            ARCHITECTURES,
            tuple(product.scaled(_SMALL_FRACTION) for product in PRODUCTS),
        ),
        Sweep("default", "the published data set", ARCHITECTURES, PRODUCTS),
    )
}
"""Every sweep, by name."""


def sweep_named(name: str) -> Sweep:
    """The sweep with this name. Raises InputError if there is none."""
    if name not in SWEEPS:
        raise InputError(f"unknown sweep {name!r}; known are {', '.join(SWEEPS)}")
    return SWEEPS[name]
