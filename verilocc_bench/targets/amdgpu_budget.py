"""How many registers an AMDGPU kernel may use, from its attributes.

The rules are LLVM 22's: AMDGPUSubtarget.cpp (waves per execution unit from
the work-group size and `amdgpu-waves-per-eu`), GCNSubtarget.cpp (how
`amdgpu-agpr-alloc`, `amdgpu-num-vgpr` and `amdgpu-num-sgpr` divide and cap
the files), AMDGPUBaseInfo.cpp (counts for a number of waves). The tests
compare them with what `llc` will hand out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verilocc_bench.targets.amdgpu import (
    MAXIMUM_WAVES,
    SCALAR_REGISTERS,
    SGPR_ALLOCATION_GRANULARITY,
    VECTOR_GRANULARITY,
    VECTOR_REGISTERS,
)
from verilocc_bench.targets.target import round_up

__all__ = ["DEFAULT_MAX_THREADS", "Budget", "budget_from_attributes"]

DEFAULT_MAX_THREADS = 1024
"""LLVM's own largest work-group size for a kernel that states none."""

WAVE_SIZE = 64
EXECUTION_UNITS = 4
FILE_SIZE = 256  # VGPRs, and AGPRs, that instructions can address
ADDRESSABLE_SGPRS = 102
TRAP_HANDLER_SGPRS = 16  # set aside a wave on amdhsa


@dataclass(frozen=True, slots=True)
class Budget:
    """Units that a function may use of each file; a unit is 32 bits wide."""

    vgprs: int
    agprs: int
    sgprs: int


def budget_from_attributes(
    arch: str, attributes: Mapping[str, str], max_threads: int | None = None
) -> Budget:
    """The budget of a kernel with those LLVM function attributes.

    `max_threads` overrides the work-group size of the attributes; where
    neither says it, it is 1,024, LLVM's default. Raises ValueError for an
    attribute that is no number.
    """
    if max_threads is None:
        sizes = _pair(attributes.get("amdgpu-flat-work-group-size", ""))
        max_threads = sizes[1] if sizes and sizes[1] else DEFAULT_MAX_THREADS
    least_waves, most_waves = _waves_per_eu(max_threads, attributes.get("amdgpu-waves-per-eu", ""))
    vector = _cap(
        attributes.get("amdgpu-num-vgpr"), 2, _min_vector(most_waves), _max_vector(least_waves)
    )
    vgprs, agprs = _divide(vector, attributes.get("amdgpu-agpr-alloc"))
    return Budget(vgprs, agprs, _scalar(arch, attributes, least_waves, most_waves))


def _pair(text: str) -> tuple[int, int | None] | None:
    parts = [part.strip() for part in text.split(",")]
    if parts == [""]:
        return None
    return int(parts[0]), int(parts[1]) if len(parts) > 1 else None


def _waves_per_eu(max_threads: int, requested_text: str) -> tuple[int, int]:
    waves_per_group = -(-max_threads // WAVE_SIZE)
    implied = max(1, -(-waves_per_group // EXECUTION_UNITS))
    requested = _pair(requested_text)
    if requested is None:
        return implied, MAXIMUM_WAVES
    least, most = requested[0], requested[1] or MAXIMUM_WAVES
    sensible = 1 <= least <= most <= MAXIMUM_WAVES and least >= implied
    return (least, most) if sensible else (implied, MAXIMUM_WAVES)


def _max_vector(waves: int) -> int:
    return VECTOR_REGISTERS // waves // VECTOR_GRANULARITY * VECTOR_GRANULARITY


def _min_vector(waves: int) -> int:
    return 0 if waves >= MAXIMUM_WAVES else _max_vector(waves + 1) + 1


def _cap(requested: str | None, scale: int, least: int, most: int) -> int:
    return most if requested is None else min(max(scale * int(requested), least), most)


def _divide(vector: int, agpr_alloc: str | None) -> tuple[int, int]:
    requested = _pair(agpr_alloc or "")
    if requested is None:
        least_agprs = most_agprs = vector // 2
    else:
        least_agprs = min(round_up(requested[0], 4), FILE_SIZE)
        most_agprs = FILE_SIZE if requested[1] is None else requested[1]
    most_agprs = min(max(least_agprs, most_agprs), vector)
    least_agprs = min(least_agprs, most_agprs)
    vgprs = min(vector - least_agprs, FILE_SIZE)
    return vgprs, min(vector - vgprs, most_agprs)


def _scalar(arch: str, attributes: Mapping[str, str], least_waves: int, most_waves: int) -> int:
    reserved = 6
    if arch == "gfx90a" and "amdgpu-no-flat-scratch-init" in attributes:
        # gfx942 addresses scratch without SGPRs, and LLVM reserves them all the same.
        reserved = 2 if "-xnack" in attributes.get("target-features", "") else 4
    limit = _max_scalar(least_waves)
    requested = int(attributes.get("amdgpu-num-sgpr", 0))
    least = 0 if most_waves >= MAXIMUM_WAVES else _max_scalar(most_waves + 1) + 1
    if requested > reserved and least <= requested <= limit:
        limit = requested
    return min(limit - reserved, ADDRESSABLE_SGPRS)


def _max_scalar(waves: int) -> int:
    available = SCALAR_REGISTERS // waves - TRAP_HANDLER_SGPRS
    return min(available // SGPR_ALLOCATION_GRANULARITY * SGPR_ALLOCATION_GRANULARITY, 112)
