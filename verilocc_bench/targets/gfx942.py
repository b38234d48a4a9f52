"""gfx942: AMD Instinct MI300A, MI300X, MI325X (CDNA 3)."""

from verilocc_bench.targets.amdgpu import make_target

GFX942 = make_target(
    "gfx942",
    '"AMD Instinct MI300" Instruction Set Architecture, Reference Guide',
    "LLVM 22.1.0, llvm/lib/Target/AMDGPU/SIRegisterInfo.td",
)
