"""What a call destroys on gfx90a and gfx942: LLVM's register masks, by their names.

A register mask lists the registers that a callee keeps. Here is what it does not keep of
the registers that can be assigned. Source: CSR_AMDGPU and its variants in LLVM 22's
AMDGPUCallingConv.td; the tests compare them with LLVM's machine verifier.
"""

from __future__ import annotations

from verilocc_bench.ir import FixedUnits

_RUN = 8  # from v40 on, eight VGPRs are kept and eight are not, in turns
_VECTOR = (
    FixedUnits("v", 0, 40),
    *(FixedUnits("v", first, _RUN) for first in range(48, 256, 2 * _RUN)),
)
_ACCUMULATORS = (FixedUnits("a", 0, 256),)
_FEW_ACCUMULATORS = (FixedUnits("a", 0, 32),)
_SCALAR = (
    FixedUnits("s", 0, 30),
    *(FixedUnits("s", first, _RUN) for first in range(40, 96, 2 * _RUN)),
)
_SCALAR_GFX = (FixedUnits("s", 0, 4), FixedUnits("s", 32, 32))
_VCC = (FixedUnits("vcc", 0, 2),)

_MASKS = {
    "csr_amdgpu": _VECTOR + _ACCUMULATORS + _SCALAR + _VCC,
    "csr_amdgpu_gfx90ainsts": _VECTOR + _FEW_ACCUMULATORS + _SCALAR + _VCC,
    "csr_amdgpu_si_gfx": _VECTOR + _ACCUMULATORS + _SCALAR_GFX + _VCC,
    "csr_amdgpu_si_gfx_gfx90ainsts": _VECTOR + _FEW_ACCUMULATORS + _SCALAR_GFX + _VCC,
    "csr_amdgpu_noregs": (
        FixedUnits("v", 0, 256),
        FixedUnits("a", 0, 256),
        FixedUnits("s", 0, 102),
        *_VCC,
    ),
}


def destroyed_units(mask: str) -> tuple[FixedUnits, ...] | None:
    """The units that a call with a register mask of this name destroys, file by file.

    None for another name, and for a mask of its own (`CustomRegMask`): such a one tells
    what a certain callee destroys, which another allocation of the callee may change.
    """
    return _MASKS.get(mask)
