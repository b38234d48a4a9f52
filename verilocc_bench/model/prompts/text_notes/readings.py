"""The readings of a text: first for virtual registers of several registers, then for single ones.

Some may be read before all others: those for which an earlier try had no place left.

Each reading goes through the whole text, and has the mentions of its virtual registers alone. So
those that need neighbours find room before single ones break it up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from verilocc_bench.ir import Function, RegisterClass
from verilocc_bench.model.prompts.notes.reading import Deed, Mention, TextPart, read_backwards
from verilocc_bench.model.prompts.text_notes.words import SIZES, lists_of, text_shape_of

Sizes = Mapping[str, tuple[int, ...]]
"""The sizes of blocks that a reading has lists of, by file."""


@dataclass(frozen=True, slots=True)
class TextReadingPlan:
    """One reading: the parts of the text with its mentions, and the sizes of its lists."""

    parts: tuple[TextPart, ...]
    sizes: Sizes


def readings_of(function: Function, first: Collection[int] = ()) -> Iterator[TextReadingPlan]:
    """The readings of a function whose blocks are in the order of reading.

    Those of `first`, and with single ones those that live throughout their lives, are read before
    all others, in readings of their own. Raises InputError for a class that the words have no way
    to speak of.
    """
    parts = tuple(read_backwards(function))
    kinds = function.virtual_registers
    first = _with_those_around(parts, kinds, first)
    for early in (True, False):
        for single in (False, True):
            chosen = {
                register
                for register, kind in enumerate(kinds)
                if (kind.width == 1) is single and (register in first) is early
            }
            if not chosen:
                continue
            sizes = sizes_for(kinds[register] for register in chosen)
            yield TextReadingPlan(tuple(_only(parts, chosen)), sizes)


def _with_those_around(
    parts: Iterable[TextPart], kinds: Sequence[RegisterClass], first: Collection[int]
) -> set[int]:
    """Virtual registers; with single ones those that live throughout and might have their place."""
    found = set(first)
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for part in parts:
        for mention in () if part.dry or not first else part.mentions:
            register = mention.register
            if kinds[register].width == 1:
                begins[register] = min(mention.begins, begins.get(register, mention.begins))
                ends[register] = max(mention.place, ends.get(register, mention.place))
    for one in found & begins.keys():
        files = set(kinds[one].files)
        found |= {
            other
            for other in begins
            if begins[other] <= begins[one]
            and ends[other] >= ends[one]
            and not files.isdisjoint(kinds[other].files)
        }
    return found


def sizes_for(kinds: Iterable[RegisterClass]) -> Sizes:
    """By file: from the smallest block that some class needs on; of single registers that alone."""
    least: dict[str, int] = {}
    for kind in dict.fromkeys(kinds):
        for file, size in lists_of(text_shape_of(kind)):
            least[file] = min(size, least.get(file, size))
    return {
        file: (1,) if least.get(file) == 1 else _from(sizes, least.get(file))
        for file, sizes in SIZES.items()
    }


def _from(sizes: tuple[int, ...], least: int | None) -> tuple[int, ...]:
    return () if least is None else tuple(size for size in sizes if size >= least)


def _only(parts: Iterable[TextPart], chosen: set[int]) -> Iterator[TextPart]:
    """Parts with the mentions of some virtual registers; deeds go on to the next of these."""
    waiting: list[Deed] = []
    for part in parts:
        before = [] if part.dry else waiting
        mentions: list[Mention] = []
        for mention in part.mentions:
            before += [d for d in mention.before if d.register < 0 or d.register in chosen]
            if mention.register in chosen:
                mentions.append(replace(mention, before=tuple(before)))
                before.clear()
        yield replace(part, mentions=tuple(mentions))
