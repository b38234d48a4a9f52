"""The register budget of an AMDGPU kernel, from its attributes.

The rules are LLVM 22's: AMDGPUSubtarget.cpp (waves per execution unit from the
work-group size and `amdgpu-waves-per-eu`), GCNSubtarget.cpp (how `amdgpu-agpr-alloc`,
`amdgpu-num-vgpr` and `amdgpu-num-sgpr` divide and cap the files), AMDGPUBaseInfo.cpp
(counts for a number of waves). The tests compare them with the registers that `llc`
assigns.
"""

from __future__ import annotations

import re
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

DEFAULT_MAX_THREADS = 1024
"""LLVM's largest work-group size for a kernel that does not state one."""

WAVE_SIZE = 64
EXECUTION_UNITS = 4
FILE_SIZE = 256  # VGPRs, and AGPRs, that instructions can address
ADDRESSABLE_SGPRS = 102
LDS_BYTES = 65536  # a compute unit
MAXIMUM_BARRIERS = 16  # a compute unit
TRAP_HANDLER_SGPRS = 16  # set aside a wave on amdhsa


_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")


@dataclass(frozen=True, slots=True)
class Budget:
    """The budget of a function.

    `vgprs`, `agprs` and `sgprs` are units of 32 bits. `waves` is the most waves that run
    on an execution unit, however few registers each takes: LLVM allocates all registers
    that would not give room to a further wave.
    """

    vgprs: int
    agprs: int
    sgprs: int
    waves: int


def budget_from_attributes(
    arch: str,
    attributes: Mapping[str, str],
    max_threads: int | None = None,
) -> Budget:
    """The budget of a kernel with those LLVM function attributes.

    `max_threads` overrides the work-group size of the attributes; without both it is
    1,024, LLVM's default. Raises ValueError for an attribute that is not a number.
    """
    sizes = _group_sizes(attributes, max_threads)
    least_waves, most_waves = _waves_per_eu(sizes, attributes)
    vector = _max_vector(least_waves)
    requested = attributes.get("amdgpu-num-vgpr")
    if requested is not None:
        least = 0 if most_waves >= MAXIMUM_WAVES else _max_vector(most_waves + 1) + 1
        vector = min(max(2 * _number(requested), least), vector)
    vgprs, agprs = _divide(vector, attributes.get("amdgpu-agpr-alloc"))
    sgprs = _scalar(arch, attributes, least_waves, most_waves)
    return Budget(vgprs, agprs, sgprs, most_waves)


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"expected a number, not {text[:40]!r}")
    return int(text)


def _pair(text: str) -> tuple[int, int | None] | None:
    first, _, second = (part.strip() for part in text.partition(","))
    if not first:
        return None
    return _number(first), _number(second) if second else None


def _group_sizes(attributes: Mapping[str, str], max_threads: int | None) -> tuple[int, int]:
    if max_threads is not None:
        return 1, max_threads
    sizes = _pair(attributes.get("amdgpu-flat-work-group-size", ""))
    if sizes is None or sizes[1] is None or not 1 <= sizes[0] <= sizes[1] <= DEFAULT_MAX_THREADS:
        return 1, DEFAULT_MAX_THREADS
    return sizes[0], sizes[1]


def _waves_per_eu(sizes: tuple[int, int], attributes: Mapping[str, str]) -> tuple[int, int]:
    """The least and the most waves per execution unit that LLVM makes room for.

    A request counts only if it is at least what the largest group needs and at most
    what LDS and the group sizes allow.
    """
    lds = _pair(attributes.get("amdgpu-lds-size", ""))
    allowed = _most_waves(sizes, lds[0] if lds else 0)
    needed = min(-(-_waves(sizes[1]) // EXECUTION_UNITS), allowed)
    requested = _pair(attributes.get("amdgpu-waves-per-eu", "")) or (1, None)
    least, most = requested[0], MAXIMUM_WAVES if requested[1] is None else requested[1]
    if needed <= least <= min(allowed, most) and most <= MAXIMUM_WAVES:
        return least, min(most, allowed)
    return needed, allowed


def _waves(threads: int) -> int:
    return -(-threads // WAVE_SIZE)


def _most_waves(sizes: tuple[int, int], lds_bytes: int) -> int:
    """The most waves per execution unit that LDS, barriers and the group sizes allow."""
    slots = MAXIMUM_WAVES * EXECUTION_UNITS
    by_lds = LDS_BYTES // max(lds_bytes, 1)
    if not by_lds:
        return 1

    def groups(waves: int) -> int:
        return min(slots if waves == 1 else min(slots // waves, MAXIMUM_BARRIERS), by_lds)

    small, large = _waves(sizes[0]), _waves(sizes[1])
    most = small * groups(small)
    if large * groups(large) >= most:
        most = large * groups(large)
    else:
        # Groups a little larger than the smallest may fill the slots better.
        most += groups(small) * min((slots - most) // groups(small), large - small)
    return min(max(-(-most // EXECUTION_UNITS), 1), MAXIMUM_WAVES)


def _max_vector(waves: int) -> int:
    return VECTOR_REGISTERS // waves // VECTOR_GRANULARITY * VECTOR_GRANULARITY


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
        # gfx942 addresses scratch without SGPRs, but LLVM still reserves them.
        reserved = 2 if "-xnack" in attributes.get("target-features", "") else 4
    limit = _max_scalar(least_waves)
    requested = _number(attributes.get("amdgpu-num-sgpr", "0"))
    least = 0
    if most_waves < MAXIMUM_WAVES:
        least = min(_max_scalar(most_waves + 1) + 1, ADDRESSABLE_SGPRS)
    if requested > reserved and least <= requested <= limit:
        limit = requested
    return min(limit - reserved, ADDRESSABLE_SGPRS)


def _max_scalar(waves: int) -> int:
    available = SCALAR_REGISTERS // waves - TRAP_HANDLER_SGPRS
    return min(available // SGPR_ALLOCATION_GRANULARITY * SGPR_ALLOCATION_GRANULARITY, 112)
