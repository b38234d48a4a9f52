"""What the targets of NVIDIA share: register files, granularity, and the tables of operations.

Sources
- CUDA C++ Programming Guide, "Compute Capabilities", table "Technical
  Specifications per Compute Capability": 64 K 32-bit registers a
  multiprocessor, 255 registers a thread.
- CUDA Binary Utilities, "Instruction Set Reference": the register files R,
  UR, P, UP; RZ, URZ, PT and UPT are constants, R255, UR63, P7 and UP7.
- Jia, Maggioni, Staiger and Scarpazza, "Dissecting the NVIDIA Volta GPU
  Architecture via Microbenchmarking" (arXiv 1804.06826), section 3.4: two
  register banks, 64 bits wide, by the parity of the register; a reuse cache
  for each operand slot.
- Occupancy: the CUDA occupancy calculator's rule for compute capability 8.0 to
  9.0: warps get registers in units of 256, and each of the four partitions of a
  multiprocessor has 16,384.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial

from verilocc_bench.ir import FixedUnits
from verilocc_bench.targets.target import Target, TargetFile, round_up

COMPILER_REGISTERS = 2
"""ptxas counts this many registers beyond the highest one that it names. The limit of a
launch includes them."""

RESERVED = (FixedUnits("R", 1, 1), FixedUnits("UR", 0, 4))
"""R1 is the stack pointer. ptxas 13.5 never names UR0 to UR3 (measured)."""

PARTITIONS = 4
REGISTERS_PER_PARTITION = 16384
WARP_THREADS = 32
THREAD_GRANULARITY = 8


def vector_use(used: Mapping[str, int]) -> int:
    """The highest R plus one."""
    return used.get("R", 0)


def occupancy_warps(maximum_warps: int, used: Mapping[str, int]) -> int:
    """Warps per multiprocessor that the registers allow, at most `maximum_warps`."""
    registers = round_up(vector_use(used) + COMPILER_REGISTERS, THREAD_GRANULARITY)
    warps = REGISTERS_PER_PARTITION // (WARP_THREADS * registers)
    return min(maximum_warps, PARTITIONS * warps)


def nvidia_target(name: str, maximum_warps: int) -> Target:
    """The target of an architecture whose multiprocessor holds at most `maximum_warps`."""

    return Target(
        name=name,
        vendor="nvidia",
        files=(
            TargetFile("R", 255, "R", tuple_alignment=4, banks=2),
            TargetFile("UR", 63, "U", tuple_alignment=4),
            TargetFile("P", 7, "P", tuple_alignment=1),
            TargetFile("UP", 7, "Q", tuple_alignment=1),
        ),
        vector_files=("R",),
        vector_use=vector_use,
        occupancy=partial(occupancy_warps, maximum_warps),
        occupancy_unit="warps",
        maximum_occupancy=maximum_warps,
        sources=(
            "CUDA C++ Programming Guide, Compute Capabilities",
            "CUDA Binary Utilities, Instruction Set Reference",
            "arXiv 1804.06826, section 3.4",
        ),
        # No class spans two files; the names are the assembler's own.
        class_letters={"U": "UR", "Q": "UP"},
        copy_opcodes=frozenset({"MOV", "UMOV", "IMAD.MOV", "IMAD.MOV.U32"}),
        guard_files=frozenset({"P", "UP"}),
        bank_ports=2,
        reuse_slots=3,
        terminators=re.compile(
            r"(BRA|BRX|BRXU|JMP|JMX|JMXU|RET|EXIT|KILL|BSYNC|BREAK|CALL|RTT)(\..*)?"
        ),
        # Their other sources are immediates and the constant bank.
        constant_opcodes=frozenset({"MOV", "UMOV", "IMAD.MOV", "IMAD.MOV.U32", "ULDC", "ULDC.64"}),
        move_sources={
            # Nothing is moved to uniform registers: the threads of a warp may have parted.
            "R": frozenset({"R", "UR"}),
            "P": frozenset({"P", "UP"}),
        },
        spill_files=frozenset({"R"}),
    )
