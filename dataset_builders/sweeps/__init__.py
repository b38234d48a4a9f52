"""Declarative sweeps of kernel parameters; nothing here needs Triton."""

from dataset_builders.sweeps.point import (
    ARCHITECTURES,
    ArchitectureName,
    Parameters,
    SweepPoint,
    make_point,
    point_from_json,
)
from dataset_builders.sweeps.registry import SWEEPS, sweep_named
from dataset_builders.sweeps.sweep import Axis, AxisProduct, Sweep, axis, fixed, joint

__all__ = [
    "ARCHITECTURES",
    "SWEEPS",
    "ArchitectureName",
    "Axis",
    "AxisProduct",
    "Parameters",
    "Sweep",
    "SweepPoint",
    "axis",
    "fixed",
    "joint",
    "make_point",
    "point_from_json",
    "sweep_named",
]
