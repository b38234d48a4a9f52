"""GPU architectures as data."""

from verilocc_bench.errors import InputError
from verilocc_bench.targets.gfx90a import GFX90A
from verilocc_bench.targets.gfx942 import GFX942
from verilocc_bench.targets.sm_80 import SM_80
from verilocc_bench.targets.sm_89 import SM_89
from verilocc_bench.targets.sm_90 import SM_90
from verilocc_bench.targets.target import MaskChange, Target, TargetFile

__all__ = ["PUBLISHED", "TARGETS", "MaskChange", "Target", "TargetFile", "get_target"]

TARGETS: dict[str, Target] = {
    target.name: target for target in (GFX90A, GFX942, SM_80, SM_89, SM_90)
}

PUBLISHED = ("gfx90a", "gfx942", "sm_80")
"""The architectures of the published data and of the boards. Code of the others is read, too."""


def get_target(name: str, source: str | None = None) -> Target:
    """The target of that name. Raises InputError that lists the known ones."""
    try:
        return TARGETS[name]
    except KeyError:
        known = ", ".join(TARGETS)
        raise InputError(f"unknown architecture {name!r}; known: {known}", source=source) from None
