"""How the lanes of a wave read their sources and write their results, in compiled code."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

from verilocc_bench.machine.compiled import (
    compiled,
    float32,
    float32_bits,
    float32_of,
    float64,
    float64_bits,
    float64_of,
    int64,
    uint32,
)
from verilocc_bench.machine.fields import (
    A_MODIFIERS,
    A_WIDTH,
    ABSOLUTE,
    AS_FLOAT_16,
    AS_FLOAT_64,
    AS_HALVES,
    BOUND_CONTROL,
    CLAMP,
    DESTINATION_SHIFT,
    EXTEND,
    FIRST_CONSTANT,
    FLAGS,
    FLUSHES_SOURCE,
    FORMAT_SHIFT,
    HALF_AS_FLOAT,
    HIGH_FROM_HIGH,
    HIGH_HALF,
    KEEP_HIGH_HALF,
    LANE_MASKS,
    LANE_PATTERN,
    LANE_VALUE,
    LANES,
    NEGATE,
    NEGATE_HIGH,
    NUMBER_SHIFT,
    OUTPUT_SHIFT,
    PACKED_16,
    PACKED_32,
    PRESERVE,
    QUAD,
    QUIETS_SOURCES,
    RESULT,
    RESULT_MODIFIERS,
    RESULT_WIDTH,
    ROW_BROADCAST_15,
    ROW_BROADCAST_31,
    ROW_HALF_MIRROR,
    ROW_MIRROR,
    ROW_NEW_BROADCAST,
    ROW_ROTATE,
    ROW_SHIFT_LEFT,
    ROW_SHIFT_RIGHT,
    SELECT_SHIFT,
    SIGN_EXTEND,
    TO_HIGH_HALF,
    UNUSED_SHIFT,
    VECTOR,
    WAVE_ROTATE_LEFT,
    WAVE_ROTATE_RIGHT,
    WAVE_SHIFT_LEFT,
    WAVE_SHIFT_RIGHT,
    A,
)
from verilocc_bench.machine.number_formats import float16_bits, float16_of

# Arrays in compiled code: elements of int64, uint32, float64. Their elements are plain numbers
# there, which the type checker takes for numpy's.
Integers: TypeAlias = Any
Registers: TypeAlias = Any
Numbers: TypeAlias = Any


@compiled
def lane_bit(mask: int, lane: int) -> int:
    """A lane's bit of a mask of 64."""
    return (mask >> lane) & 1


@compiled
def read_pair(scalars: Integers, place: int) -> int:
    """64 bits from two scalar places."""
    return scalars[place] | (scalars[place + 1] << 32)


@compiled
def write_pair(scalars: Integers, place: int, value: int) -> None:
    """64 bits to two scalar places."""
    scalars[place] = value & 0xFFFF_FFFF
    scalars[place + 1] = (value >> 32) & 0xFFFF_FFFF


@compiled
def _modified(value: int, modifiers: int) -> int:
    """A source after selection of its part, absolute value and negation."""
    select = (modifiers >> SELECT_SHIFT) & 7
    if select:
        bits = 8 if select <= 4 else 16
        shift = 8 * (select - 1) if select <= 4 else 16 * (select - 5)
        value = (value >> shift) & ((1 << bits) - 1)
        if modifiers & SIGN_EXTEND:
            sign = 1 << (bits - 1)
            value = ((value ^ sign) - sign) & 0xFFFF_FFFF
    if modifiers & HIGH_HALF:
        value = (value >> 16) & 0xFFFF
    if modifiers & HALF_AS_FLOAT:
        value = float32_bits(float32(float16_of(value & 0xFFFF)))
    if modifiers & (ABSOLUTE | NEGATE):
        number = (modifiers >> NUMBER_SHIFT) & 3
        sign_place = 31 if number == 0 else 15 if number == 1 else 63
        if modifiers & ABSOLUTE:
            value &= ~(1 << sign_place)
        if modifiers & NEGATE:
            value ^= 1 << sign_place
    return value


@compiled
def _component_modifiers(modifiers: int, component: int, flags: int) -> int:
    """A packed instruction's modifiers for one component, in the form of an unpacked one."""
    kept = modifiers & (3 << NUMBER_SHIFT)
    negate = modifiers & (NEGATE if component == 0 else NEGATE_HIGH)
    high = modifiers & (HIGH_HALF if component == 0 else HIGH_FROM_HIGH)
    if negate:
        kept |= NEGATE
    if high and flags & PACKED_16:
        kept |= HIGH_HALF
    return kept


@compiled
def read_source(
    row: Integers, slot: int, component: int, scalars: Integers, vectors: Registers, out: Integers
) -> None:
    """Fills `out` with source number `slot` of all lanes, active or not."""
    place, width = row[A + 2 * slot], row[A_WIDTH + 2 * slot]
    modifiers, flags = row[A_MODIFIERS + slot], row[FLAGS]
    if flags & (PACKED_16 | PACKED_32):
        high = modifiers & (HIGH_HALF if component == 0 else HIGH_FROM_HIGH)
        modifiers = _component_modifiers(modifiers, component, flags)
        if flags & PACKED_32:
            modifiers &= ~(3 << NUMBER_SHIFT)
            width = 1
            if high and not FIRST_CONSTANT <= place < VECTOR:
                place += 1
    changes = modifiers & ~(3 << NUMBER_SHIFT)
    if place < VECTOR:
        value = scalars[place]
        if width == 2:
            value = read_pair(scalars, place)
        if changes:
            value = _modified(value, modifiers)
        for lane in range(LANES):
            out[lane] = value
        return
    register = place - VECTOR
    if width == 1:
        for lane in range(LANES):
            out[lane] = vectors[register, lane]
    else:
        for lane in range(LANES):
            out[lane] = int64(vectors[register, lane]) | (int64(vectors[register + 1, lane]) << 32)
    if changes:
        for lane in range(LANES):
            out[lane] = _modified(out[lane], modifiers)


@compiled
def _source_lane(lane: int, pattern: int, value: int) -> int:
    """The lane that a lane reads with data-parallel primitives; -1 where it is out of range."""
    line, place = lane & ~15, lane & 15
    if pattern == QUAD:
        return (lane & ~3) | ((value >> (2 * (lane & 3))) & 3)
    if pattern == ROW_SHIFT_LEFT:
        return line + place + value if place + value < 16 else -1
    if pattern == ROW_SHIFT_RIGHT:
        return line + place - value if place >= value else -1
    if pattern == ROW_ROTATE:
        return line + ((place - value) & 15)
    if pattern == WAVE_SHIFT_LEFT:
        return lane + 1 if lane < 63 else -1
    if pattern == WAVE_ROTATE_LEFT:
        return (lane + 1) & 63
    if pattern == WAVE_SHIFT_RIGHT:
        return lane - 1
    if pattern == WAVE_ROTATE_RIGHT:
        return (lane - 1) & 63
    if pattern == ROW_MIRROR:
        return line + 15 - place
    if pattern == ROW_HALF_MIRROR:
        return (lane & ~7) + 7 - (lane & 7)
    if pattern == ROW_BROADCAST_15:
        return (lane & ~15) - 1
    if pattern == ROW_BROADCAST_31:
        return 31 if lane >= 32 else -1
    if pattern == ROW_NEW_BROADCAST:
        return line + value
    return lane


@compiled
def permute_lanes(row: Integers, values: Integers, spare: Integers, execution: int) -> int:
    """Applies data-parallel primitives to the first source; gives the lanes that are written.

    A lane whose source is out of range or inactive reads 0 with BOUND_CTRL, and
    is not written without.
    """
    masks = row[LANE_MASKS]
    written = 0
    for lane in range(LANES):
        spare[lane] = values[lane]
    for lane in range(LANES):
        source = _source_lane(lane, row[LANE_PATTERN], row[LANE_VALUE])
        allowed = (masks >> (lane >> 4)) & 1 and (masks >> (4 + ((lane >> 2) & 3))) & 1
        is_valid = source >= 0 and lane_bit(execution, source) == 1
        values[lane] = spare[source] if is_valid else 0
        if allowed and (is_valid or masks & BOUND_CONTROL):
            written |= 1 << lane
    return written & execution


@compiled
def flush(numbers: Integers) -> None:
    """Makes zeros of the denormal float32 numbers of all lanes."""
    for lane in range(LANES):
        if numbers[lane] & 0x7F80_0000 == 0:
            numbers[lane] &= 0x8000_0000


@compiled
def _quiet(values: Integers, number: int) -> None:
    """Makes signalling NaNs quiet; `number` is the format (see NUMBER_SHIFT)."""
    mantissa_bits = 52 if number == 2 else 10 if number == 1 else 23
    exponent = ((2048 if number == 2 else 32 if number == 1 else 256) - 1) << mantissa_bits
    for lane in range(LANES):
        value = values[lane]
        if value & exponent == exponent and value & ((1 << mantissa_bits) - 1):
            values[lane] = value | 1 << (mantissa_bits - 1)


@compiled
def prepare_sources(row: Integers, sources: Integers) -> None:
    """Denormals of the sources become zero, and NaNs quiet, where the row says so."""
    for slot in range(3):
        if row[FLAGS] & (FLUSHES_SOURCE << slot):
            flush(sources[slot])
        if row[FLAGS] & QUIETS_SOURCES:
            _quiet(sources[slot], (row[A_MODIFIERS] >> NUMBER_SHIFT) & 3)


@compiled
def _finished(value: int, modifiers: int, numbers: int) -> int:
    """A result after output modifier and clamp; `numbers` is its format (see FORMAT_SHIFT)."""
    output = (modifiers >> OUTPUT_SHIFT) & 3
    if numbers == AS_FLOAT_64:
        number = float64_of(value)
    elif numbers == AS_FLOAT_16:
        number = float16_of(value & 0xFFFF)
    else:
        number = float64(float32_of(value))
    if output == 1:
        number = number * 2.0
    elif output == 2:
        number = number * 4.0
    elif output == 3:
        number = number * 0.5
    if modifiers & CLAMP:
        number = max(0.0, min(1.0, number)) if not math.isnan(number) else 0.0
    if numbers == AS_FLOAT_64:
        return float64_bits(number)
    if numbers == AS_FLOAT_16:
        return float16_bits(number)
    return float32_bits(float32(number))


@compiled
def finish(row: Integers, result: Integers) -> None:
    """Applies output modifier and clamp to the results of all lanes."""
    modifiers = row[RESULT_MODIFIERS]
    if not modifiers & (CLAMP | (3 << OUTPUT_SHIFT)):
        return
    numbers = (modifiers >> FORMAT_SHIFT) & 3
    for lane in range(LANES):
        value = result[lane]
        if numbers == AS_HALVES:
            high = _finished(value >> 16, modifiers, AS_FLOAT_16)
            result[lane] = _finished(value, modifiers, AS_FLOAT_16) | (high << 16)
        else:
            result[lane] = _finished(value, modifiers, numbers)


@compiled
def _placed(old: int, value: int, modifiers: int) -> int:
    """A result at SDWA's place in its register."""
    select, unused = (modifiers >> DESTINATION_SHIFT) & 7, (modifiers >> UNUSED_SHIFT) & 3
    bits = 8 if select <= 4 else 16
    shift = 8 * (select - 1) if select <= 4 else 16 * (select - 5)
    mask = ((1 << bits) - 1) << shift
    part = (value << shift) & mask
    if unused == PRESERVE:
        return (old & ~mask) | part
    if unused == EXTEND and (part >> (shift + bits - 1)) & 1:
        return part | (~((1 << (shift + bits)) - 1) & 0xFFFF_FFFF)
    return part


@compiled
def write_result(row: Integers, result: Integers, written: int, vectors: Registers) -> None:
    """Writes the results of the lanes in `written`, which are finished, to the destination."""
    register, width = row[RESULT] - VECTOR, row[RESULT_WIDTH]
    modifiers, flags = row[RESULT_MODIFIERS], row[FLAGS]
    if width == 2:
        for lane in range(LANES):
            if (written >> lane) & 1:
                vectors[register, lane] = uint32(result[lane])
                vectors[register + 1, lane] = uint32(result[lane] >> 32)
        return
    if modifiers >> DESTINATION_SHIFT & 7:
        for lane in range(LANES):
            result[lane] = _placed(vectors[register, lane], result[lane], modifiers)
    elif flags & (TO_HIGH_HALF | KEEP_HIGH_HALF):
        for lane in range(LANES):
            old, value = int64(vectors[register, lane]), result[lane] & 0xFFFF
            if flags & TO_HIGH_HALF:
                result[lane] = (old & 0xFFFF) | (value << 16)
            else:
                result[lane] = (old & 0xFFFF_0000) | value
    if written == -1:
        for lane in range(LANES):
            vectors[register, lane] = uint32(result[lane])
    else:
        for lane in range(LANES):
            if (written >> lane) & 1:
                vectors[register, lane] = uint32(result[lane])
