"""Matrix multiplication of a wave (MFMA): D = A B + C on register contents.

Register contents are uint32 arrays of shape (waves, registers, 64 lanes): all waves
that execute one instruction together go through it at once. EXEC plays no part:
matrix instructions ignore it.

**Lane layout.** With S = side, B = blocks, per = elements of A a lane holds:
row i of block b at depth k lies in lane `b*S + (k div per)*S*B + i`, element
`k mod per`; for B read column for row. The elements of a lane fill its registers in
order, low bits first. D of 32 bits: registers and lanes as `_result_places` computes
them; f64 differs from f32. Source: "AMD Instinct MI200" and "AMD Instinct MI300" Instruction
Set Architecture guides, chapter Matrix Arithmetic Instructions.

**Modifiers.** CBSZ and ABID: lane l of A reads lane `l mod s + s*ABID`, s = 64 >> CBSZ.
BLGP: 0 as it is; 1, 2: lanes 0..31 or 32..63 for both halves; 3: lane (l + 16) mod 64;
4..7: the 16 lanes from 16*(BLGP - 4) for all four quarters. For f64 the three bits of
BLGP negate A, B and C. Same guides, "Broadcasting values". Values that the guides
leave undefined are refused.

**Arithmetic.** The guides do not say in which order hardware adds, nor how it rounds
between. Here:
- f32 and f64: one fused multiply-add after the other, in order of k, beginning with C;
- f16, bf16, xf32, fp8, bf8: products are exact; they are summed in float64 in order of k,
  C is added last, and the sum is rounded to float32 once;
- i8: exact, modulo 2**32.
On gfx90a, f16 and bf16 instructions take denormal inputs as zero and give zero for
denormal results (MIOpen documentation, "MI200 MFMA Behavior Specifics"). The sign of
zero stays. Every NaN result is the quiet NaN 0x7fc00000 (f64: 0x7ff8000000000000).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from verilocc_bench.machine.exact_arithmetic import fused_multiply_add_32, fused_multiply_add_64
from verilocc_bench.machine.matrix_formats import LEAST_NORMAL, Format, Registers, decode
from verilocc_bench.machine.matrix_table import MATRIX_INSTRUCTIONS, MatrixInstruction

__all__ = ["UnsupportedMatrixOperation", "check_modifiers", "matrix_instruction", "multiply_add"]

_LANES = 64
_QUIET_NAN_32 = np.uint32(0x7FC0_0000)
_QUIET_NAN_64 = np.uint64(0x7FF8_0000_0000_0000)
_LARGEST_BROADCAST = 4
_BROADCAST_PATTERNS = 8


class UnsupportedMatrixOperation(ValueError):
    """An instruction that the target lacks, or a modifier whose effect is not defined."""


def matrix_instruction(arch: str, mnemonic: str) -> MatrixInstruction:
    """The instruction of that name; UnsupportedMatrixOperation where the target has none."""
    found = MATRIX_INSTRUCTIONS.get(arch, {}).get(mnemonic)
    if found is None:
        raise UnsupportedMatrixOperation(f"{mnemonic}: no matrix instruction of {arch}")
    return found


def check_modifiers(
    instruction: MatrixInstruction, broadcast_size: int, broadcast_block: int, pattern: int
) -> None:
    """Refuses values of CBSZ, ABID and BLGP that the guides leave undefined."""
    if not 0 <= pattern < _BROADCAST_PATTERNS:
        raise UnsupportedMatrixOperation(f"{instruction.mnemonic}: blgp:{pattern}")
    if instruction.left is Format.F64:
        return  # CBSZ and ABID are ignored, BLGP negates
    receivers = 1 << broadcast_size
    if not 0 <= broadcast_size <= _LARGEST_BROADCAST or receivers > instruction.blocks:
        raise UnsupportedMatrixOperation(
            f"{instruction.mnemonic}: cbsz:{broadcast_size} with {instruction.blocks} blocks"
        )
    if not 0 <= broadcast_block < receivers:
        raise UnsupportedMatrixOperation(
            f"{instruction.mnemonic}: abid:{broadcast_block} with cbsz:{broadcast_size}"
        )


def multiply_add(
    instruction: MatrixInstruction,
    a: Registers,
    b: Registers,
    c: Registers,
    *,
    cbsz: int = 0,
    abid: int = 0,
    blgp: int = 0,
) -> Registers:
    """The registers of D = A B + C.

    `a` and `b` are (waves, operand_registers, 64), `c` and the result are
    (waves, result_registers, 64). An inline constant for C is the caller's to
    broadcast. UnsupportedMatrixOperation for modifiers without a meaning.
    """
    check_modifiers(instruction, cbsz, abid, blgp)
    _check_shapes(instruction, a, b, c)
    with np.errstate(all="ignore"):
        return _result(instruction, _multiply_add(instruction, a, b, c, (cbsz, abid, blgp)))


def _multiply_add(
    instruction: MatrixInstruction,
    a: Registers,
    b: Registers,
    c: Registers,
    modifiers: tuple[int, int, int],
) -> NDArray[Any]:
    """(waves, blocks, side, side): D before it is rounded to its format."""
    cbsz, abid, blgp = modifiers
    is_f64 = instruction.left is Format.F64
    if not is_f64 and cbsz:
        a = a[:, :, _broadcast_lanes(cbsz, abid)]
    if not is_f64 and blgp:
        b = b[:, :, _pattern_lanes(blgp)]
    left = _operand(instruction, a, instruction.left)
    right = _operand(instruction, b, instruction.right)
    addend = _addend(instruction, c)
    if is_f64:
        left, right, addend = (
            -x if blgp >> bit & 1 else x for bit, x in enumerate((left, right, addend))
        )
    return _accumulate(instruction, left, right, addend)


def _check_shapes(instruction: MatrixInstruction, a: Registers, b: Registers, c: Registers) -> None:
    operands = (len(a), instruction.operand_registers, _LANES)
    results = (len(a), instruction.result_registers, _LANES)
    if a.shape != operands or b.shape != operands or c.shape != results:
        raise ValueError(f"{instruction.mnemonic}: {a.shape}, {b.shape}, {c.shape}")


def _operand(
    instruction: MatrixInstruction, values: Registers, number_format: Format
) -> NDArray[Any]:
    """(waves, blocks, side, depth): rows of A, or columns of B."""
    numbers = decode(values, number_format)
    if instruction.flushes_denormals:
        numbers = _flush(numbers, LEAST_NORMAL[number_format])
    side, blocks = instruction.side, instruction.blocks
    grouped = numbers.reshape(len(values), -1, blocks, side, instruction.elements_per_lane)
    ordered = grouped.transpose(0, 2, 3, 1, 4)
    return ordered.reshape(len(values), blocks, side, instruction.depth)


def _flush(numbers: NDArray[np.float64], least_normal: float) -> NDArray[np.float64]:
    return np.where(np.abs(numbers) < least_normal, np.copysign(0.0, numbers), numbers)


def _addend(instruction: MatrixInstruction, c: Registers) -> NDArray[Any]:
    """(waves, blocks, side, side): C as float64, int64 for the integer instructions."""
    numbers = decode(c, instruction.result)
    places = _result_places(instruction.side, instruction.blocks, instruction.result)
    matrices: NDArray[Any] = numbers.reshape(len(c), -1)[:, places]
    if instruction.flushes_denormals:
        return _flush(matrices, LEAST_NORMAL[Format.BF16])  # float32 has bf16's exponents
    return matrices


def _accumulate(
    instruction: MatrixInstruction,
    left: NDArray[Any],
    right: NDArray[Any],
    addend: NDArray[Any],
) -> NDArray[Any]:
    """(waves, blocks, side, side): D as float64 or int64, not yet rounded to the result."""
    if instruction.left is Format.I8:
        # Exact: every partial sum of at most 32 products is far below 2**53.
        products = left.astype(np.float64) @ right.astype(np.float64).swapaxes(-1, -2)
        return np.asarray(addend + products.astype(np.int64))
    if instruction.left is Format.F32:
        total32 = addend.astype(np.float32)
        for k in range(instruction.depth):
            row, column = left[..., k, None], right[..., None, :, k]
            total32 = fused_multiply_add_32(
                row.astype(np.float32), column.astype(np.float32), total32
            )
        return total32.astype(np.float64)
    if instruction.left is Format.F64:
        for k in range(instruction.depth):
            addend = fused_multiply_add_64(left[..., k, None], right[..., None, :, k], addend)
        return addend
    total = np.zeros(addend.shape)
    for k in range(instruction.depth):  # in order: a library's product adds as it likes
        total += left[..., k, None] * right[..., None, :, k]
    return np.asarray(total + addend)


def _result(instruction: MatrixInstruction, matrices: NDArray[Any]) -> Registers:
    """Rounds D to its format and lays it out in registers."""
    waves = len(matrices)
    places = _result_places(instruction.side, instruction.blocks, instruction.result)
    if instruction.result is Format.F64:
        wide = np.empty((waves, places.size), np.uint64)
        bits64 = np.ascontiguousarray(matrices).view(np.uint64)
        wide[:, places] = np.where(np.isnan(matrices), _QUIET_NAN_64, bits64)
        pairs = wide.reshape(waves, _LANES, -1).view(np.uint32)
        return np.ascontiguousarray(pairs.transpose(0, 2, 1))
    if instruction.result is Format.I32:
        bits = matrices.astype(np.uint32)  # modulo 2**32
    else:
        rounded = matrices.astype(np.float32)
        if instruction.flushes_denormals:
            least = np.float32(LEAST_NORMAL[Format.BF16])
            rounded = np.where(
                np.abs(rounded) < least, np.copysign(np.float32(0), rounded), rounded
            )
        bits = np.where(np.isnan(rounded), _QUIET_NAN_32, rounded.view(np.uint32))
    flat = np.empty((waves, places.size), np.uint32)
    flat[:, places] = bits
    by_lane = flat.reshape(waves, _LANES, -1)
    return np.ascontiguousarray(by_lane.transpose(0, 2, 1))


@cache
def _result_places(side: int, blocks: int, number_format: Format) -> NDArray[np.intp]:
    """Where D's element (block, row, column) lies, as lane * elements a lane + element."""
    block, row, column = np.ogrid[:blocks, :side, :side]
    lane_rows = _LANES // side  # rows of one block that the lanes could hold side by side
    if number_format is Format.F64:
        blocks_per_element = -(-_LANES // (side * side))
        element = block * (side * side // _LANES) + row // lane_rows
        lane_row = row % lane_rows
    else:
        # Four neighbouring rows lie in four registers of one lane.
        blocks_per_element = -(-_LANES // (side * side // 4))
        element = block * (side * side // _LANES) + row // (4 * lane_rows) * 4 + row % 4
        lane_row = row // 4 % lane_rows
    lane = (block % blocks_per_element) * side + lane_row * blocks_per_element * side + column
    elements = side * side * blocks // _LANES
    places: NDArray[np.intp] = lane * elements + element
    places.flags.writeable = False
    return places


@cache
def _broadcast_lanes(size: int, block: int) -> NDArray[np.intp]:
    lanes = _LANES >> size
    return np.arange(_LANES) % lanes + lanes * block


@cache
def _pattern_lanes(pattern: int) -> NDArray[np.intp]:
    lane = np.arange(_LANES)
    if pattern == 3:
        return (lane + 16) % _LANES
    if pattern < 3:
        return lane % 32 + 32 * (pattern - 1)
    return lane % 16 + 16 * (pattern - 4)
