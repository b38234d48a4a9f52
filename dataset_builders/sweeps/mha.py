"""The axes of attention."""

from __future__ import annotations

from dataset_builders.sweeps.constraints import (
    attention_fits_registers,
    local_memory_fits,
    matrix_instruction_fits,
    modifiers_agree,
    tile_feeds_every_warp,
)
from dataset_builders.sweeps.sweep import BUDGETS, Axis, AxisProduct, axis, joint

_CONSTRAINTS = (
    local_memory_fits,
    tile_feeds_every_warp,
    matrix_instruction_fits,
    attention_fits_registers,
    modifiers_agree,
)

_TYPES = axis("dtype", "fp16", "bf16")
# Heads whose size is not a power of two are padded to the next one.
_HEADS = joint(
    "head_dim block_d",
    (32, 32), (32, 32), (40, 64), (64, 64), (64, 64), (64, 64), (80, 128), (96, 128),
    (128, 128), (128, 128), (128, 128), (192, 256), (256, 256),
)  # fmt: skip
_TILES = joint(
    "block_m block_n num_warps",
    (16, 32, 1), (16, 64, 2), (32, 32, 2), (32, 64, 4), (64, 32, 4), (64, 64, 4), (64, 128, 4),
    (128, 32, 4), (128, 64, 4), (128, 64, 8), (128, 128, 8), (256, 64, 8),
)  # fmt: skip
_BACKWARD_TILES = joint(
    "block_m block_n num_warps",
    (16, 32, 2), (32, 32, 4), (32, 64, 4), (64, 32, 4), (64, 64, 4), (64, 64, 8), (64, 128, 8),
    (128, 64, 8),
)  # fmt: skip
_GROUPS = axis("query_group", 1, 4, 8)
_VISIBILITY = joint("causal window", (False, False), (True, False), (True, True), (False, True))
_SCHEDULING: tuple[Axis, ...] = (
    axis("num_stages", 1, 2),
    axis("waves_per_eu", 0, 2, 3),
    axis("matrix_instr_nonkdim", 0, 16, 32),
    BUDGETS,
)
_BUFFERS = axis("small_buffers", True, False)

MHA_PRODUCTS: tuple[AxisProduct, ...] = (
    AxisProduct(
        "mha_forward",
        (
            _TILES, _HEADS, _TYPES, _GROUPS, _VISIBILITY,
            joint("even variable_length", (True, False), (False, False), (False, True)),
            joint("alibi matrix_bias", (False, False), (True, False), (False, True)),
            axis("softcap", False, True), axis("peel", False, True),
            axis("statistics", False, True), *_SCHEDULING, _BUFFERS,
        ),
        _CONSTRAINTS,
        keep=350,
    ),
    # What most models run: no bias, no cap.
    AxisProduct(
        "mha_forward",
        (
            _TILES, _HEADS, _TYPES, _GROUPS, axis("causal", False, True),
            joint("even variable_length", (True, False), (False, False), (False, True)),
            axis("peel", False, True), axis("statistics", False, True), *_SCHEDULING,
        ),
        _CONSTRAINTS,
        keep=220,
        label="common",
    ),
    AxisProduct(
        "mha_backward_dkdv",
        (
            _BACKWARD_TILES, _HEADS, _TYPES, _GROUPS, _VISIBILITY, axis("even", True, False),
            *_SCHEDULING,
        ),
        _CONSTRAINTS,
        keep=160,
    ),
    AxisProduct(
        "mha_backward_dq",
        (
            _BACKWARD_TILES, _HEADS, _TYPES, _GROUPS, _VISIBILITY, axis("even", True, False),
            *_SCHEDULING,
        ),
        _CONSTRAINTS,
        keep=150,
    ),
    AxisProduct(
        "mha_backward_preprocess",
        (_HEADS, axis("block_m", 16, 32, 64, 128), _TYPES, axis("even", True, False)),
        keep=24,
    ),
    AxisProduct(
        "mha_decode",
        (
            joint(
                "block_h block_n num_warps",
                (16, 32, 1), (16, 64, 2), (16, 64, 4), (16, 128, 4), (32, 64, 4),
            ),
            _HEADS, _TYPES, axis("query_group", 1, 4, 8, 16), axis("page_size", 0, 16, 64),
            axis("window", False, True), axis("softcap", False, True), *_SCHEDULING,
        ),
        _CONSTRAINTS,
        keep=110,
    ),
    AxisProduct(
        "mha_decode_combine",
        (_HEADS, axis("splits", 4, 8, 16, 32), _TYPES, axis("num_warps", 1, 4)),
        keep=26,
    ),
)  # fmt: skip
"""The products of the sweep `default`, by kernel."""
