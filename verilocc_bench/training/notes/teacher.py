"""Whose answers the model of the format `notes` learns.

It knows the notes and the window alone, as the model does. What has a line keeps its
register. What has none takes the head of the first list that has room for it, in the order
of lengths: the shortest block that holds it, of equals the one freed last within the window,
else the lowest. So a definition hands its register on to an operand of the same
instruction, which makes copies needless, and long blocks are not broken up as long as short
ones are free.
"""

from __future__ import annotations

from verilocc_bench.model.prompts.notes.ledger import NotesLedger
from verilocc_bench.model.prompts.notes.reading import Mention, Role
from verilocc_bench.model.prompts.notes.words import (
    CLOSE,
    CROSSED,
    EMPTY,
    KNOWN,
    LENT,
    MORE,
    NEW,
    OWN,
    list_order,
    natural_parts,
    register_word,
    width_of_shape,
)


class OutOfRegisters(Exception):
    """No list has room for a virtual register."""


def teach(ledger: NotesLedger, mention: Mention, shape: str) -> list[str]:
    """The answer to a mention. Raises OutOfRegisters."""
    width = width_of_shape(shape)
    known = ledger.live.get(mention.register)
    heads: dict[tuple[str, int], str] = {}
    if known is not None:
        file, base = known.file, known.number
        words = [register_word(file, base)]
    else:
        words, file, base, heads = _take(ledger, shape)
    if mention.role is Role.ANEW:
        file = LENT.get(file, file)
    if mention.role is Role.PLAIN or (mention.role is Role.ANEW and file not in OWN):
        return words if known is None else [*words, CLOSE]
    for first, length in natural_parts(base, base + width, ledger.longest(file)):
        head = heads.get((file, length)) or ledger.in_sight(file, length)[0]
        words += [f"F_{file}{length}", register_word(file, first), head]
    return words


def teach_dry(noted: dict[int, None], mention: Mention) -> list[str]:
    """The answer to a mention in a dry window."""
    if mention.role is Role.BEGINS:
        return [CROSSED]
    return [KNOWN if mention.register in noted else NEW]


def _take(
    ledger: NotesLedger, shape: str
) -> tuple[list[str], str, int, dict[tuple[str, int], str]]:
    """The words that take a block, its file and first, and the heads that they change."""
    words: list[str] = []
    for place, (file, length) in enumerate(list_order(shape)):
        if (file, length) not in ledger.lists:
            continue
        seen = ledger.in_sight(file, length)
        if words or place:
            words.append(f"P_{file}{length}")
        if seen[0] in (EMPTY, MORE):
            if words:
                words.append(seen[0])
            continue
        base = int(seen[0][len(file) :])
        words += [seen[0], f"U_{file}{length}", seen[1]]
        heads = {(file, length): seen[1]}
        width = width_of_shape(shape)
        for first, part in natural_parts(base + width, base + length, ledger.longest(file)):
            word = register_word(file, first)
            words += [f"S_{file}{part}", word, ledger.in_sight(file, part)[0]]
            heads[file, part] = word
        return words, file, base, heads
    raise OutOfRegisters(shape)
