"""The lists of free blocks that a window's prompt shows, and how they change within it.

The rules are those of `text-notes`. A block that is taken leaves its list. Its rest, and
lanes that are given back, go to the heads of the lists. Blocks are never joined.
Demonstrations write the lists down. The lists that a model writes are not checked.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verilocc_bench.model.prompts.notes.ledger import NotedPlace
from verilocc_bench.model.prompts.notes.words import register_word
from verilocc_bench.model.prompts.text_notes.blocks import aligned_blocks
from verilocc_bench.model.prompts.text_notes.words import MORE, lists_of

SHOWN = 6
"""A list shows at most so many blocks at the head of a window."""

Written = dict[str, dict[str, list[str]]]
"""Lists as they are written: by file and size the first registers of blocks."""


class FreeLists:
    """Lists of the free blocks of some files, by size; the head of a list comes first."""

    def __init__(self, whole: Mapping[str, Mapping[int, Sequence[int]]]) -> None:
        self._blocks = {
            file: {size: list(blocks[:SHOWN]) for size, blocks in lists.items()}
            for file, lists in whole.items()
        }
        self._more = {
            (file, size)
            for file, lists in whole.items()
            for size, blocks in lists.items()
            if len(blocks) > SHOWN
        }
        self._changed: set[tuple[str, int]] = set()

    def first(self, shape: str) -> NotedPlace | None:
        """The head of the list of the smallest blocks that are wide enough; None where none is."""
        for file, size in lists_of(shape):
            blocks = self._blocks.get(file, {}).get(size)
            if blocks:
                return NotedPlace(file, blocks[0])
            if (file, size) in self._more:
                return None
        return None

    def take(self, place: NotedPlace, width: int) -> None:
        """Registers are taken; what is left of their blocks stays free."""
        taken = ((1 << width) - 1) << place.number
        left = 0
        for size, blocks in self._blocks[place.file].items():
            for number in list(blocks):
                block = ((1 << size) - 1) << number
                if block & taken:
                    blocks.remove(number)
                    self._changed.add((place.file, size))
                    left |= block & ~taken
        self.put(place.file, left)

    def put(self, file: str, units: int) -> None:
        """Registers, as a set of bits, are free again."""
        for size, numbers in aligned_blocks(units, tuple(self._blocks[file])).items():
            for number in numbers:
                self._blocks[file][size].insert(0, number)
                self._changed.add((file, size))

    def written(self) -> Written:
        """All lists."""
        return self._write({(file, size) for file in self._blocks for size in self._blocks[file]})

    def changes(self) -> Written:
        """The lists that have changed since the last time."""
        changed, self._changed = self._changed, set()
        return self._write(changed)

    def _write(self, which: set[tuple[str, int]]) -> Written:
        found: Written = {}
        for file, lists in self._blocks.items():
            for size, blocks in lists.items():
                if (file, size) in which:
                    words = [register_word(file, number) for number in blocks]
                    more = [MORE] if (file, size) in self._more else []
                    found.setdefault(file, {})[str(size)] = words + more
        return found
