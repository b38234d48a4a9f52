"""The matrix products of CUTLASS that are compiled: its own tiles, with variants of each part.

Tiles, their stages and their warps are those that CUTLASS's own generator of its
library lists for this architecture (`cutlass_library/generator.py`, the functions
`GenerateSM80_…`): what its authors compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dataset_builders.kernels.specifications import ParameterValue
from dataset_builders.sweeps.experts import ExpertPoint, make_expert_point

_F16_TILES = (
    "256x128x32 3 4x2", "128x256x32 3 2x4", "256x64x32 3 4x1", "256x64x32 4 4x1",
    "64x256x32 4 1x4", "128x128x32 3 2x2", "128x128x32 4 2x2", "128x128x32 5 2x2",
    "128x64x32 6 2x2", "64x128x32 6 2x2", "64x64x32 10 2x2", "256x128x64 3 4x2",
    "128x256x64 3 2x4", "256x64x64 4 4x1", "64x256x64 4 1x4", "128x128x64 4 2x2",
    "256x64x64 3 4x1", "64x256x64 3 1x4", "128x128x64 3 2x2", "128x64x64 3 2x2",
    "64x128x64 3 2x2", "64x64x64 5 2x2",
)  # fmt: skip
_TF32_TILES = (
    "256x128x16 3 4x2", "128x256x16 3 2x4", "256x64x16 4 4x1", "64x256x16 4 1x4",
    "128x128x16 5 2x2", "128x128x16 4 2x2", "128x128x16 3 2x2", "128x64x16 6 2x2",
    "64x128x16 6 2x2", "64x64x16 10 2x2", "256x128x32 3 4x2", "128x256x32 3 2x4",
    "256x64x32 4 4x1", "64x256x32 4 1x4", "128x128x32 4 2x2", "128x128x32 3 2x2",
    "128x64x32 3 2x2", "64x128x32 3 2x2", "64x64x32 5 2x2",
)  # fmt: skip
_THREE_TF32_TILES = (
    "128x128x16 4 4x2", "128x128x16 3 4x2", "256x64x16 3 4x2", "64x256x16 3 2x4",
    "128x64x16 4 2x2", "64x128x16 4 2x2", "64x64x16 3 2x2", "128x128x32 3 4x2",
    "256x64x32 3 4x2", "64x256x32 3 2x4", "128x64x32 3 2x2", "64x128x32 3 2x2",
    "64x64x32 3 2x2",
)  # fmt: skip
_F64_TILES = (
    "128x128x16 3 4x2", "256x64x16 3 4x2", "64x256x16 3 2x4", "256x32x16 3 4x1",
    "32x256x16 3 1x4", "128x64x16 3 2x2", "64x128x16 3 2x2", "64x64x16 4 2x2",
    "64x32x16 4 2x2", "32x64x16 4 2x2", "32x32x16 5 2x2", "16x32x16 5 1x2",
    "32x16x16 5 2x1",
)  # fmt: skip
_S8_TILES = (
    "256x128x64 3 4x2", "128x256x64 3 2x4", "256x64x64 4 4x1", "64x256x64 4 1x4",
    "256x32x64 4 4x1", "32x256x64 4 1x4", "128x128x64 5 2x2", "128x64x64 6 2x2",
    "64x128x64 6 2x2", "128x32x64 6 4x1", "32x128x64 6 1x4", "64x64x64 10 2x2",
    "256x128x128 3 4x2", "128x256x128 3 2x4", "256x64x128 4 4x1", "64x256x128 4 1x4",
    "256x32x128 4 4x1", "32x256x128 4 1x4", "128x128x128 4 2x2", "128x64x128 3 2x2",
    "64x128x128 3 2x2", "128x32x128 4 4x1", "32x128x128 4 1x4", "64x64x128 5 2x2",
)  # fmt: skip
_F32_TILES = (
    "256x128x8 5 4x2", "128x256x8 5 2x4", "128x128x8 5 4x2", "256x128x8 4 4x2",
    "128x256x8 4 2x4", "128x128x8 4 4x2", "128x64x8 5 2x2", "64x128x8 5 2x2",
    "64x64x8 5 2x1", "128x32x8 5 2x1", "32x128x8 5 1x2",
)  # fmt: skip
TILES: Mapping[str, Sequence[str]] = {
    "f16": _F16_TILES,
    "bf16": _F16_TILES[::3],
    "tf32": _TF32_TILES,
    "3xtf32": _THREE_TF32_TILES,
    "f64": _F64_TILES,
    "s8": _S8_TILES[::2],
    "f32": _F32_TILES[::2],
    "f16_f16": _F16_TILES[::4],
}
"""By type: tile, stages and warps along its rows and columns.

`3xtf32` are 32-bit floats as products of three pairs of TF32, `f32` are products
without the matrix unit, `f16_f16` accumulates in 16 bits, all other floats in 32.
"""

_LAYOUTS = ("nn", "nt", "tt")
_OTHER_LAYOUTS: Mapping[str, Sequence[str]] = {
    "f16": ("128x128x32 4 2x2", "256x128x32 3 4x2"),
    "tf32": ("128x128x16 4 2x2",),
    "f64": ("64x64x16 4 2x2",),
    "f32": ("128x128x8 5 4x2",),
}
_EPILOGUE_NAMES = ("relu", "leaky_relu", "gelu", "silu", "sigmoid", "hard_swish")
_EPILOGUE_TILES = ("128x128x32 4 2x2", "64x64x32 10 2x2")
_SCHEDULES: Mapping[str, Sequence[tuple[str, str]]] = {
    "cutlass_gemm_split_k_serial": (
        ("f16", "128x128x32 4 2x2"), ("f16", "64x64x64 5 2x2"), ("bf16", "256x128x32 3 4x2"),
        ("tf32", "128x64x16 6 2x2"), ("f64", "64x64x16 4 2x2"), ("s8", "128x64x64 6 2x2"),
    ),
    "cutlass_gemm_split_k_parallel": (
        ("f16", "128x128x32 4 2x2"), ("f16", "64x64x64 5 2x2"), ("bf16", "256x128x32 3 4x2"),
        ("tf32", "128x64x16 6 2x2"), ("f64", "64x64x16 4 2x2"), ("f32", "128x64x8 5 2x2"),
    ),
    "cutlass_gemm_universal": (
        ("f16", "128x128x32 4 2x2"), ("f16", "256x128x32 3 4x2"), ("bf16", "64x64x64 5 2x2"),
        ("tf32", "128x128x16 4 2x2"), ("3xtf32", "128x64x16 4 2x2"), ("f64", "64x64x16 4 2x2"),
        ("s8", "128x128x64 5 2x2"), ("f32", "128x128x8 4 4x2"),
    ),
    "cutlass_gemm_stream_k": (
        ("f16", "128x128x32 4 2x2"), ("f16", "256x128x32 3 4x2"), ("f16", "64x64x32 10 2x2"),
        ("bf16", "128x256x32 3 2x4"), ("tf32", "128x128x16 4 2x2"), ("tf32", "256x128x16 3 4x2"),
        ("3xtf32", "128x64x16 4 2x2"), ("f64", "64x64x16 4 2x2"), ("s8", "128x128x64 5 2x2"),
    ),
    "cutlass_gemm_batched": (
        ("f16", "128x128x32 4 2x2"), ("tf32", "128x64x16 6 2x2"), ("f64", "32x32x16 5 2x2"),
        ("f32", "64x64x8 5 2x1"),
    ),
}  # fmt: skip


def cutlass_points() -> tuple[ExpertPoint, ...]:
    """All candidates, each once, in a fixed order."""
    return tuple(dict.fromkeys(_points()))


def _points() -> Iterator[ExpertPoint]:
    for element, tiles in TILES.items():
        yield from (_point("cutlass_gemm", element, tile) for tile in tiles)
    for element, tiles in _OTHER_LAYOUTS.items():
        for tile in tiles:
            yield from (_point("cutlass_gemm", element, tile, layout=layout) for layout in _LAYOUTS)
    for tile in _EPILOGUE_TILES:
        yield from (_point("cutlass_gemm", "f16", tile, epilogue=name) for name in _EPILOGUE_NAMES)
    for kernel, variants in _SCHEDULES.items():
        yield from (_point(kernel, element, tile) for element, tile in variants)


def _point(
    kernel: str, element: str, tile: str, *, layout: str = "tn", epilogue: str = "linear"
) -> ExpertPoint:
    shape, stages, warps = tile.split()
    parameters: dict[str, ParameterValue] = {
        "dtype": element,
        "layout": layout,
        "tile": shape,
        "stages": int(stages),
        "warps": warps,
        "epilogue": epilogue,
    }
    return make_expert_point("sm_80", kernel, parameters)
