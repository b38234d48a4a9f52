"""Free registers as aligned blocks."""

from __future__ import annotations

import random

from verilocc_bench.model.notes.free_blocks import aligned_blocks, shown_units

SIZES = (1, 2, 4, 8, 16)


def units_of(blocks: dict[int, list[int]]) -> list[int]:
    return [unit for size, firsts in blocks.items() for f in firsts for unit in range(f, f + size)]


def test_neighbours_are_joined_to_the_largest_aligned_blocks() -> None:
    assert aligned_blocks(0b0111_1110, (1, 2, 4)) == {1: [1, 6], 2: [2, 4], 4: []}
    assert aligned_blocks(0b1111_0110, (1, 2, 4)) == {1: [1, 2], 2: [], 4: [4]}
    assert aligned_blocks(0, (1,)) == {1: []}


def test_blocks_are_aligned_in_order_and_hold_each_register_once() -> None:
    draw = random.Random(0)
    for _ in range(300):
        units = draw.getrandbits(70) & draw.getrandbits(70) | draw.getrandbits(9) << 40
        blocks = aligned_blocks(units, SIZES)
        assert list(blocks) == list(SIZES)
        assert sorted(units_of(blocks)) == [n for n in range(80) if units >> n & 1]
        for size, firsts in blocks.items():
            assert firsts == sorted(firsts)
            assert all(first % size == 0 for first in firsts)
            if size < SIZES[-1]:  # two halves that are both free stand as one
                assert not any(f ^ size in firsts for f in firsts)


def test_of_what_nobody_had_only_the_lowest_whole_block_is_shown() -> None:
    free = ((1 << 255) - 1) & ~0b111
    assert shown_units(free, 3, "v") == 0b1111_1111_1111_1000 | 0xFFFF << 16
    assert shown_units(free, 17, "v") == ((1 << 32) - 1) & ~0b111 | 0xFFFF << 32
    # v16 is not there: the next whole block is the one from v32 on.
    assert shown_units(free & ~(1 << 16), 3, "v") == ((1 << 48) - 1) & ~(1 << 16 | 0b111)
    # No whole block is left above: all is shown.
    assert shown_units(free, 241, "v") == free
    assert shown_units(0b1010, 4, "P") == 0b1010
    assert shown_units(0b1110, 1, "P") == 0b10
