"""Packs several short examples into one block of fixed length.

Next fit: blocks are filled in the order of the examples, no example is split, and
padding fills the rest of a block. Packing is deterministic and takes one pass, so it
works on streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from verilocc_bench.views.example import IGNORED, TokenizedExample


@dataclass(frozen=True, slots=True)
class PackedBlock:
    """A block of examples; all lists have the length of the block.

    `position_ids` begin at 0 in each example. `sequence_ids` are 1 in the first
    example, 2 in the second, …, and 0 in the padding. There `attention_mask` is 0 and
    `labels` are -100. The label of the first token of each example is -100, too: it
    does not follow from the example before.
    """

    input_ids: list[int]
    attention_mask: list[int]
    labels: list[int]
    position_ids: list[int]
    sequence_ids: list[int]


def pack(
    examples: Iterable[TokenizedExample], block_tokens: int, padding: int
) -> Iterator[PackedBlock]:
    """Packs examples into blocks of `block_tokens` tokens; no example may be longer."""
    waiting: list[TokenizedExample] = []
    room = block_tokens
    for example in examples:
        size = len(example.input_ids)
        if size > block_tokens:
            raise ValueError(f"an example of {size} tokens in blocks of {block_tokens}")
        if size > room:
            yield _block(waiting, block_tokens, padding)
            waiting, room = [], block_tokens
        waiting.append(example)
        room -= size
    if waiting:
        yield _block(waiting, block_tokens, padding)


def _block(examples: list[TokenizedExample], size: int, padding: int) -> PackedBlock:
    tokens: list[int] = []
    labels: list[int] = []
    positions: list[int] = []
    sequences: list[int] = []
    for number, example in enumerate(examples, 1):
        count = len(example.input_ids)
        tokens += example.input_ids
        labels += [IGNORED, *example.labels[1:]]
        positions += range(count)
        sequences += [number] * count
    rest = size - len(tokens)
    return PackedBlock(
        input_ids=tokens + [padding] * rest,
        attention_mask=[1] * len(tokens) + [0] * rest,
        labels=labels + [IGNORED] * rest,
        position_ids=positions + [0] * rest,
        sequence_ids=sequences + [0] * rest,
    )
