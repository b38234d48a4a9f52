"""One vector instruction for the lanes of a wave, in compiled code."""

from __future__ import annotations

import math

from verilocc_bench.machine.bit_functions import signed32
from verilocc_bench.machine.compiled import compiled, float32_of, float64, float64_of, uint32
from verilocc_bench.machine.fields import (
    CARRY,
    COMPARE,
    EXEC,
    FLAGS,
    FLOAT_16,
    FLOAT_32,
    FLUSHES_RESULT,
    GROUP,
    INTEGER,
    LANE_PATTERN,
    LANES,
    NONE,
    OPERATION,
    PACKED_16,
    PACKED_32,
    RESULT,
    SECOND,
    SELECT,
    VCC,
    VECTOR,
    WRITES_EXEC,
    A,
    B,
    C,
)
from verilocc_bench.machine.float_operations import divide_scale32, float32_operation
from verilocc_bench.machine.integer_operations import (
    COUNT_LOWER_LANES_HIGH,
    COUNT_LOWER_LANES_LOW,
    MULTIPLY_ADD_I64_I32,
    MULTIPLY_ADD_U64_U32,
    integer_operation,
)
from verilocc_bench.machine.lanes import (
    Integers,
    Registers,
    finish,
    flush,
    lane_bit,
    permute_lanes,
    prepare_sources,
    read_pair,
    read_source,
    write_pair,
    write_result,
)
from verilocc_bench.machine.number_formats import class_of_32, float16_of
from verilocc_bench.machine.opcode_table import (
    ADD_CARRY_OUT,
    ADD_WITH_CARRY,
    DIFFERENT,
    DIVIDE_SCALE_32,
    DIVIDE_SCALE_64,
    EQUAL,
    FALSE,
    GREATER,
    GREATER_EQUAL,
    LESS,
    LESS_EQUAL,
    LESS_GREATER,
    NOT_GREATER,
    NOT_GREATER_EQUAL,
    NOT_LESS,
    NOT_LESS_EQUAL,
    NOT_LESS_GREATER,
    OF_CLASS,
    ORDERED,
    READ_FIRST_LANE,
    READ_LANE,
    RELATION_BITS,
    SUBTRACT_CARRY_OUT,
    SUBTRACT_REVERSED_CARRY_OUT,
    SUBTRACT_WITH_BORROW,
    TRUE,
    TYPE_F16,
    TYPE_F32,
    TYPE_F64,
    TYPE_I16,
    TYPE_I32,
    TYPE_I64,
    TYPE_U16,
    TYPE_U32,
    UNORDERED,
    WIDE_U64,
    WRITE_LANE,
)
from verilocc_bench.machine.wide_operations import (
    divide_scale64,
    float16_operation,
    float64_operation,
)


@compiled
def _float_relation(relation: int, x: float, y: float) -> bool:
    unordered = math.isnan(x) or math.isnan(y)
    if relation == EQUAL:
        return x == y
    if relation == LESS:
        return x < y
    if relation == LESS_EQUAL:
        return x <= y
    if relation == GREATER:
        return x > y
    if relation == GREATER_EQUAL:
        return x >= y
    if relation == LESS_GREATER:
        return not unordered and x != y
    if relation == ORDERED:
        return not unordered
    if relation == UNORDERED:
        return unordered
    if relation == DIFFERENT:
        return unordered or x != y
    if relation == NOT_GREATER_EQUAL:
        return not x >= y
    if relation == NOT_LESS_GREATER:
        return unordered or x == y
    if relation == NOT_GREATER:
        return not x > y
    if relation == NOT_LESS_EQUAL:
        return not x <= y
    if relation == NOT_LESS:
        return not x < y
    return relation == TRUE


@compiled
def _integer_relation(relation: int, x: int, y: int) -> bool:
    if relation == EQUAL:
        return x == y
    if relation == DIFFERENT:
        return x != y
    if relation == LESS:
        return x < y
    if relation == LESS_EQUAL:
        return x <= y
    if relation == GREATER:
        return x > y
    if relation == GREATER_EQUAL:
        return x >= y
    return relation == TRUE and relation != FALSE


@compiled
def _holds(operation: int, a: int, b: int) -> bool:
    """A comparison for one lane."""
    relation, kind = operation & ((1 << RELATION_BITS) - 1), operation >> RELATION_BITS
    if relation == OF_CLASS:
        return bool((b >> class_of_32(a)) & 1)
    if kind == TYPE_F32:
        return _float_relation(relation, float64(float32_of(a)), float64(float32_of(b)))
    if kind == TYPE_F64:
        return _float_relation(relation, float64_of(a), float64_of(b))
    if kind == TYPE_F16:
        return _float_relation(relation, float16_of(a & 0xFFFF), float16_of(b & 0xFFFF))
    if kind == TYPE_I32:
        return _integer_relation(relation, signed32(a), signed32(b))
    if kind == TYPE_U32 or kind == TYPE_I64:
        return _integer_relation(relation, a, b)
    if kind == TYPE_I16:
        return _integer_relation(
            relation, ((a & 0xFFFF) ^ 0x8000) - 0x8000, ((b & 0xFFFF) ^ 0x8000) - 0x8000
        )
    if kind == TYPE_U16:
        return _integer_relation(relation, a & 0xFFFF, b & 0xFFFF)
    # Unsigned 64 bits: flipping the sign makes them signed in the same order.
    flip = -0x8000_0000_0000_0000
    return _integer_relation(relation, a ^ flip, b ^ flip)


@compiled
def _carrying(operation: int, a: int, b: int, c: int, carry: int) -> tuple[int, bool]:
    """A result and the lane's bit of the second destination."""
    if operation == ADD_CARRY_OUT:
        return a + b, a + b > 0xFFFF_FFFF
    if operation == SUBTRACT_CARRY_OUT:
        return a - b, a < b
    if operation == SUBTRACT_REVERSED_CARRY_OUT:
        return b - a, b < a
    if operation == ADD_WITH_CARRY:
        return a + b + carry, a + b + carry > 0xFFFF_FFFF
    if operation == SUBTRACT_WITH_BORROW:
        return a - b - carry, a < b + carry
    if operation == DIVIDE_SCALE_32:
        return divide_scale32(a, b, c)
    if operation == DIVIDE_SCALE_64:
        return divide_scale64(a, b, c)
    if operation == WIDE_U64:
        total = integer_operation(MULTIPLY_ADD_U64_U32, a, b, c)
        flip = -0x8000_0000_0000_0000
        return total, (total ^ flip) < (c ^ flip)
    if operation == WIDE_U64 + 1:
        total = integer_operation(MULTIPLY_ADD_I64_I32, a, b, c)
        product = signed32(a) * signed32(b)
        # The sign of the exact sum, of 65 bits: where the sum overflows, the sign of both addends.
        same = (product < 0) == (c < 0)
        return total, c < 0 if same else total < 0
    return b - a - carry, b < a + carry


@compiled
def _compute(
    row: Integers, component: int, scalars: Integers, vectors: Registers,
    sources: Integers, result: Integers, spare: Integers,
) -> int:  # fmt: skip
    """Fills `result` for all lanes; gives the lanes that are written."""
    group, operation = row[GROUP], row[OPERATION]
    execution = read_pair(scalars, EXEC)
    written = execution
    read_source(row, 0, component, scalars, vectors, sources[0])
    if row[LANE_PATTERN]:
        written = permute_lanes(row, sources[0], spare, execution)
    if row[B] != NONE:
        read_source(row, 1, component, scalars, vectors, sources[1])
    if row[C] != NONE:
        read_source(row, 2, component, scalars, vectors, sources[2])
    prepare_sources(row, sources)
    if group == INTEGER:
        if operation == COUNT_LOWER_LANES_LOW or operation == COUNT_LOWER_LANES_HIGH:
            for lane in range(LANES):
                sources[2, lane] = lane
        for lane in range(LANES):
            result[lane] = integer_operation(
                operation, sources[0, lane], sources[1, lane], sources[2, lane]
            )
    elif group == FLOAT_32:
        condition = read_pair(scalars, VCC)
        for lane in range(LANES):
            result[lane] = float32_operation(
                operation, sources[0, lane], sources[1, lane], sources[2, lane],
                lane_bit(condition, lane) == 1,
            )  # fmt: skip
        if row[FLAGS] & FLUSHES_RESULT:
            flush(result)
    elif group == FLOAT_16:
        for lane in range(LANES):
            result[lane] = float16_operation(
                operation, sources[0, lane], sources[1, lane], sources[2, lane]
            )
    else:
        condition = read_pair(scalars, VCC)
        for lane in range(LANES):
            result[lane] = float64_operation(
                operation, sources[0, lane], sources[1, lane], sources[2, lane],
                lane_bit(condition, lane) == 1,
            )  # fmt: skip
    return written


@compiled
def _packed(
    row: Integers, scalars: Integers, vectors: Registers,
    sources: Integers, results: Integers, spare: Integers,
) -> None:  # fmt: skip
    written = _compute(row, 0, scalars, vectors, sources, results[0], spare)
    if row[FLAGS] & PACKED_32 and row[LANE_PATTERN] == 0 and row[GROUP] == INTEGER:
        # V_PK_MOV_B32: the high result is a move of the second source.
        read_source(row, 1, 1, scalars, vectors, results[1])
    else:
        _compute(row, 1, scalars, vectors, sources, results[1], spare)
    finish(row, results[0])
    finish(row, results[1])
    for lane in range(LANES):
        if row[FLAGS] & PACKED_32:
            results[0, lane] = (results[0, lane] & 0xFFFF_FFFF) | (results[1, lane] << 32)
        else:
            results[0, lane] = (results[0, lane] & 0xFFFF) | ((results[1, lane] & 0xFFFF) << 16)
    write_result(row, results[0], written, vectors)


@compiled
def _compare(
    row: Integers, scalars: Integers, vectors: Registers, sources: Integers, spare: Integers
) -> None:
    execution = read_pair(scalars, EXEC)
    read_source(row, 0, 0, scalars, vectors, sources[0])
    written = execution
    if row[LANE_PATTERN]:
        written = permute_lanes(row, sources[0], spare, execution)
    read_source(row, 1, 0, scalars, vectors, sources[1])
    prepare_sources(row, sources)
    mask = 0
    for lane in range(LANES):
        if (written >> lane) & 1 and _holds(row[OPERATION], sources[0, lane], sources[1, lane]):
            mask |= 1 << lane
    write_pair(scalars, row[RESULT], mask)
    if row[FLAGS] & WRITES_EXEC:
        write_pair(scalars, EXEC, mask)


@compiled
def vector_step(
    row: Integers, scalars: Integers, vectors: Registers,
    sources: Integers, results: Integers, spare: Integers,
) -> None:  # fmt: skip
    """Executes a vector instruction that stays within its lanes, or compares."""
    group = row[GROUP]
    if group == COMPARE:
        _compare(row, scalars, vectors, sources, spare)
        return
    if row[FLAGS] & (PACKED_16 | PACKED_32):
        _packed(row, scalars, vectors, sources, results, spare)
        return
    result = results[0]
    if group == SELECT:
        execution = read_pair(scalars, EXEC)
        written = execution
        read_source(row, 0, 0, scalars, vectors, sources[0])
        if row[LANE_PATTERN]:
            written = permute_lanes(row, sources[0], spare, execution)
        read_source(row, 1, 0, scalars, vectors, sources[1])
        mask = read_pair(scalars, row[C])
        for lane in range(LANES):
            result[lane] = sources[1, lane] if (mask >> lane) & 1 else sources[0, lane]
        write_result(row, result, written, vectors)
        return
    if group == CARRY:
        _carry(row, scalars, vectors, sources, result, spare)
        return
    written = _compute(row, 0, scalars, vectors, sources, result, spare)
    finish(row, result)
    write_result(row, result, written, vectors)


@compiled
def _carry(
    row: Integers, scalars: Integers, vectors: Registers,
    sources: Integers, result: Integers, spare: Integers,
) -> None:  # fmt: skip
    written, operation = read_pair(scalars, EXEC), row[OPERATION]
    read_source(row, 0, 0, scalars, vectors, sources[0])
    if row[LANE_PATTERN]:
        written = permute_lanes(row, sources[0], spare, written)
    read_source(row, 1, 0, scalars, vectors, sources[1])
    carries_in = 0
    if row[C] != NONE:
        read_source(row, 2, 0, scalars, vectors, sources[2])
        if row[C] < VECTOR:
            carries_in = read_pair(scalars, row[C])
    mask = 0
    for lane in range(LANES):
        value, bit = _carrying(
            operation, sources[0, lane], sources[1, lane], sources[2, lane],
            (carries_in >> lane) & 1,
        )  # fmt: skip
        result[lane] = value
        if bit and (written >> lane) & 1:
            mask |= 1 << lane
    finish(row, result)
    write_result(row, result, written, vectors)
    write_pair(scalars, row[SECOND], mask)


@compiled
def across_lanes(row: Integers, scalars: Integers, vectors: Registers) -> None:
    """V_READLANE, V_READFIRSTLANE, V_WRITELANE and V_SWAP."""
    operation, execution = row[OPERATION], read_pair(scalars, EXEC)
    if operation == WRITE_LANE:
        vectors[row[RESULT] - VECTOR, scalars[row[B]] & 63] = uint32(scalars[row[A]])
        return
    register = row[A] - VECTOR
    if operation == READ_LANE:
        scalars[row[RESULT]] = vectors[register, scalars[row[B]] & 63]
    elif operation == READ_FIRST_LANE:
        first = 0
        while first < 63 and not (execution >> first) & 1:
            first += 1
        scalars[row[RESULT]] = vectors[register, first if execution else 0]
    else:
        other = row[RESULT] - VECTOR
        for lane in range(LANES):
            if (execution >> lane) & 1:
                kept = vectors[register, lane]
                vectors[register, lane] = vectors[other, lane]
                vectors[other, lane] = kept
