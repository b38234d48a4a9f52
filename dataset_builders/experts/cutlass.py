"""The matrix products of CUTLASS that are compiled, and the C++ text of each.

The text makes the compiler emit one product and nothing else.

Tiles, their stages and their warps are those that CUTLASS's own generator of its
library lists for this architecture (`cutlass_library/generator.py`, the functions
`GenerateSM80_…`): what its authors compile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

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


@dataclass(frozen=True, slots=True)
class _ElementType:
    """The C++ names of a product's types and operation.

    `instruction` is the shape of the matrix instruction. `alignment` counts
    elements of the operands, `output_alignment` the result's.
    """

    operand: str
    output: str
    accumulator: str
    scale: str
    unit: str
    instruction: str
    operation: str
    alignment: int
    output_alignment: int


_TENSOR, _SIMT = "cutlass::arch::OpClassTensorOp", "cutlass::arch::OpClassSimt"
_PLAIN = "cutlass::arch::OpMultiplyAdd"
_ELEMENTS: Mapping[str, _ElementType] = {
    "f16": _ElementType(
        "cutlass::half_t", "cutlass::half_t", "float", "float",
        _TENSOR, "16, 8, 16", _PLAIN, 8, 8,
    ),
    "f16_f16": _ElementType(
        "cutlass::half_t", "cutlass::half_t", "cutlass::half_t", "cutlass::half_t",
        _TENSOR, "16, 8, 16", _PLAIN, 8, 8,
    ),
    "bf16": _ElementType(
        "cutlass::bfloat16_t", "cutlass::bfloat16_t", "float", "float",
        _TENSOR, "16, 8, 16", _PLAIN, 8, 8,
    ),
    "tf32": _ElementType(
        "cutlass::tfloat32_t", "float", "float", "float", _TENSOR, "16, 8, 8", _PLAIN, 4, 4,
    ),
    "3xtf32": _ElementType(
        "float", "float", "float", "float",
        _TENSOR, "16, 8, 8", "cutlass::arch::OpMultiplyAddFastF32", 4, 4,
    ),
    "f64": _ElementType(
        "double", "double", "double", "double", _TENSOR, "8, 8, 4", _PLAIN, 1, 1,
    ),
    "s8": _ElementType(
        "int8_t", "int8_t", "int32_t", "float",
        _TENSOR, "16, 8, 32", "cutlass::arch::OpMultiplyAddSaturate", 16, 16,
    ),
    "f32": _ElementType("float", "float", "float", "float", _SIMT, "1, 1, 1", _PLAIN, 1, 1),
}  # fmt: skip
_WIDE_COLUMNS, _LOW_ROWS = 128, 32
"""Tiles of 8-bit results with fewer columns, or so few rows, store half as many at once."""

_EPILOGUES: Mapping[str, tuple[str, str]] = {
    "linear": ("LinearCombination", "linear_combination.h"),
    "relu": ("LinearCombinationRelu", "linear_combination_relu.h"),
    "leaky_relu": ("LinearCombinationLeakyRelu", "linear_combination_leaky_relu.h"),
    "gelu": ("LinearCombinationGELU", "linear_combination_gelu.h"),
    "silu": ("LinearCombinationSilu", "linear_combination_silu.h"),
    "sigmoid": ("LinearCombinationSigmoid", "linear_combination_sigmoid.h"),
    "hard_swish": ("LinearCombinationHardSwish", "linear_combination_hardswish.h"),
}
"""The class and the header of an epilogue."""

_IDENTITY = "cutlass::gemm::threadblock::GemmIdentityThreadblockSwizzle<>"
_STREAM_K = "cutlass::gemm::threadblock::ThreadblockSwizzleStreamK"
_BATCHED = "cutlass::gemm::threadblock::GemmBatchedIdentityThreadblockSwizzle"
_SPLIT_K = "cutlass::gemm::threadblock::GemmSplitKHorizontalThreadblockSwizzle"


def cutlass_text(point: ExpertPoint) -> str:
    """The text of a point of this library. A KeyError or ValueError is a bug of the list."""
    element = _ELEMENTS[str(point.parameters["dtype"])]
    # In BLAS's terms: a transposed operand lies in rows, another one in columns.
    names = {"t": "cutlass::layout::RowMajor", "n": "cutlass::layout::ColumnMajor"}
    layouts = [names[letter] for letter in str(point.parameters["layout"])]
    device, header, function = _DEVICES[point.kernel]
    name, epilogue_header = _EPILOGUES[str(point.parameters["epilogue"])]
    if point.parameters["dtype"] == "s8":
        name, epilogue_header = "LinearCombinationClamp", "linear_combination_clamp.h"
    rows, columns, depth = (int(part) for part in str(point.parameters["tile"]).split("x"))
    down, across = (int(part) for part in str(point.parameters["warps"]).split("x"))
    arguments = ",\n    ".join(
        [
            f"{element.operand}, {layouts[0]}",
            f"{element.operand}, {layouts[1]}",
            f"{_result(point, element)}, cutlass::layout::RowMajor",
            element.accumulator,
            element.unit,
            "cutlass::arch::Sm80",
            f"cutlass::gemm::GemmShape<{rows}, {columns}, {depth}>",
            f"cutlass::gemm::GemmShape<{rows // down}, {columns // across}, {depth}>",
            f"cutlass::gemm::GemmShape<{element.instruction}>",
            *_outputs(point, element, name),
            *_schedule(point, element),
        ]
    )
    return (
        f'#include "cutlass/cutlass.h"\n'
        f'#include "cutlass/gemm/device/{header}"\n'
        f'#include "cutlass/epilogue/thread/{epilogue_header}"\n\n'
        f"using Product = cutlass::gemm::device::{device}<\n    {arguments}>;\n"
        f"using GemmKernel = Product::GemmKernel;\n"
        f"template __global__ void cutlass::{function}<GemmKernel>(GemmKernel::Params);\n"
    )


_DEVICES: Mapping[str, tuple[str, str, str]] = {
    "cutlass_gemm": ("Gemm", "gemm.h", "Kernel"),
    "cutlass_gemm_batched": ("GemmBatched", "gemm_batched.h", "Kernel"),
    "cutlass_gemm_split_k_parallel": ("GemmSplitKParallel", "gemm_splitk_parallel.h", "Kernel"),
    "cutlass_gemm_split_k_serial": ("Gemm", "gemm.h", "Kernel"),
    "cutlass_gemm_stream_k": ("GemmUniversal", "gemm_universal.h", "Kernel2"),
    "cutlass_gemm_universal": ("GemmUniversal", "gemm_universal.h", "Kernel2"),
}
"""By kernel: the class of CUTLASS's device interface, its header, and the kernel function."""


def _result(point: ExpertPoint, element: _ElementType) -> str:
    """Partial sums of a parallel split are stored as they were accumulated."""
    parallel = point.kernel == "cutlass_gemm_split_k_parallel"
    return element.accumulator if parallel else element.output


def _outputs(point: ExpertPoint, element: _ElementType, name: str) -> list[str]:
    count = element.output_alignment
    rows, columns, _ = (int(part) for part in str(point.parameters["tile"]).split("x"))
    if point.parameters["dtype"] == "s8" and (rows == _LOW_ROWS or columns < _WIDE_COLUMNS):
        count //= 2
    result = _result(point, element)
    if point.kernel == "cutlass_gemm_split_k_parallel":
        count = min(count, 4)
    types = f"{result}, {count}, {element.accumulator}, {element.scale}"
    return [f"cutlass::epilogue::thread::{name}<{types}>"]


def _schedule(point: ExpertPoint, element: _ElementType) -> list[str]:
    stages, alignment = point.parameters.integer("stages"), element.alignment
    pair = [str(stages), str(alignment), str(alignment)]
    match point.kernel:
        case "cutlass_gemm":
            return [_IDENTITY, *pair, "false", element.operation]
        case "cutlass_gemm_split_k_serial":
            return [_IDENTITY, *pair, "true", element.operation]
        case "cutlass_gemm_split_k_parallel":
            whole = element.accumulator
            plain = f"cutlass::epilogue::thread::Convert<{whole}, 1, {whole}>"
            total = f"cutlass::reduction::thread::ReduceAdd<{whole}, {whole}, 1>"
            return [plain, total, _SPLIT_K, *pair, element.operation]
        case "cutlass_gemm_batched":
            return [_BATCHED, *pair, element.operation]
        case "cutlass_gemm_universal":
            return [_IDENTITY, *pair, element.operation]
        case _:
            return [_STREAM_K, *pair, element.operation]
