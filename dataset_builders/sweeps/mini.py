"""The points of the sweep `mini`, each chosen by hand.

Measured with LLVM 22.1 on both AMD targets: 140 to 3,800 instructions. LLVM
allocates the last three of theirs by splitting and spilling alone, all others
without. With ptxas 13.5 on sm_80: 190 to 2,830 instructions, of which ptxas
spills in two of the points that all targets share, and in six of its own; the
last three of its own ask for fewer registers than the code was compiled for. On sm_90
six small ones stand for both ways to its code: 340 to 620 instructions.
"""

from __future__ import annotations

from dataset_builders.sweeps.point import ArchitectureName
from dataset_builders.sweeps.sweep import AxisProduct, fixed

_AMD: tuple[ArchitectureName, ...] = ("gfx90a", "gfx942")
_SHARED: tuple[ArchitectureName, ...] = (*_AMD, "sm_80")

_POINTS: tuple[AxisProduct, ...] = (
    fixed("gemm_reduce_partials", block_m=16, block_n=64, bias=True, activation="gelu"),
    fixed("mha_decode_combine", head_dim=128, block_d=128, splits=16, num_warps=1),
    fixed("gemm", block_m=16, block_n=16, block_k=64, num_warps=1, transpose_b=True),
    fixed("mha_backward_dq", block_n=32, window=True, num_stages=1),
    fixed(
        "gemm", dtype="int8", out_dtype="int32", block_k=64, transpose_a=True, transpose_b=True
    ),
    fixed("mha_decode", block_n=32, num_warps=1, page_size=16, query_group=4),
    fixed(
        "gemm", dtype="fp32", out_dtype="fp32", block_m=32, block_n=32, num_warps=1,
        even_mn=False, even_k=False,
    ),
    fixed(
        "mha_forward", dtype="bf16", block_m=32, block_n=32, head_dim=32, block_d=32, num_warps=2
    ),
    fixed("gemm_split_k", block_m=32, block_k=64, transpose_a=True),
    fixed("mha_backward_dkdv", dtype="bf16", block_m=32, causal=True, query_group=4, num_stages=1),
    fixed(
        "gemm_weight_only", block_m=16, block_n=128, block_k=64, weight_bits=4, grouped_scale=True
    ),
    fixed("mha_forward", block_m=128, softcap=True, num_stages=1),
    fixed(
        "gemm", block_m=128, block_n=128, block_k=64, num_warps=8, transpose_b=True,
        bias=True, activation="gelu",
    ),
    fixed(
        "mha_forward", block_n=32, causal=True, variable_length=True, even=False, alibi=True,
        peel=True,
    ),
    fixed("gemm_gated", dtype="bf16", out_dtype="bf16", block_m=128, even_mn=False),
    fixed(
        "mha_forward", dtype="bf16", block_m=128, block_n=32, head_dim=128, block_d=128,
        query_group=8, even=False, peel=True, statistics=True, waves_per_eu=2,
    ),
    fixed(
        "gemm", block_m=128, block_n=256, transpose_a=True, bias=True, activation="gelu",
        even_mn=False, even_k=False, small_buffers=False, num_stages=1,
        matrix_instr_nonkdim=32, kpack=2,
    ).only(*_AMD),  # 32 registers and 9 KB of spill code on sm_80: see constraints.py
    # More registers live at once than there are.
    fixed("mha_forward", block_m=128, head_dim=128, block_d=128, causal=True),
    fixed("mha_backward_dkdv", causal=True),
    fixed(
        "gemm", dtype="fp32", out_dtype="fp32", block_m=128, block_n=128, waves_per_eu=4
    ).only(*_AMD),
)  # fmt: skip

# With register budgets: moderately tight ones first, then such that make ptxas spill.
_NVIDIA_POINTS: tuple[AxisProduct, ...] = (
    fixed(
        "mha_decode", dtype="bf16", head_dim=128, block_d=128, page_size=16, window=True,
        maxnreg=96,
    ),
    fixed(
        "mha_backward_dq", dtype="bf16", block_m=32, block_n=32, head_dim=128, block_d=128,
        maxnreg=128,
    ),
    fixed(
        "gemm_split_k", dtype="bf16", block_m=64, block_n=32, block_k=64, reduction="partial",
        maxnreg=48,
    ),
    fixed(
        "gemm", num_stages=3, bias=True, activation="silu", even_mn=False, even_k=False, maxnreg=64
    ),
    fixed(
        "mha_forward", dtype="bf16", head_dim=128, block_d=128, query_group=8, causal=True,
        even=False, maxnreg=168,
    ),
    fixed("gemm", dtype="fp32", out_dtype="fp32", precision="bf16x3", maxnreg=96),
    fixed("mha_backward_dkdv", causal=True, maxnreg=128),
    fixed(
        "gemm", block_m=128, block_n=256, num_warps=8, num_stages=1, transpose_a=True,
        bias=True, activation="gelu", even_mn=False, even_k=False, maxnreg=168,
    ),
    # Compiled with plenty, asked for less: the split track.
    fixed("gemm", block_m=128, block_n=128, block_k=64, num_warps=8, asked_maxnreg=96),
    fixed("mha_forward", causal=True, query_group=4, asked_maxnreg=128),
    fixed("mha_backward_dkdv", dtype="bf16", block_m=32, asked_maxnreg=168),
)  # fmt: skip

# mma.sync where Triton writes for sm_80 (capability 80), wgmma in the others.
_SM_90_POINTS: tuple[AxisProduct, ...] = (
    fixed(
        "gemm", block_m=16, block_n=16, block_k=64, num_warps=1, transpose_b=True, capability=80
    ),
    fixed(
        "mha_forward", dtype="bf16", block_m=32, block_n=32, head_dim=32, block_d=32, num_warps=2,
        capability=80,
    ),
    fixed(
        "gemm_split_k", dtype="bf16", block_m=64, block_n=32, block_k=64, reduction="partial",
        maxnreg=48, capability=0,
    ),
    fixed("mha_backward_dq", block_n=32, window=True, num_stages=1, capability=0),
    fixed(
        "gemm", dtype="int8", out_dtype="int32", block_k=64, transpose_a=True, transpose_b=True,
        capability=0,
    ),
    fixed("mha_backward_dq", block_n=32, window=True, num_stages=1, capability=80),
)  # fmt: skip

MINI_POINTS: tuple[AxisProduct, ...] = (
    *(product if product.archs else product.only(*_SHARED) for product in _POINTS),
    *(product.only("sm_80") for product in _NVIDIA_POINTS),
    *(product.only("sm_90") for product in _SM_90_POINTS),
)
