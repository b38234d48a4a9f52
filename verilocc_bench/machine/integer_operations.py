"""Integer instructions as functions of one lane: numbers in, one number out.

Sources are int64: 32-bit registers from 0 to 2**32 - 1, pairs as they are. Only
the low bits of a result count: whoever writes it takes as many as the
destination has. Shift counts are taken modulo the width. Source: chapter
"Instructions" of the "AMD Instinct MI200" and "AMD Instinct MI300" Instruction Set
Architecture guides.
"""

from __future__ import annotations

from verilocc_bench.machine.bit_functions import (
    count_ones,
    lowest_one,
    middle,
    reversed_bits,
    shift_right_64,
    signed8,
    signed16,
    signed24,
    signed32,
    zeros_above,
)
from verilocc_bench.machine.compiled import compiled

(
    MOVE, NOT, BIT_REVERSE, FIND_HIGH_U32, FIND_LOW, FIND_HIGH_I32,
    ADD, SUBTRACT, SUBTRACT_REVERSED, MULTIPLY_LOW, MULTIPLY_HIGH_U32, MULTIPLY_HIGH_I32,
    MULTIPLY_I24, MULTIPLY_U24, MULTIPLY_HIGH_I24, MULTIPLY_HIGH_U24,
    MIN_I32, MAX_I32, MIN_U32, MAX_U32,
    SHIFT_LEFT_REVERSED, SHIFT_RIGHT_REVERSED, SHIFT_RIGHT_ARITHMETIC_REVERSED,
    AND, OR, XOR, XNOR, FIELD_U32, FIELD_I32, FIELD_INSERT, ALIGN_BIT, ALIGN_BYTE,
    MIN3_I32, MAX3_I32, MED3_I32, MIN3_U32, MAX3_U32, MED3_U32,
    MULTIPLY_ADD_I24, MULTIPLY_ADD_U24, ADD3, SHIFT_LEFT_ADD, ADD_SHIFT_LEFT, SHIFT_LEFT_OR,
    AND_OR, OR3, XOR_ADD, PERMUTE_BYTES, COUNT_BITS, FIELD_MASK,
    PACK_U16_U32, PACK_I16_I32, SELECT,
    ADD_U16, SUBTRACT_U16, SUBTRACT_REVERSED_U16, MULTIPLY_LOW_U16,
    SHIFT_LEFT_REVERSED_16, SHIFT_RIGHT_REVERSED_16, SHIFT_RIGHT_ARITHMETIC_REVERSED_16,
    MAX_U16, MAX_I16, MIN_U16, MIN_I16, MULTIPLY_ADD_16, MULTIPLY_ADD_U32_U16,
    MULTIPLY_ADD_I32_I16, PACK_16, SUM_OF_DIFFERENCES_U32,
    SHIFT_LEFT_REVERSED_64, SHIFT_RIGHT_REVERSED_64, SHIFT_RIGHT_ARITHMETIC_REVERSED_64,
    SHIFT_LEFT_ADD_64, MULTIPLY_ADD_U64_U32, MULTIPLY_ADD_I64_I32,
    COUNT_LOWER_LANES_LOW, COUNT_LOWER_LANES_HIGH, DOT4_I8, DOT4_U8, DOT2_I16, DOT2_U16,
    MED3_I16, MED3_U16, MIN3_I16, MAX3_I16, MIN3_U16, MAX3_U16,
) = range(87)  # fmt: skip

INTEGER_OPCODES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "v_mov_b32": (MOVE, 1, (1,)),
    "v_accvgpr_read_b32": (MOVE, 1, (1,)),
    "v_accvgpr_write_b32": (MOVE, 1, (1,)),
    "v_accvgpr_mov_b32": (MOVE, 1, (1,)),
    "v_mov_b64": (MOVE, 2, (2,)),
    "v_not_b32": (NOT, 1, (1,)),
    "v_bfrev_b32": (BIT_REVERSE, 1, (1,)),
    "v_ffbh_u32": (FIND_HIGH_U32, 1, (1,)),
    "v_ffbl_b32": (FIND_LOW, 1, (1,)),
    "v_ffbh_i32": (FIND_HIGH_I32, 1, (1,)),
    "v_add_u32": (ADD, 1, (1, 1)),
    "v_add_i32": (ADD, 1, (1, 1)),
    "v_sub_i32": (SUBTRACT, 1, (1, 1)),
    "v_sub_u32": (SUBTRACT, 1, (1, 1)),
    "v_subrev_u32": (SUBTRACT_REVERSED, 1, (1, 1)),
    "v_mul_lo_u32": (MULTIPLY_LOW, 1, (1, 1)),
    "v_mul_hi_u32": (MULTIPLY_HIGH_U32, 1, (1, 1)),
    "v_mul_hi_i32": (MULTIPLY_HIGH_I32, 1, (1, 1)),
    "v_mul_i32_i24": (MULTIPLY_I24, 1, (1, 1)),
    "v_mul_u32_u24": (MULTIPLY_U24, 1, (1, 1)),
    "v_mul_hi_i32_i24": (MULTIPLY_HIGH_I24, 1, (1, 1)),
    "v_mul_hi_u32_u24": (MULTIPLY_HIGH_U24, 1, (1, 1)),
    "v_min_i32": (MIN_I32, 1, (1, 1)),
    "v_max_i32": (MAX_I32, 1, (1, 1)),
    "v_min_u32": (MIN_U32, 1, (1, 1)),
    "v_max_u32": (MAX_U32, 1, (1, 1)),
    "v_lshlrev_b32": (SHIFT_LEFT_REVERSED, 1, (1, 1)),
    "v_lshrrev_b32": (SHIFT_RIGHT_REVERSED, 1, (1, 1)),
    "v_ashrrev_i32": (SHIFT_RIGHT_ARITHMETIC_REVERSED, 1, (1, 1)),
    "v_and_b32": (AND, 1, (1, 1)),
    "v_or_b32": (OR, 1, (1, 1)),
    "v_xor_b32": (XOR, 1, (1, 1)),
    "v_xnor_b32": (XNOR, 1, (1, 1)),
    "v_bfe_u32": (FIELD_U32, 1, (1, 1, 1)),
    "v_bfe_i32": (FIELD_I32, 1, (1, 1, 1)),
    "v_bfi_b32": (FIELD_INSERT, 1, (1, 1, 1)),
    "v_alignbit_b32": (ALIGN_BIT, 1, (1, 1, 1)),
    "v_alignbyte_b32": (ALIGN_BYTE, 1, (1, 1, 1)),
    "v_min3_i32": (MIN3_I32, 1, (1, 1, 1)),
    "v_max3_i32": (MAX3_I32, 1, (1, 1, 1)),
    "v_med3_i32": (MED3_I32, 1, (1, 1, 1)),
    "v_min3_u32": (MIN3_U32, 1, (1, 1, 1)),
    "v_max3_u32": (MAX3_U32, 1, (1, 1, 1)),
    "v_med3_u32": (MED3_U32, 1, (1, 1, 1)),
    "v_mad_i32_i24": (MULTIPLY_ADD_I24, 1, (1, 1, 1)),
    "v_mad_u32_u24": (MULTIPLY_ADD_U24, 1, (1, 1, 1)),
    "v_add3_u32": (ADD3, 1, (1, 1, 1)),
    "v_lshl_add_u32": (SHIFT_LEFT_ADD, 1, (1, 1, 1)),
    "v_add_lshl_u32": (ADD_SHIFT_LEFT, 1, (1, 1, 1)),
    "v_lshl_or_b32": (SHIFT_LEFT_OR, 1, (1, 1, 1)),
    "v_and_or_b32": (AND_OR, 1, (1, 1, 1)),
    "v_or3_b32": (OR3, 1, (1, 1, 1)),
    "v_xad_u32": (XOR_ADD, 1, (1, 1, 1)),
    "v_perm_b32": (PERMUTE_BYTES, 1, (1, 1, 1)),
    "v_bcnt_u32_b32": (COUNT_BITS, 1, (1, 1)),
    "v_mbcnt_lo_u32_b32": (COUNT_LOWER_LANES_LOW, 1, (1, 1)),
    "v_mbcnt_hi_u32_b32": (COUNT_LOWER_LANES_HIGH, 1, (1, 1)),
    "v_bfm_b32": (FIELD_MASK, 1, (1, 1)),
    "v_cvt_pk_u16_u32": (PACK_U16_U32, 1, (1, 1)),
    "v_cvt_pk_i16_i32": (PACK_I16_I32, 1, (1, 1)),
    "v_add_u16": (ADD_U16, 1, (1, 1)),
    "v_sub_u16": (SUBTRACT_U16, 1, (1, 1)),
    "v_subrev_u16": (SUBTRACT_REVERSED_U16, 1, (1, 1)),
    "v_mul_lo_u16": (MULTIPLY_LOW_U16, 1, (1, 1)),
    "v_lshlrev_b16": (SHIFT_LEFT_REVERSED_16, 1, (1, 1)),
    "v_lshrrev_b16": (SHIFT_RIGHT_REVERSED_16, 1, (1, 1)),
    "v_ashrrev_i16": (SHIFT_RIGHT_ARITHMETIC_REVERSED_16, 1, (1, 1)),
    "v_max_u16": (MAX_U16, 1, (1, 1)),
    "v_max_i16": (MAX_I16, 1, (1, 1)),
    "v_min_u16": (MIN_U16, 1, (1, 1)),
    "v_min_i16": (MIN_I16, 1, (1, 1)),
    "v_mad_u16": (MULTIPLY_ADD_16, 1, (1, 1, 1)),
    "v_mad_i16": (MULTIPLY_ADD_16, 1, (1, 1, 1)),
    "v_mad_legacy_u16": (MULTIPLY_ADD_16, 1, (1, 1, 1)),
    "v_mad_legacy_i16": (MULTIPLY_ADD_16, 1, (1, 1, 1)),
    "v_add_i16": (ADD_U16, 1, (1, 1)),
    "v_sub_i16": (SUBTRACT_U16, 1, (1, 1)),
    "v_med3_i16": (MED3_I16, 1, (1, 1, 1)),
    "v_med3_u16": (MED3_U16, 1, (1, 1, 1)),
    "v_min3_i16": (MIN3_I16, 1, (1, 1, 1)),
    "v_max3_i16": (MAX3_I16, 1, (1, 1, 1)),
    "v_min3_u16": (MIN3_U16, 1, (1, 1, 1)),
    "v_max3_u16": (MAX3_U16, 1, (1, 1, 1)),
    "v_mad_u32_u16": (MULTIPLY_ADD_U32_U16, 1, (1, 1, 1)),
    "v_mad_i32_i16": (MULTIPLY_ADD_I32_I16, 1, (1, 1, 1)),
    "v_pack_b32_f16": (PACK_16, 1, (1, 1)),
    "v_sad_u32": (SUM_OF_DIFFERENCES_U32, 1, (1, 1, 1)),
    "v_lshlrev_b64": (SHIFT_LEFT_REVERSED_64, 2, (1, 2)),
    "v_lshrrev_b64": (SHIFT_RIGHT_REVERSED_64, 2, (1, 2)),
    "v_ashrrev_i64": (SHIFT_RIGHT_ARITHMETIC_REVERSED_64, 2, (1, 2)),
    "v_lshl_add_u64": (SHIFT_LEFT_ADD_64, 2, (2, 1, 2)),
    "v_dot4_i32_i8": (DOT4_I8, 1, (1, 1, 1)),
    "v_dot4_u32_u8": (DOT4_U8, 1, (1, 1, 1)),
    "v_dot2_i32_i16": (DOT2_I16, 1, (1, 1, 1)),
    "v_dot2_u32_u16": (DOT2_U16, 1, (1, 1, 1)),
}
"""Each opcode: its number here, the registers of its result, and of each source."""


@compiled
def _permuted_byte(high: int, low: int, selector: int) -> int:
    """V_PERM_B32: bytes 0 to 3 are the second source, bytes 4 to 7 the first."""
    if selector >= 13:
        return 0xFF
    if selector == 12:
        return 0
    if selector >= 8:
        word = high if selector >= 10 else low
        shift = 31 if selector & 1 else 15
        return 0xFF if (word >> shift) & 1 else 0
    word = high if selector >= 4 else low
    return (word >> (8 * (selector & 3))) & 0xFF


@compiled
def _multiply(operation: int, a: int, b: int, c: int) -> int:
    if operation == MULTIPLY_LOW:
        return a * b
    if operation == MULTIPLY_HIGH_U32:
        return shift_right_64(a * b, 32)
    if operation == MULTIPLY_HIGH_I32:
        return (signed32(a) * signed32(b)) >> 32
    if operation == MULTIPLY_I24:
        return signed24(a) * signed24(b)
    if operation == MULTIPLY_U24:
        return (a & 0xFF_FFFF) * (b & 0xFF_FFFF)
    if operation == MULTIPLY_HIGH_I24:
        return (signed24(a) * signed24(b)) >> 32
    if operation == MULTIPLY_HIGH_U24:
        return ((a & 0xFF_FFFF) * (b & 0xFF_FFFF)) >> 32
    if operation == MULTIPLY_ADD_I24:
        return signed24(a) * signed24(b) + c
    if operation == MULTIPLY_ADD_U24:
        return (a & 0xFF_FFFF) * (b & 0xFF_FFFF) + c
    if operation == MULTIPLY_ADD_U64_U32:
        return a * b + c
    if operation == MULTIPLY_ADD_I64_I32:
        return signed32(a) * signed32(b) + c
    if operation == MULTIPLY_ADD_U32_U16:
        return (a & 0xFFFF) * (b & 0xFFFF) + c
    if operation == MULTIPLY_ADD_I32_I16:
        return signed16(a) * signed16(b) + c
    return _dot(operation, a, b, c)


@compiled
def _dot(operation: int, a: int, b: int, c: int) -> int:
    total = c
    if operation == DOT4_I8:
        for shift in (0, 8, 16, 24):
            total += signed8(a >> shift) * signed8(b >> shift)
    elif operation == DOT4_U8:
        for shift in (0, 8, 16, 24):
            total += ((a >> shift) & 0xFF) * ((b >> shift) & 0xFF)
    elif operation == DOT2_I16:
        total += signed16(a) * signed16(b) + signed16(a >> 16) * signed16(b >> 16)
    else:
        total += (a & 0xFFFF) * (b & 0xFFFF) + (a >> 16) * (b >> 16)
    return total


@compiled
def _operation_16(operation: int, a: int, b: int, c: int) -> int:
    """Instructions on 16 bits; what the sources have above them is ignored."""
    a, b, c = a & 0xFFFF, b & 0xFFFF, c & 0xFFFF
    if operation == ADD_U16:
        result = a + b
    elif operation == SUBTRACT_U16:
        result = a - b
    elif operation == SUBTRACT_REVERSED_U16:
        result = b - a
    elif operation == MULTIPLY_LOW_U16:
        result = a * b
    elif operation == SHIFT_LEFT_REVERSED_16:
        result = b << (a & 15)
    elif operation == SHIFT_RIGHT_REVERSED_16:
        result = b >> (a & 15)
    elif operation == SHIFT_RIGHT_ARITHMETIC_REVERSED_16:
        result = signed16(b) >> (a & 15)
    elif operation == MAX_U16:
        result = max(a, b)
    elif operation == MAX_I16:
        result = max(signed16(a), signed16(b))
    elif operation == MIN_U16:
        result = min(a, b)
    elif operation == MIN_I16:
        result = min(signed16(a), signed16(b))
    elif operation == MED3_I16:
        result = middle(signed16(a), signed16(b), signed16(c))
    elif operation == MED3_U16:
        result = middle(a, b, c)
    elif operation == MIN3_I16:
        result = min(signed16(a), min(signed16(b), signed16(c)))
    elif operation == MAX3_I16:
        result = max(signed16(a), max(signed16(b), signed16(c)))
    elif operation == MIN3_U16:
        result = min(a, min(b, c))
    elif operation == MAX3_U16:
        result = max(a, max(b, c))
    else:
        result = a * b + c
    return result & 0xFFFF


@compiled
def _of_three(operation: int, a: int, b: int, c: int) -> int:
    if operation == FIELD_U32:
        return (a >> (b & 31)) & ((1 << (c & 31)) - 1)
    if operation == FIELD_I32:
        width = c & 31
        if width == 0:
            return 0
        field = (signed32(a) >> (b & 31)) & ((1 << width) - 1)
        sign = 1 << (width - 1)
        return (field ^ sign) - sign
    if operation == FIELD_INSERT:
        return (a & b) | (~a & c)
    if operation == ALIGN_BIT:
        return shift_right_64((a << 32) | b, c & 31)
    if operation == ALIGN_BYTE:
        return shift_right_64((a << 32) | b, 8 * (c & 3))
    if operation == MIN3_I32:
        return min(signed32(a), min(signed32(b), signed32(c)))
    if operation == MAX3_I32:
        return max(signed32(a), max(signed32(b), signed32(c)))
    if operation == MED3_I32:
        return middle(signed32(a), signed32(b), signed32(c))
    if operation == MIN3_U32:
        return min(a, min(b, c))
    if operation == MAX3_U32:
        return max(a, max(b, c))
    if operation == MED3_U32:
        return middle(a, b, c)
    if operation == ADD3:
        return a + b + c
    if operation == SHIFT_LEFT_ADD:
        return (a << (b & 31)) + c
    if operation == ADD_SHIFT_LEFT:
        return ((a + b) & 0xFFFF_FFFF) << (c & 31)
    if operation == SHIFT_LEFT_OR:
        return (a << (b & 31)) | c
    if operation == AND_OR:
        return (a & b) | c
    if operation == OR3:
        return a | b | c
    if operation == XOR_ADD:
        return (a ^ b) + c
    if operation == SELECT:
        return b if c else a
    if operation == SHIFT_LEFT_ADD_64:
        return (a << (b & 7)) + c
    if operation == SUM_OF_DIFFERENCES_U32:
        return abs(a - b) + c
    result = 0
    for byte in (24, 16, 8, 0):
        result = (result << 8) | _permuted_byte(a, b, (c >> byte) & 0xFF)
    return result


@compiled
def _of_bits(operation: int, a: int, b: int, c: int) -> int:
    """Extremes, counts of bits, packing, and shifts of 64 bits."""
    if operation == MIN_I32:
        return min(signed32(a), signed32(b))
    if operation == MAX_I32:
        return max(signed32(a), signed32(b))
    if operation == MIN_U32:
        return min(a, b)
    if operation == MAX_U32:
        return max(a, b)
    if operation == BIT_REVERSE:
        return reversed_bits(a)
    if operation == FIND_HIGH_U32:
        return zeros_above(a, 32)
    if operation == FIND_LOW:
        return lowest_one(a)
    if operation == FIND_HIGH_I32:
        return zeros_above(~a & 0xFFFF_FFFF if a & 0x8000_0000 else a, 32)
    if operation == COUNT_BITS:
        return count_ones(a) + b
    if operation == COUNT_LOWER_LANES_LOW:  # the lane stands in c
        return count_ones(a & ((1 << min(c, 32)) - 1)) + b
    if operation == COUNT_LOWER_LANES_HIGH:
        return count_ones(a & ((1 << max(c - 32, 0)) - 1)) + b
    if operation == FIELD_MASK:
        return ((1 << (a & 31)) - 1) << (b & 31)
    if operation == PACK_U16_U32:
        return min(a, 0xFFFF) | (min(b, 0xFFFF) << 16)
    if operation == PACK_I16_I32:
        low = max(min(signed32(a), 0x7FFF), -0x8000) & 0xFFFF
        return low | (max(min(signed32(b), 0x7FFF), -0x8000) & 0xFFFF) << 16
    if operation == PACK_16:
        return (a & 0xFFFF) | ((b & 0xFFFF) << 16)
    if operation == SHIFT_LEFT_REVERSED_64:
        return b << (a & 63)
    if operation == SHIFT_RIGHT_REVERSED_64:
        return shift_right_64(b, a & 63)
    if operation == SHIFT_RIGHT_ARITHMETIC_REVERSED_64:
        return b >> (a & 63)
    return _of_three(operation, a, b, c)


@compiled
def integer_operation(operation: int, a: int, b: int, c: int) -> int:
    """The result of an instruction for one lane."""
    if operation == MOVE:
        return a
    if operation == ADD:
        return a + b
    if operation == AND:
        return a & b
    if operation == OR:
        return a | b
    if operation == XOR:
        return a ^ b
    if operation == SUBTRACT:
        return a - b
    if operation == SUBTRACT_REVERSED:
        return b - a
    if operation == SHIFT_LEFT_REVERSED:
        return b << (a & 31)
    if operation == SHIFT_RIGHT_REVERSED:
        return b >> (a & 31)
    if operation == SHIFT_RIGHT_ARITHMETIC_REVERSED:
        return signed32(b) >> (a & 31)
    if operation == NOT:
        return ~a
    if operation == XNOR:
        return ~(a ^ b)
    if _is_multiplication(operation):
        return _multiply(operation, a, b, c)
    if _is_16(operation):
        return _operation_16(operation, a, b, c)
    return _of_bits(operation, a, b, c)


@compiled
def _is_multiplication(operation: int) -> bool:
    return (
        MULTIPLY_LOW <= operation <= MULTIPLY_HIGH_U24
        or MULTIPLY_ADD_I24 <= operation <= MULTIPLY_ADD_U24
        or MULTIPLY_ADD_U32_U16 <= operation <= MULTIPLY_ADD_I32_I16
        or MULTIPLY_ADD_U64_U32 <= operation <= MULTIPLY_ADD_I64_I32
        or DOT4_I8 <= operation <= DOT2_U16
    )


@compiled
def _is_16(operation: int) -> bool:
    return ADD_U16 <= operation <= MULTIPLY_ADD_16 or MED3_I16 <= operation <= MAX3_U16
