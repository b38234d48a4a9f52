"""Free registers as blocks: of sizes that are powers of two, each at a multiple of its size."""

from __future__ import annotations

from verilocc_bench.model.notes.notes_words import SIZES


def aligned_blocks(units: int, sizes: tuple[int, ...]) -> dict[int, list[int]]:
    """The first numbers of the largest blocks that a set of bits can be cut into, by size."""
    found: dict[int, list[int]] = {}
    for size in reversed(sizes):
        whole = (1 << size) - 1
        left, number, blocks = units, 0, []
        while left:
            skipped = (left & -left).bit_length() - 1
            number += skipped // size * size
            left >>= skipped // size * size
            if left & whole == whole:
                blocks.append(number)
                units &= ~(whole << number)
            number += size
            left >>= size
        found[size] = blocks
    return {size: found[size] for size in sizes}


def shown_units(units: int, highest: int, file: str) -> int:
    """What a window shows of the free registers of a file.

    Of those that nobody has had yet (from `highest` on) only the lowest block of the
    largest size, so that the short ends above are taken last; all where no such block is left.
    """
    size = SIZES[file][-1]
    first = -(-highest // size) * size
    whole = ((1 << size) - 1) << first
    while whole <= units:
        if units & whole == whole:
            return units & ((1 << whole.bit_length()) - 1)
        whole <<= size
    return units
