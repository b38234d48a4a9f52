"""Dry windows: stretches of a loop that are read for who lives around it.

D N1 N4 SAY                    names that were read before
C N7 => n                      the name is new
C N4 => k                      it is known
X N7 => x                      it begins here, and is crossed out
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.model.prompts.notes.reading import Mention, Role
from verilocc_bench.model.prompts.notes.words import CROSSED, DRY, KNOWN, NAMES, NEW, SAY

DRY_MENTIONS = 32
"""A dry window has at most so many mentions."""

Naming = random.Random


class WrongWord(Exception):
    """A word stands where it cannot stand; the message says which."""


class DryWindow:
    """A stretch of a loop that is read for who lives around it.

    `noted` are the names read so far and not crossed out, in the order of reading.
    """

    def __init__(self, mentions: Sequence[Mention], noted: dict[int, None], naming: Naming) -> None:
        self.mentions = tuple(mentions)
        registers = list(dict.fromkeys(mention.register for mention in mentions))
        self.names = dict(zip(registers, naming.sample(NAMES, len(registers)), strict=True))
        self.noted = noted

    def prompt(self) -> list[str]:
        """The names of the window that were read before."""
        return [DRY, *(n for r, n in sorted(self.names.items()) if r in self.noted), SAY]

    def fed(self, mention: Mention) -> list[str]:
        """The words of a mention."""
        begins = mention.role is Role.BEGINS
        return ["X" if begins else "C", self.names[mention.register]]

    def hear(self, mention: Mention, word: str) -> None:
        """Takes the word that answers a mention.

        Raises WrongWord or Contradiction, and the window cannot go on.
        """
        if mention.role is Role.BEGINS:
            if word != CROSSED:
                raise WrongWord(f"{word} instead of {CROSSED}")
            self.noted.pop(mention.register, None)
        elif word == NEW:
            if mention.register in self.noted:
                raise Contradiction(f"%{mention.register} was noted before")
            self.noted[mention.register] = None
        elif word == KNOWN:
            if mention.register not in self.noted:
                raise Contradiction(f"%{mention.register} was not noted before")
        else:
            raise WrongWord(f"{word} instead of {KNOWN} or {NEW}")
