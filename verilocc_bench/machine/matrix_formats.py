"""The number formats of matrix instructions.

Sources: "AMD Instinct MI200" and "AMD Instinct MI300" Instruction Set Architecture
guides, chapter Matrix Arithmetic Instructions. fp8 and bf8 on gfx942 are the
formats with one zero and one NaN (E4M3 with bias 8, E5M2 with bias 16): MI300 guide,
"FP8 and BF8 data formats"; P. Micikevicius et al. and Graphcore/AMD, arXiv
2206.02915. XF32 ignores the low 13 bits of its inputs: MI300 guide, V_MFMA_F32_16X16X8_XF32
("mantissa is truncated to 10 bits").
"""

from __future__ import annotations

from enum import Enum


class Format(Enum):
    """A number format, by the name that mnemonics use."""

    F64 = "f64"
    F32 = "f32"
    XF32 = "xf32"
    F16 = "f16"
    BF16 = "bf16"
    FP8 = "fp8"
    BF8 = "bf8"
    I8 = "i8"
    I32 = "i32"

    @property
    def bits(self) -> int:
        """The width of one element."""
        return _BITS[self]


_BITS = {
    Format.F64: 64, Format.F32: 32, Format.XF32: 32, Format.I32: 32,
    Format.F16: 16, Format.BF16: 16, Format.FP8: 8, Format.BF8: 8, Format.I8: 8,
}  # fmt: skip
