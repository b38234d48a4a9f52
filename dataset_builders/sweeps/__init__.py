"""Declarative sweeps of kernel parameters; nothing here needs Triton."""

from dataset_builders.sweeps.point import ARCHITECTURES, SweepPoint, make_point, point_from_json
from dataset_builders.sweeps.registry import SWEEPS, sweep_named
from dataset_builders.sweeps.sweep import Sweep

__all__ = [
    "ARCHITECTURES",
    "SWEEPS",
    "Sweep",
    "SweepPoint",
    "make_point",
    "point_from_json",
    "sweep_named",
]
