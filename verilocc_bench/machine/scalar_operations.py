"""Scalar instructions, on numbers of 32 and of 64 bits.

Each gives its result and SCC; an instruction that leaves SCC alone gives the
old one. Source: chapter "Instructions" of the "AMD Instinct MI200" and "AMD
Instinct MI300" Instruction Set Architecture guides.
"""

from __future__ import annotations

from verilocc_bench.machine.bit_functions import (
    count_ones,
    lowest_one,
    reversed_bits,
    shift_right_64,
    signed8,
    signed16,
    signed32,
    zeros_above,
)
from verilocc_bench.machine.compiled import compiled

(
    MOVE, CONDITIONAL_MOVE, NOT, BIT_REVERSE, COUNT_ZEROS, COUNT_ONES, FIND_LOW_ZERO, FIND_LOW,
    FIND_HIGH, FIND_HIGH_SIGNED, EXTEND_8, EXTEND_16, ABSOLUTE, SET_BIT, CLEAR_BIT,
    ADD_U32, SUBTRACT_U32, ADD_I32, SUBTRACT_I32, ADD_CARRY, SUBTRACT_BORROW,
    MIN_I32, MIN_U32, MAX_I32, MAX_U32, SELECT,
    AND, OR, XOR, AND_NOT, OR_NOT, NAND, NOR, XNOR,
    SHIFT_LEFT, SHIFT_RIGHT, SHIFT_RIGHT_ARITHMETIC, FIELD_MASK, MULTIPLY,
    FIELD_UNSIGNED, FIELD_SIGNED, ABSOLUTE_DIFFERENCE, MULTIPLY_HIGH_U32, MULTIPLY_HIGH_I32,
    SHIFT_1_ADD, SHIFT_2_ADD, SHIFT_3_ADD, SHIFT_4_ADD, PACK_LOW_LOW, PACK_LOW_HIGH, PACK_HIGH_HIGH,
    EQUAL, DIFFERENT, GREATER_I32, GREATER_EQUAL_I32, LESS_I32, LESS_EQUAL_I32,
    GREATER_U32, GREATER_EQUAL_U32, LESS_U32, LESS_EQUAL_U32, BIT_IS_0, BIT_IS_1,
    AND_NOT_FIRST, OR_NOT_FIRST,
) = range(65)  # fmt: skip

SCALAR_32_OPCODES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "s_mov_b32": (MOVE, 1, (1,)),
    "s_movk_i32": (MOVE, 1, (1,)),
    "s_cmov_b32": (CONDITIONAL_MOVE, 1, (1,)),
    "s_cmovk_i32": (CONDITIONAL_MOVE, 1, (1,)),
    "s_not_b32": (NOT, 1, (1,)),
    "s_brev_b32": (BIT_REVERSE, 1, (1,)),
    "s_bcnt0_i32_b32": (COUNT_ZEROS, 1, (1,)),
    "s_bcnt1_i32_b32": (COUNT_ONES, 1, (1,)),
    "s_ff0_i32_b32": (FIND_LOW_ZERO, 1, (1,)),
    "s_ff1_i32_b32": (FIND_LOW, 1, (1,)),
    "s_flbit_i32_b32": (FIND_HIGH, 1, (1,)),
    "s_flbit_i32": (FIND_HIGH_SIGNED, 1, (1,)),
    "s_sext_i32_i8": (EXTEND_8, 1, (1,)),
    "s_sext_i32_i16": (EXTEND_16, 1, (1,)),
    "s_abs_i32": (ABSOLUTE, 1, (1,)),
    "s_bitset1_b32": (SET_BIT, 1, (1,)),
    "s_bitset0_b32": (CLEAR_BIT, 1, (1,)),
    "s_add_u32": (ADD_U32, 1, (1, 1)),
    "s_sub_u32": (SUBTRACT_U32, 1, (1, 1)),
    "s_add_i32": (ADD_I32, 1, (1, 1)),
    "s_addk_i32": (ADD_I32, 1, (1,)),
    "s_sub_i32": (SUBTRACT_I32, 1, (1, 1)),
    "s_addc_u32": (ADD_CARRY, 1, (1, 1)),
    "s_subb_u32": (SUBTRACT_BORROW, 1, (1, 1)),
    "s_min_i32": (MIN_I32, 1, (1, 1)),
    "s_min_u32": (MIN_U32, 1, (1, 1)),
    "s_max_i32": (MAX_I32, 1, (1, 1)),
    "s_max_u32": (MAX_U32, 1, (1, 1)),
    "s_cselect_b32": (SELECT, 1, (1, 1)),
    "s_and_b32": (AND, 1, (1, 1)),
    "s_or_b32": (OR, 1, (1, 1)),
    "s_xor_b32": (XOR, 1, (1, 1)),
    "s_andn2_b32": (AND_NOT, 1, (1, 1)),
    "s_orn2_b32": (OR_NOT, 1, (1, 1)),
    "s_nand_b32": (NAND, 1, (1, 1)),
    "s_nor_b32": (NOR, 1, (1, 1)),
    "s_xnor_b32": (XNOR, 1, (1, 1)),
    "s_lshl_b32": (SHIFT_LEFT, 1, (1, 1)),
    "s_lshr_b32": (SHIFT_RIGHT, 1, (1, 1)),
    "s_ashr_i32": (SHIFT_RIGHT_ARITHMETIC, 1, (1, 1)),
    "s_bfm_b32": (FIELD_MASK, 1, (1, 1)),
    "s_mul_i32": (MULTIPLY, 1, (1, 1)),
    "s_mulk_i32": (MULTIPLY, 1, (1,)),
    "s_bfe_u32": (FIELD_UNSIGNED, 1, (1, 1)),
    "s_bfe_i32": (FIELD_SIGNED, 1, (1, 1)),
    "s_absdiff_i32": (ABSOLUTE_DIFFERENCE, 1, (1, 1)),
    "s_mul_hi_u32": (MULTIPLY_HIGH_U32, 1, (1, 1)),
    "s_mul_hi_i32": (MULTIPLY_HIGH_I32, 1, (1, 1)),
    "s_lshl1_add_u32": (SHIFT_1_ADD, 1, (1, 1)),
    "s_lshl2_add_u32": (SHIFT_2_ADD, 1, (1, 1)),
    "s_lshl3_add_u32": (SHIFT_3_ADD, 1, (1, 1)),
    "s_lshl4_add_u32": (SHIFT_4_ADD, 1, (1, 1)),
    "s_pack_ll_b32_b16": (PACK_LOW_LOW, 1, (1, 1)),
    "s_pack_lh_b32_b16": (PACK_LOW_HIGH, 1, (1, 1)),
    "s_pack_hh_b32_b16": (PACK_HIGH_HIGH, 1, (1, 1)),
    **{
        f"s_{kind}_{relation}_{sign}": (operation, 0, (1, 1))
        for kind in ("cmp", "cmpk")
        for relation, sign, operation in (
            ("eq", "i32", EQUAL), ("lg", "i32", DIFFERENT), ("gt", "i32", GREATER_I32),
            ("ge", "i32", GREATER_EQUAL_I32), ("lt", "i32", LESS_I32),
            ("le", "i32", LESS_EQUAL_I32), ("eq", "u32", EQUAL), ("lg", "u32", DIFFERENT),
            ("gt", "u32", GREATER_U32), ("ge", "u32", GREATER_EQUAL_U32), ("lt", "u32", LESS_U32),
            ("le", "u32", LESS_EQUAL_U32),
        )
    },
    "s_bitcmp0_b32": (BIT_IS_0, 0, (1, 1)),
    "s_bitcmp1_b32": (BIT_IS_1, 0, (1, 1)),
}  # fmt: skip
"""Each opcode: its number here, the registers of its result, and of each source."""

_LOGIC = {
    "and": AND, "or": OR, "xor": XOR, "andn2": AND_NOT, "orn2": OR_NOT, "nand": NAND, "nor": NOR,
    "xnor": XNOR, "andn1": AND_NOT_FIRST, "orn1": OR_NOT_FIRST,
}  # fmt: skip

SCALAR_64_OPCODES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "s_mov_b64": (MOVE, 2, (2,)),
    "s_cmov_b64": (CONDITIONAL_MOVE, 2, (2,)),
    "s_not_b64": (NOT, 2, (2,)),
    "s_bcnt1_i32_b64": (COUNT_ONES, 1, (2,)),
    "s_ff1_i32_b64": (FIND_LOW, 1, (2,)),
    "s_flbit_i32_b64": (FIND_HIGH, 1, (2,)),
    "s_cselect_b64": (SELECT, 2, (2, 2)),
    **{f"s_{name}_b64": (operation, 2, (2, 2)) for name, operation in _LOGIC.items()
       if not name.endswith("n1")},
    **{f"s_{name}_saveexec_b64": (operation, 2, (2,)) for name, operation in _LOGIC.items()},
    "s_lshl_b64": (SHIFT_LEFT, 2, (2, 1)),
    "s_lshr_b64": (SHIFT_RIGHT, 2, (2, 1)),
    "s_ashr_i64": (SHIFT_RIGHT_ARITHMETIC, 2, (2, 1)),
    "s_bfm_b64": (FIELD_MASK, 2, (1, 1)),
    "s_bfe_u64": (FIELD_UNSIGNED, 2, (2, 1)),
    "s_bfe_i64": (FIELD_SIGNED, 2, (2, 1)),
    "s_cmp_eq_u64": (EQUAL, 0, (2, 2)),
    "s_cmp_lg_u64": (DIFFERENT, 0, (2, 2)),
}  # fmt: skip
"""Each opcode: its number here, the registers of its result, and of each source."""

SAVES_EXEC = frozenset(name for name in SCALAR_64_OPCODES if "saveexec" in name)
COMPARES_SCALARS = frozenset(
    name for name, (_, width, _) in {**SCALAR_32_OPCODES, **SCALAR_64_OPCODES}.items() if not width
)
"""Opcodes without a result: SCC is all that they write."""


@compiled
def _compare_32(operation: int, a: int, b: int) -> bool:
    x, y = signed32(a), signed32(b)
    if operation == EQUAL:
        return a == b
    if operation == DIFFERENT:
        return a != b
    if operation == GREATER_I32:
        return x > y
    if operation == GREATER_EQUAL_I32:
        return x >= y
    if operation == LESS_I32:
        return x < y
    if operation == LESS_EQUAL_I32:
        return x <= y
    if operation == GREATER_U32:
        return a > b
    if operation == GREATER_EQUAL_U32:
        return a >= b
    if operation == LESS_U32:
        return a < b
    if operation == LESS_EQUAL_U32:
        return a <= b
    bit = bool((a >> (b & 31)) & 1)
    return bit if operation == BIT_IS_1 else not bit


@compiled
def _arithmetic_32(operation: int, a: int, b: int, scc: int) -> tuple[int, int]:
    x, y = signed32(a), signed32(b)
    if operation == ADD_U32:
        return a + b, int(a + b > 0xFFFF_FFFF)
    if operation == SUBTRACT_U32:
        return a - b, int(a < b)
    if operation == ADD_I32:
        return a + b, int(not -0x8000_0000 <= x + y <= 0x7FFF_FFFF)
    if operation == SUBTRACT_I32:
        return a - b, int(not -0x8000_0000 <= x - y <= 0x7FFF_FFFF)
    if operation == ADD_CARRY:
        return a + b + scc, int(a + b + scc > 0xFFFF_FFFF)
    if operation == SUBTRACT_BORROW:
        return a - b - scc, int(a < b + scc)
    if operation == MIN_I32:
        return min(x, y), int(x < y)
    if operation == MIN_U32:
        return min(a, b), int(a < b)
    if operation == MAX_I32:
        return max(x, y), int(x >= y)
    if operation == MAX_U32:
        return max(a, b), int(a >= b)
    if operation == MULTIPLY:
        return a * b, scc
    if operation == MULTIPLY_HIGH_U32:
        return shift_right_64(a * b, 32), scc
    if operation == MULTIPLY_HIGH_I32:
        return (x * y) >> 32, scc
    if operation == ABSOLUTE_DIFFERENCE:
        return abs(signed32(x - y)), int(x != y)  # the difference wraps first
    shift = operation - SHIFT_1_ADD + 1
    total = (a << shift) + b
    return total, int(total > 0xFFFF_FFFF)


@compiled
def _logic(operation: int, a: int, b: int) -> int:
    if operation == AND:
        return a & b
    if operation == OR:
        return a | b
    if operation == XOR:
        return a ^ b
    if operation == AND_NOT:
        return a & ~b
    if operation == OR_NOT:
        return a | ~b
    if operation == NAND:
        return ~(a & b)
    if operation == NOR:
        return ~(a | b)
    if operation == AND_NOT_FIRST:
        return ~a & b
    if operation == OR_NOT_FIRST:
        return ~a | b
    return ~(a ^ b)


@compiled
def _of_one_32(operation: int, a: int, old: int, scc: int) -> tuple[int, int]:
    if operation == CONDITIONAL_MOVE:
        return (a if scc else old), scc
    if operation == BIT_REVERSE:
        return reversed_bits(a), scc
    if operation == COUNT_ONES:
        result = count_ones(a)
        return result, int(result != 0)
    if operation == COUNT_ZEROS:
        result = 32 - count_ones(a)
        return result, int(result != 0)
    if operation == FIND_LOW:
        return lowest_one(a), scc
    if operation == FIND_LOW_ZERO:
        return lowest_one(~a & 0xFFFF_FFFF), scc
    if operation == FIND_HIGH:
        return zeros_above(a, 32), scc
    if operation == FIND_HIGH_SIGNED:
        return zeros_above(~a & 0xFFFF_FFFF if a & 0x8000_0000 else a, 32), scc
    if operation == EXTEND_8:
        return signed8(a), scc
    if operation == EXTEND_16:
        return signed16(a), scc
    if operation == ABSOLUTE:
        return abs(signed32(a)), int(a != 0)
    if operation == SET_BIT:
        return old | 1 << (a & 31), scc
    return old & ~(1 << (a & 31)), scc


@compiled
def scalar_operation_32(operation: int, a: int, b: int, old: int, scc: int) -> tuple[int, int]:
    """Result (its low 32 bits count) and SCC; `old` is what the destination holds."""
    if operation == MOVE:
        return a, scc
    if operation >= EQUAL and operation <= BIT_IS_1:
        return 0, int(_compare_32(operation, a, b))
    if (
        ADD_U32 <= operation <= MAX_U32
        or operation == MULTIPLY
        or (ABSOLUTE_DIFFERENCE <= operation <= SHIFT_4_ADD)
    ):
        return _arithmetic_32(operation, a, b, scc)
    if operation == SELECT:
        return (a if scc else b), scc
    if AND <= operation <= XNOR:
        result = _logic(operation, a, b) & 0xFFFF_FFFF
        return result, int(result != 0)
    if operation == NOT:
        result = ~a & 0xFFFF_FFFF
        return result, int(result != 0)
    if operation == FIELD_MASK:
        return ((1 << (a & 31)) - 1) << (b & 31), scc
    if operation == PACK_LOW_LOW:
        return (a & 0xFFFF) | ((b & 0xFFFF) << 16), scc
    if operation == PACK_LOW_HIGH:
        return (a & 0xFFFF) | (b & 0xFFFF_0000), scc
    if operation == PACK_HIGH_HIGH:
        return (a >> 16) | (b & 0xFFFF_0000), scc
    if operation == SHIFT_LEFT:
        result = (a << (b & 31)) & 0xFFFF_FFFF
    elif operation == SHIFT_RIGHT:
        result = a >> (b & 31)
    elif operation == SHIFT_RIGHT_ARITHMETIC:
        result = signed32(a) >> (b & 31)
    elif operation == FIELD_UNSIGNED or operation == FIELD_SIGNED:
        result = _field(operation, signed32(a), b & 31, min((b >> 16) & 0x7F, 32), a)
    else:
        return _of_one_32(operation, a, old, scc)
    return result, int(result != 0)


@compiled
def _field(operation: int, signed: int, offset: int, width: int, unsigned: int) -> int:
    """A bit field of less than 64 bits, sign-extended or not."""
    if width == 0:
        return 0
    mask = (1 << width) - 1
    if operation == FIELD_UNSIGNED:
        return (unsigned >> offset) & mask
    field, sign = (signed >> offset) & mask, 1 << (width - 1)
    return (field ^ sign) - sign


@compiled
def scalar_operation_64(operation: int, a: int, b: int, old: int, scc: int) -> tuple[int, int]:
    """Result and SCC; `old` is what the destination holds."""
    if operation == MOVE:
        return a, scc
    if AND <= operation <= XNOR or operation >= AND_NOT_FIRST:
        result = _logic(operation, a, b)
        return result, int(result != 0)
    if operation == SELECT:
        return (a if scc else b), scc
    if operation == CONDITIONAL_MOVE:
        return (a if scc else old), scc
    if operation == EQUAL:
        return 0, int(a == b)
    if operation == DIFFERENT:
        return 0, int(a != b)
    if operation == FIND_LOW:
        return lowest_one(a), scc
    if operation == FIND_HIGH:
        return zeros_above(a, 64), scc
    if operation == FIELD_MASK:
        return ((1 << (a & 63)) - 1) << (b & 63), scc
    if operation == NOT:
        result = ~a
    elif operation == COUNT_ONES:
        result = count_ones(a)
    elif operation == SHIFT_LEFT:
        result = a << (b & 63)
    elif operation == SHIFT_RIGHT:
        result = shift_right_64(a, b & 63)
    elif operation == SHIFT_RIGHT_ARITHMETIC:
        result = a >> (b & 63)
    else:
        width = (b >> 16) & 0x7F
        if width >= 64:
            signed = operation == FIELD_SIGNED
            result = a >> (b & 63) if signed else shift_right_64(a, b & 63)
            return result, int(result != 0)
        result = _field(operation, a, b & 63, width, shift_right_64(a, b & 63) << (b & 63))
        if operation == FIELD_UNSIGNED:
            result = shift_right_64(a, b & 63) & ((1 << width) - 1)
    return result, int(result != 0)
