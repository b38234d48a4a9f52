"""Rules of thumb for points that are worth compiling; all are on the safe side.

They drop combinations that cannot work (local memory, idle warps), and those
that would spill most of their values. The compiler still decides. The figures
come from compiling samples without these rules, with LLVM 22.1 for AMD and
ptxas 13.5 for NVIDIA.
"""

from __future__ import annotations

from dataset_builders.sweeps.point import SweepPoint
from verilocc_bench.targets.nvidia_budget import MAXIMUM_REGISTERS, register_limit

_ELEMENT_BYTES = {"fp16": 2, "bf16": 2, "fp32": 4, "int8": 1, "fp8e4b8": 1, "fp8e5b16": 1}
# What one work-group may have. On sm_80 163 KiB of the multiprocessor's 164, on sm_90 227
# of 228: CUDA C++ Programming Guide, technical specifications per compute capability.
LOCAL_MEMORY_BYTES = {"gfx90a": 65_536, "gfx942": 65_536, "sm_80": 166_912, "sm_90": 232_448}
_WAVE_LANES = {"gfx90a": 64, "gfx942": 64, "sm_80": 32, "sm_90": 32}
_SIMDS = 4
# Registers of 32 bits that a thread can name, and that an AMD SIMD has for all
# of its waves.
_THREAD_REGISTERS = {
    "gfx90a": 256,
    "gfx942": 256,
    "sm_80": MAXIMUM_REGISTERS,
    "sm_90": MAXIMUM_REGISTERS,
}
_SIMD_REGISTERS = 512
# Shares of a thread's registers that the tiles themselves may take. Of what
# `default` samples under them, LLVM splits 6 % of the matrix products and 37 %
# of the attention kernels; of attention beyond them, nearly all.
_GEMM_SHARE = 0.8
_ATTENTION_SHARE = 0.7
# The same for NVIDIA, without a tight budget and with one, which is meant to
# make ptxas spill a little; gradients read their operands from local memory for
# every product. Of the first 150 points of `default` ptxas spills 8 % of the
# matrix products and 23 % of the attention kernels. Far beyond these shares, and
# without `maxnreg`, it gives up on 255 registers altogether: it makes do with 32,
# in up to ten times the instructions.
_NVIDIA_SHARES = {"gemm": (0.85, 1.25), "mha": (0.7, 0.85), "gradient": (1.0, 1.15)}
# The least depth of a matrix instruction on 8-bit integers.
_NVIDIA_INTEGER_DEPTH = 32


def local_memory_fits(point: SweepPoint) -> bool:
    """True if the data that a kernel keeps in local memory fits there."""
    return _local_memory_bytes(point) <= LOCAL_MEMORY_BYTES[point.arch]


def tile_feeds_every_warp(point: SweepPoint) -> bool:
    """True if each warp has at least one 16 x 16 tile of the result."""
    rows, columns = point.tile
    return rows * columns >= 256 * point.parameters.integer("num_warps")


def matrix_instruction_fits(point: SweepPoint) -> bool:
    """True if the tile is as large as the matrix instruction that it needs."""
    if _is_nvidia(point):
        depth = point.parameters.get("block_k", _NVIDIA_INTEGER_DEPTH)
        return point.parameters["dtype"] != "int8" or int(depth) >= _NVIDIA_INTEGER_DEPTH
    if "matrix_instr_nonkdim" not in point.parameters:
        return True
    return min(point.tile) >= point.parameters.integer("matrix_instr_nonkdim")


def products_fit_registers(point: SweepPoint) -> bool:
    """True if a matrix product's accumulators and operands leave registers for the rest."""
    parameters = point.parameters
    rows, columns = point.tile
    threads = _threads(point)
    products = 2 if point.kernel == "gemm_gated" else 1
    words = _ELEMENT_BYTES[str(parameters["dtype"])] / 4
    operands = (rows + products * columns) * parameters.integer("block_k") * words / threads
    lanes = products * rows * columns / threads + 2 * operands
    return lanes <= _share(point) * _registers_per_thread(point)


def attention_fits_registers(point: SweepPoint) -> bool:
    """True if outputs, scores and resident operands of attention leave registers for the rest.

    Warps share the tile by rows alone, because the softmax runs along rows. A
    warp with fewer rows than its matrix instruction repeats another's work.
    """
    parameters = point.parameters
    rows, columns = point.tile
    if point.kernel == "mha_backward_dkdv":
        rows, columns = columns, rows
    block_d = parameters.integer("block_d")
    instruction_rows = parameters.get("matrix_instr_nonkdim", 16) or min(32, rows, columns)
    warp_rows = max(rows / parameters.integer("num_warps"), int(instruction_rows))
    words = _ELEMENT_BYTES[str(parameters["dtype"])] / 4
    outputs, scores, residents = {
        "mha_backward_dkdv": (2, 2, 2),
        "mha_backward_dq": (1, 2, 2),
    }.get(point.kernel, (1, 1, 1))
    row_lanes = outputs * block_d + scores * columns + residents * words * block_d
    streamed = 0.0
    if parameters.integer("num_stages") > 1 and not _is_nvidia(point):
        # The next two operand tiles are on their way through registers; NVIDIA
        # copies past them.
        streamed = 2 * columns * block_d * words / _threads(point)
    lanes = warp_rows * row_lanes / _WAVE_LANES[point.arch] + streamed
    return lanes <= _share(point) * _registers_per_thread(point)


def native_types(point: SweepPoint) -> bool:
    """True if the target multiplies the type itself: only gfx942 knows 8-bit floats."""
    return point.arch == "gfx942" or not str(point.parameters["dtype"]).startswith("fp8")


def modifiers_agree(point: SweepPoint) -> bool:
    """True if the flags make sense together: what people would run, and nothing twice."""
    parameters = point.parameters
    if point.family == "gemm":
        integer = parameters["dtype"] == "int8"
        epilogue = parameters.get("activation", "none") != "none"
        wide = parameters.get("precision", "ieee") != "ieee"
        return not (integer and epilogue) and (not wide or parameters["dtype"] == "fp32")
    biases = (parameters.get("alibi", False), parameters.get("matrix_bias", False))
    if all(biases) or (parameters.get("variable_length", False) and biases[1]):
        return False
    # A sequence of any length has an edge, a window no part without masks.
    if parameters.get("variable_length", False) and parameters["even"]:
        return False
    if not parameters.get("peel", False):
        return True
    return not parameters["window"] and bool(parameters["causal"] or not parameters["even"])


def _threads(point: SweepPoint) -> int:
    return point.parameters.integer("num_warps") * _WAVE_LANES[point.arch]


def _is_nvidia(point: SweepPoint) -> bool:
    return point.arch.startswith("sm_")


def _is_gradient(point: SweepPoint) -> bool:
    return point.kernel in {"mha_backward_dkdv", "mha_backward_dq"}


def _share(point: SweepPoint) -> float:
    if not _is_nvidia(point):
        return _GEMM_SHARE if point.family == "gemm" else _ATTENTION_SHARE
    usual, tight = _NVIDIA_SHARES["gradient" if _is_gradient(point) else point.family]
    return tight if 0 < point.parameters.integer("maxnreg") < MAXIMUM_REGISTERS else usual


def _registers_per_thread(point: SweepPoint) -> int:
    """Vector registers that a thread may use, by its work-group's size and what is asked for."""
    limit = _THREAD_REGISTERS[point.arch]
    if _is_nvidia(point):
        budget = point.parameters.integer("maxnreg") or limit
        return register_limit(_threads(point), min(budget, limit))
    waves = max(
        -(-point.parameters.integer("num_warps") // _SIMDS),
        point.parameters.integer("waves_per_eu"),
        1,
    )
    return min(limit, _SIMD_REGISTERS // waves // 8 * 8)


def _local_memory_bytes(point: SweepPoint) -> int:
    """An upper estimate: operand tiles of all stages, and the scores on their way."""
    parameters = point.parameters
    rows, columns = point.tile
    size = _ELEMENT_BYTES[str(parameters["dtype"])]
    if point.family == "gemm":
        copies = max(1, parameters.integer("num_stages") - 1)
        products = 2 if point.kernel == "gemm_gated" else 1
        return copies * (rows + products * columns) * parameters.integer("block_k") * size
    streamed = rows if point.kernel == "mha_backward_dkdv" else columns
    score_tiles = 2 if parameters.get("matrix_bias", False) else 1
    operands = 2 * streamed * parameters.integer("block_d")
    if _is_nvidia(point):
        # The tiles that stay come through local memory, too, and stay there.
        copies = 2 if _is_gradient(point) else 1
        operands += copies * (rows + columns - streamed) * parameters.integer("block_d")
        score_tiles = max(score_tiles, copies)
    return (operands + score_tiles * rows * columns) * size
