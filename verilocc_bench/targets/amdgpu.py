"""What gfx90a and gfx942 share: register files, occupancy, banks.

Sources
- "AMD Instinct MI200" and "AMD Instinct MI300" Instruction Set Architecture
  reference guides, section 3 (kernel state: 256 VGPRs and 256 AGPRs a lane
  in a unified file of 512, 102 SGPRs, VCC as SGPR 106 and 107).
- LLVM 22, llvm/lib/Target/AMDGPU: SIRegisterInfo.td (classes and tuples),
  Utils/AMDGPUBaseInfo.cpp and GCNSubtarget.cpp (granularities, waves).
- Register use: the code object's accum_offset has a granularity of 4
  (AMDGPU user guide, "Code Object V3 Kernel Descriptor", GFX90A).
"""

from __future__ import annotations

from collections.abc import Mapping

from verilocc_bench.targets.target import Target, TargetFile, round_up

__all__ = ["MAXIMUM_WAVES", "SGPR_ALLOCATION_GRANULARITY", "VECTOR_REGISTERS", "make_target"]

VECTOR_REGISTERS = 512  # per SIMD lane, VGPRs and AGPRs together
VECTOR_GRANULARITY = 8
ACCUMULATOR_OFFSET_GRANULARITY = 4
SCALAR_REGISTERS = 800  # per SIMD
SGPR_ALLOCATION_GRANULARITY = 16
RESERVED_SCALAR_REGISTERS = 6  # VCC, FLAT_SCRATCH and XNACK_MASK are counted with the SGPRs
MAXIMUM_WAVES = 8
VECTOR_BANKS = 4


def vector_use(used: Mapping[str, int]) -> int:
    """VGPRs where no AGPR is used, else the AGPRs after the VGPRs, rounded up to 4."""
    vgprs, agprs = used.get("v", 0), used.get("a", 0)
    return round_up(vgprs, ACCUMULATOR_OFFSET_GRANULARITY) + agprs if agprs else vgprs


def occupancy_waves(used: Mapping[str, int]) -> int:
    """Waves per SIMD that the registers allow, at most 8; 0 where they exceed the file."""
    waves = MAXIMUM_WAVES
    if vector := vector_use(used):
        waves = min(waves, VECTOR_REGISTERS // round_up(vector, VECTOR_GRANULARITY))
    scalar = round_up(used.get("s", 0) + RESERVED_SCALAR_REGISTERS, SGPR_ALLOCATION_GRANULARITY)
    return min(waves, SCALAR_REGISTERS // scalar)


def make_target(name: str, *sources: str) -> Target:
    """A CDNA 2 or CDNA 3 target."""
    return Target(
        name=name,
        vendor="amd",
        files=(
            TargetFile("v", 256, "V", tuple_alignment=2, banks=VECTOR_BANKS),
            TargetFile("a", 256, "A", tuple_alignment=2, banks=VECTOR_BANKS),
            TargetFile("s", 102, "S", tuple_alignment=4),
            TargetFile("vcc", 2, "C", tuple_alignment=2, unit_names=("vcc_lo", "vcc_hi")),
        ),
        vector_files=("v", "a"),
        vector_use=vector_use,
        occupancy=occupancy_waves,
        occupancy_unit="waves",
        sources=sources,
        # Nearly every scalar class takes VCC too: S; G is an SGPR and no VCC.
        class_letters={"CS": "S", "S": "G"},
        copy_opcodes=frozenset({"COPY"}),
    )
