"""gfx90a: AMD Instinct MI210, MI250, MI250X (CDNA 2)."""

from verilocc_bench.targets.amdgpu import make_target

GFX90A = make_target(
    "gfx90a",
    '"AMD Instinct MI200" Instruction Set Architecture, Reference Guide',
    "LLVM 22.1.0, llvm/lib/Target/AMDGPU/SIRegisterInfo.td",
)
