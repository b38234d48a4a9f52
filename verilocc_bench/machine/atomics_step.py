"""Bytes in memory, and what atomics make of them, in compiled code."""

from __future__ import annotations

import numpy as np

from verilocc_bench.machine.bit_functions import signed32
from verilocc_bench.machine.compiled import (
    compiled,
    float32_bits,
    float32_of,
    float64_bits,
    float64_of,
    int64,
    uint32,
)
from verilocc_bench.machine.fields import FLAGS, OPERATION, RESULT, RETURNS, SIZE, VECTOR
from verilocc_bench.machine.lanes import Integers, Numbers, Registers
from verilocc_bench.machine.memory_opcodes import (
    ADD,
    ADD_F32,
    ADD_F64,
    AND,
    COMPARE_SWAP,
    DECREMENT,
    INCREMENT,
    MAX_F32,
    MAX_F64,
    MAX_SIGNED,
    MAX_UNSIGNED,
    MIN_F32,
    MIN_F64,
    MIN_SIGNED,
    MIN_UNSIGNED,
    OR,
    PACKED_ADD_BF16,
    REVERSE_SUBTRACT,
    SUBTRACT,
    SWAP,
    XOR,
)
from verilocc_bench.machine.number_formats import (
    float16_bits,
    float16_of,
    maximum32,
    maximum64,
    minimum32,
    minimum64,
)


@compiled
def load_bytes(memory: Numbers, place: int, size: int) -> int:
    """Up to four bytes as a number."""
    value = int64(memory[place])
    for byte in range(1, size):
        value |= int64(memory[place + byte]) << (8 * byte)
    return value


@compiled
def store_bytes(memory: Numbers, place: int, size: int, value: int) -> None:
    """The low bytes of a number to memory."""
    for byte in range(size):
        memory[place + byte] = np.uint8((value >> (8 * byte)) & 0xFF)


@compiled
def _packed_sum(old: int, data: int, shift: int, is_bf16: bool) -> int:
    x, y = (old >> shift) & 0xFFFF, (data >> shift) & 0xFFFF
    if not is_bf16:
        return float16_bits(float16_of(x) + float16_of(y)) << shift
    bits = float32_bits(float32_of(x << 16) + float32_of(y << 16))
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return (rounded & 0xFFFF) << shift


@compiled
def _combined(operation: int, old: int, data: int, size: int) -> int:
    """What an atomic leaves in memory. Numbers of 32 bits are not negative."""
    x, y = old, data
    if size == 4:
        x, y = signed32(old), signed32(data)
    flip = -0x8000_0000_0000_0000
    if operation == ADD:
        return old + data
    if operation == SUBTRACT:
        return old - data
    if operation == REVERSE_SUBTRACT:
        return data - old
    if operation == SWAP:
        return data
    if operation == MIN_SIGNED:
        return old if x < y else data
    if operation == MAX_SIGNED:
        return old if x > y else data
    if operation == MIN_UNSIGNED:
        return old if (old ^ flip) < (data ^ flip) else data
    if operation == MAX_UNSIGNED:
        return old if (old ^ flip) > (data ^ flip) else data
    if operation == AND:
        return old & data
    if operation == OR:
        return old | data
    if operation == XOR:
        return old ^ data
    if operation == INCREMENT:
        return 0 if (old ^ flip) >= (data ^ flip) else old + 1
    if operation == DECREMENT:
        return data if old == 0 or (old ^ flip) > (data ^ flip) else old - 1
    if operation == ADD_F32:
        return float32_bits(float32_of(old) + float32_of(data))
    if operation == MIN_F32:
        return minimum32(old, data)
    if operation == MAX_F32:
        return maximum32(old, data)
    if operation == ADD_F64:
        return float64_bits(float64_of(old) + float64_of(data))
    if operation == MIN_F64:
        return minimum64(old, data)
    if operation == MAX_F64:
        return maximum64(old, data)
    is_bf16 = operation == PACKED_ADD_BF16
    return _packed_sum(old, data, 0, is_bf16) | _packed_sum(old, data, 16, is_bf16)


@compiled
def do_atomic(
    fields: Integers, vectors: Registers, data: Registers, lane: int, memory: Numbers, place: int
) -> None:
    """An atomic of one lane; `data` are the words that it took along."""
    size, operation = fields[SIZE], fields[OPERATION]
    words = size // 4
    old = load_bytes(memory, place, 4)
    given = int64(data[0, lane])
    compared = int64(data[words, lane])
    if words == 2:
        old |= load_bytes(memory, place + 4, 4) << 32
        given |= int64(data[1, lane]) << 32
        compared |= int64(data[3, lane]) << 32
    if operation == COMPARE_SWAP:
        new = given if old == compared else old
    else:
        new = _combined(operation, old, given, size)
    store_bytes(memory, place, 4, new & 0xFFFF_FFFF)
    if words == 2:
        store_bytes(memory, place + 4, 4, (new >> 32) & 0xFFFF_FFFF)
    if fields[FLAGS] & RETURNS:
        register = fields[RESULT] - VECTOR
        vectors[register, lane] = uint32(old & 0xFFFF_FFFF)
        if words == 2:
            vectors[register + 1, lane] = uint32((old >> 32) & 0xFFFF_FFFF)
