"""Signs, shifts and counts of bits, in compiled code."""

from __future__ import annotations

from verilocc_bench.machine.compiled import compiled


@compiled
def signed32(value: int) -> int:
    """The low 32 bits as a signed number."""
    # Flipping the sign bit and subtracting its weight extends it; so do the functions below.
    return ((value & 0xFFFF_FFFF) ^ 0x8000_0000) - 0x8000_0000


@compiled
def signed24(value: int) -> int:
    """The low 24 bits as a signed number."""
    return ((value & 0xFF_FFFF) ^ 0x80_0000) - 0x80_0000


@compiled
def signed16(value: int) -> int:
    """The low 16 bits as a signed number."""
    return ((value & 0xFFFF) ^ 0x8000) - 0x8000


@compiled
def signed8(value: int) -> int:
    """The low 8 bits as a signed number."""
    return ((value & 0xFF) ^ 0x80) - 0x80


@compiled
def shift_right_64(value: int, count: int) -> int:
    """The 64 bits shifted to the right, zeros coming in."""
    if count == 0:
        return value  # the mask below would need a shift by 64
    return (value >> count) & ((1 << (64 - count)) - 1)


@compiled
def middle(a: int, b: int, c: int) -> int:
    """The second largest of three numbers."""
    return max(min(a, b), min(max(a, b), c))


@compiled
def count_ones(value: int) -> int:
    """The number of ones."""
    count = 0
    while value:
        value &= value - 1  # without its lowest one
        count += 1
    return count


@compiled
def reversed_bits(value: int) -> int:
    """The 32 bits in reverse order."""
    result = 0
    for bit in range(32):
        result |= ((value >> bit) & 1) << (31 - bit)
    return result


@compiled
def lowest_one(value: int) -> int:
    """The place of the lowest one; 2**32 - 1 where there is none."""
    if value == 0:
        return 0xFFFF_FFFF
    count = 0
    while not (value >> count) & 1:
        count += 1
    return count


@compiled
def zeros_above(value: int, width: int) -> int:
    """The zeros above the highest one of `width` bits; 2**32 - 1 where there is none."""
    for bit in range(width - 1, -1, -1):
        if (value >> bit) & 1:
            return width - 1 - bit
    return 0xFFFF_FFFF
