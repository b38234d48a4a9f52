"""How many blocks of a kernel a multiprocessor of an NVIDIA GPU holds at once.

Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the
CUDA occupancy calculator for the granularities.
"""

from __future__ import annotations

from dataclasses import dataclass

from verilocc_bench.targets.nvidia import (
    PARTITIONS,
    REGISTERS_PER_PARTITION,
    THREAD_GRANULARITY,
    WARP_THREADS,
)
from verilocc_bench.targets.target import round_up

_SHARED_GRANULARITY, _SHARED_OF_A_BLOCK = 128, 1024


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """What all blocks share: bytes of shared memory, and places for blocks and warps."""

    shared_bytes: int
    blocks: int = 32
    warps: int = 64

    def holds(self, registers: int, threads: int, shared_bytes: int) -> int:
        """How many blocks fit if each thread has this number of registers."""
        warps = -(-threads // WARP_THREADS)
        per_warp = WARP_THREADS * round_up(registers, THREAD_GRANULARITY)
        by_registers = PARTITIONS * (REGISTERS_PER_PARTITION // per_warp) // warps
        return min(self.blocks, self.warps // warps, by_registers, self.without_registers(
            threads, shared_bytes))  # fmt: skip

    def without_registers(self, threads: int, shared_bytes: int) -> int:
        """How many blocks fit if registers do not count."""
        shared = round_up(shared_bytes + _SHARED_OF_A_BLOCK, _SHARED_GRANULARITY)
        return min(self.blocks, self.warps // -(-threads // WARP_THREADS),
                   self.shared_bytes // shared)  # fmt: skip


MULTIPROCESSORS = {"sm_80": Multiprocessor(164 << 10), "sm_90": Multiprocessor(228 << 10)}
"""The multiprocessor of each architecture."""
