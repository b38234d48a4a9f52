"""Kernels for which denormal numbers of 32 bits count as zero, or without IEEE mode.

The kernel descriptor says so (FP_DENORM, IEEE_MODE), and LLVM's default for compute kernels does
not.
Sources: "Floating-Point Denormals" and the descriptor's COMPUTE_PGM_RSRC1 in the "AMD Instinct
MI300" Instruction Set Architecture guide and in LLVM's AMDGPU usage guide.
"""

from __future__ import annotations

import re

from verilocc_bench.machine import fields as f
from verilocc_bench.machine.code_rows import CodeRow, Unsupported

_ROUNDING_BITS = 0x0F
_KEEPS_32, _KEEPS_16_AND_64 = 0x30, 0xC0
_REFUSED = (
    "v_div_scale_f32", "v_div_fmas_f32", "v_div_fixup_f32", "v_dot2_f32_f16", "v_dot2c_f32_f16",
    "ds_add_f32", "ds_add_rtn_f32", "ds_min_f32", "ds_min_rtn_f32", "ds_max_f32",
    "ds_max_rtn_f32",
)  # fmt: skip
_MINIMUM = re.compile(r"v_(pk_)?(min|max|med)3?_f")
_OTHER_RESULTS = ("v_frexp_exp_i32_f32", "v_fma_mixlo", "v_fma_mixhi", "v_mad_mixlo", "v_mad_mixhi")


def is_supported_mode(float_mode: int) -> bool:
    """True if all numbers are rounded to nearest, and denormals of 16 and 64 bits are kept.

    Denormals of 32 bits are all kept or all flushed.
    """
    return (
        not float_mode & _ROUNDING_BITS
        and float_mode & _KEEPS_16_AND_64 == _KEEPS_16_AND_64
        and float_mode & _KEEPS_32 in {0, _KEEPS_32}
    )


def flushes_denormals(float_mode: int) -> bool:
    """True if denormal numbers of 32 bits count as zero, in sources and in results."""
    return not float_mode & _KEEPS_32


def apply_mode(name: str, row: CodeRow, *, flushes: bool, ieee: bool) -> None:
    """Marks what the kernel's modes change of an opcode, whose name has no encoding.

    Raises Unsupported for opcodes that have rules of their own.
    """
    if not ieee and _MINIMUM.match(name):
        row[f.FLAGS] |= f.QUIETS_SOURCES
    if flushes:
        _flush_denormals(name, row)


def _flush_denormals(name: str, row: CodeRow) -> None:
    if name in _REFUSED:
        raise Unsupported("float32 denormals that count as zero")
    if row[f.GROUP] == f.COMPARE and name.endswith("_f32") and "_class_" not in name:
        row[f.FLAGS] |= f.FLUSHES_SOURCE * 3
    if row[f.GROUP] != f.FLOAT_32:
        return
    if not name.startswith("v_cvt_f32_"):
        row[f.FLAGS] |= f.FLUSHES_SOURCE * (1 if name.startswith("v_ldexp") else 7)
    if name.startswith("v_cvt_f32_") or not name.startswith(("v_cvt_", *_OTHER_RESULTS)):
        row[f.FLAGS] |= f.FLUSHES_RESULT
