"""The C++ text that makes the compiler emit one matrix product of CUTLASS, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dataset_builders.sweeps.experts import ExpertPoint


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
    layouts = [_layout(letter) for letter in str(point.parameters["layout"])]
    device, header, function = _DEVICES[point.kernel]
    name, epilogue_header = _epilogue(point)
    arguments = ",\n    ".join(
        [
            f"{element.operand}, {layouts[0]}",
            f"{element.operand}, {layouts[1]}",
            f"{_result(point, element)}, cutlass::layout::RowMajor",
            element.accumulator,
            element.unit,
            "cutlass::arch::Sm80",
            *_shapes(point),
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


def _layout(letter: str) -> str:
    """In BLAS's terms: a transposed operand lies in rows, another one in columns."""
    return {"t": "cutlass::layout::RowMajor", "n": "cutlass::layout::ColumnMajor"}[letter]


def _shapes(point: ExpertPoint) -> tuple[str, str]:
    rows, columns, depth = (int(part) for part in str(point.parameters["tile"]).split("x"))
    down, across = (int(part) for part in str(point.parameters["warps"]).split("x"))
    return (
        f"cutlass::gemm::GemmShape<{rows}, {columns}, {depth}>",
        f"cutlass::gemm::GemmShape<{rows // down}, {columns // across}, {depth}>",
    )


def _epilogue(point: ExpertPoint) -> tuple[str, str]:
    if point.parameters["dtype"] == "s8":
        return "LinearCombinationClamp", "linear_combination_clamp.h"
    return _EPILOGUES[str(point.parameters["epilogue"])]


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
