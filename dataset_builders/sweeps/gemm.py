"""The axes of the matrix products."""

from __future__ import annotations

from dataset_builders.sweeps.constraints import (
    local_memory_fits,
    matrix_instruction_fits,
    modifiers_agree,
    native_types,
    products_fit_registers,
    tile_feeds_every_warp,
)
from dataset_builders.sweeps.sweep import BUDGETS, Axis, AxisProduct, axis, joint

_CONSTRAINTS = (
    local_memory_fits,
    tile_feeds_every_warp,
    matrix_instruction_fits,
    products_fit_registers,
    native_types,
    modifiers_agree,
)

_TILES = joint(
    "block_m block_n block_k num_warps",
    (16, 16, 64, 1), (16, 64, 64, 2), (16, 128, 64, 4), (32, 32, 32, 1), (32, 32, 64, 4),
    (32, 64, 32, 2), (64, 32, 64, 4), (32, 128, 64, 4), (64, 64, 16, 4), (64, 64, 32, 4),
    (64, 64, 64, 2), (64, 64, 128, 4), (64, 128, 32, 4), (128, 64, 32, 4), (128, 64, 64, 8),
    (128, 128, 16, 4), (128, 128, 32, 4), (128, 128, 64, 4), (128, 128, 64, 8),
    (64, 256, 32, 4), (256, 64, 32, 4), (128, 256, 32, 4), (256, 128, 32, 4),
    (256, 128, 64, 8), (256, 256, 32, 8),
    (16, 256, 64, 4), (32, 32, 128, 2), (32, 256, 32, 4), (256, 32, 64, 4), (64, 64, 32, 2),
    (64, 128, 64, 4), (128, 64, 64, 4), (128, 128, 32, 8), (64, 256, 64, 8), (256, 64, 64, 8),
    (128, 256, 64, 8),
)  # fmt: skip
_SMALL_TILES = joint(
    "block_m block_n block_k num_warps",
    (16, 16, 128, 1), (16, 64, 128, 4), (16, 128, 64, 4), (32, 64, 64, 4), (64, 32, 64, 2),
    (64, 64, 32, 4), (64, 64, 64, 4), (128, 64, 32, 4), (64, 128, 64, 4), (128, 128, 32, 4),
    (128, 128, 64, 8),
)  # fmt: skip
_TYPES = joint(
    "dtype out_dtype precision",
    ("fp16", "fp16", "ieee"),
    ("bf16", "bf16", "ieee"),
    ("fp16", "fp32", "ieee"),
    ("fp32", "fp32", "ieee"),
    ("fp32", "fp32", "bf16x3"),
    ("int8", "int32", "ieee"),
)
_HALF_TYPES = joint("dtype out_dtype", ("fp16", "fp16"), ("bf16", "bf16"))
_LAYOUTS = joint(
    "transpose_a transpose_b", (False, False), (False, True), (True, False), (True, True)
)
_EDGES = joint("even_mn even_k", (True, True), (False, True), (False, False))
_EPILOGUES = joint(
    "bias activation residual",
    (False, "none", False),
    (True, "none", False),
    (True, "relu", False),
    (True, "gelu", False),
    (False, "silu", False),
    (True, "none", True),
)
_SCHEDULING: tuple[Axis, ...] = (
    axis("num_stages", 1, 2, 3),
    axis("waves_per_eu", 0, 2, 3),
    axis("matrix_instr_nonkdim", 0, 16, 32),
    BUDGETS,
)
_BUFFERS = axis("small_buffers", True, False)

GEMM_PRODUCTS: tuple[AxisProduct, ...] = (
    AxisProduct(
        "gemm",
        (_TILES, _TYPES, _LAYOUTS, _EDGES, _EPILOGUES, *_SCHEDULING, _BUFFERS, axis("kpack", 1, 2)),
        _CONSTRAINTS,
        keep=460,
    ),
    # Rows at any distance: loads of single elements.
    AxisProduct(
        "gemm",
        (_SMALL_TILES, _HALF_TYPES, _LAYOUTS, _EDGES, axis("aligned", False)),
        _CONSTRAINTS,
        keep=24,
        label="unaligned",
    ),
    AxisProduct(
        "gemm_batched",
        (_TILES, _TYPES, _LAYOUTS, _EDGES, _EPILOGUES, *_SCHEDULING),
        _CONSTRAINTS,
        keep=90,
    ),
    AxisProduct(
        "gemm_persistent",
        (_TILES, _TYPES, _LAYOUTS, _EDGES, _EPILOGUES, *_SCHEDULING, axis("group_m", 1, 4, 8)),
        _CONSTRAINTS,
        keep=100,
    ),
    AxisProduct(
        "gemm_split_k",
        (
            _SMALL_TILES,
            joint(
                "dtype out_dtype", ("fp16", "fp16"), ("fp16", "fp32"), ("bf16", "fp32"),
                ("fp32", "fp32"), ("int8", "int32"),
            ),
            _LAYOUTS, _EDGES, axis("split_k", 2, 4, 8), axis("reduction", "atomic", "partial"),
            *_SCHEDULING,
        ),
        _CONSTRAINTS,
        keep=110,
    ),
    AxisProduct(
        "gemm_reduce_partials",
        (
            joint("block_m block_n", (16, 64), (32, 32), (32, 64), (32, 128), (64, 64)),
            _HALF_TYPES, axis("split_k", 2, 4, 8), axis("even_mn", True, False),
            joint("bias activation", (False, "none"), (True, "none"), (True, "gelu")),
        ),
        keep=26,
    ),
    AxisProduct(
        "gemm_gated",
        (
            _TILES, _HALF_TYPES, axis("transpose_b", False, True), _EDGES,
            axis("activation", "silu", "gelu"), *_SCHEDULING,
        ),
        _CONSTRAINTS,
        keep=100,
    ),
    AxisProduct(
        "gemm_quantized",
        (
            _TILES,
            joint(
                "dtype out_dtype", ("int8", "fp16"), ("int8", "bf16"), ("fp8e4b8", "fp16"),
                ("fp8e4b8", "bf16"),
            ),
            _LAYOUTS, _EDGES, axis("scale", "tensor", "channel"), *_SCHEDULING,
        ),
        _CONSTRAINTS,
        keep=90,
    ),
    AxisProduct(
        "gemm_weight_only",
        (
            _SMALL_TILES, _HALF_TYPES, axis("weight_bits", 4, 8),
            axis("grouped_scale", False, True), _EDGES, *_SCHEDULING,
        ),
        _CONSTRAINTS,
        keep=70,
    ),
    AxisProduct(
        "gemm_experts",
        (_SMALL_TILES, _HALF_TYPES, axis("weighted", False, True), _EDGES, *_SCHEDULING),
        _CONSTRAINTS,
        keep=60,
    ),
)  # fmt: skip
"""The products of the sweep `default`, by kernel."""
