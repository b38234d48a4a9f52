"""Dry windows: stretches of a loop that are read for who lives around it.

D N1 N4 SAY                    names that were read before
C N7 => n                      the name is new
C N4 => k                      it is known
X N7 => x                      it begins here, and is crossed out
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from verilocc_bench.model.notes.mentions import Mention, Role
from verilocc_bench.model.notes.notes_ledger import Contradiction
from verilocc_bench.model.notes.notes_words import CROSSED, DRY, KNOWN, NAMES, NEW, SAY
from verilocc_bench.model.notes.talk import Asked, Conversation, WrongWord

DRY_MENTIONS = 32
"""The most mentions of a dry window."""


class DryWindow:
    """A stretch of a loop that is read for who lives around it.

    `noted` are the names read so far and not crossed out, in the order of reading.
    """

    def __init__(
        self, mentions: Sequence[Mention], noted: dict[int, None], naming: random.Random
    ) -> None:
        self.mentions = tuple(mentions)
        registers = list(dict.fromkeys(mention.register for mention in mentions))
        self.names = dict(zip(registers, naming.sample(NAMES, len(registers)), strict=True))
        self.noted = noted

    def prompt(self) -> list[str]:
        """The names of the window that were read before."""
        return [DRY, *(n for r, n in sorted(self.names.items()) if r in self.noted), SAY]

    def conversation(self) -> Conversation:
        """See Conversation."""
        for mention in self.mentions:
            register = mention.register
            if mention.role is Role.BEGINS:
                fed, right = "X", CROSSED
            else:
                fed, right = "C", KNOWN if register in self.noted else NEW
            word = yield Asked([fed, self.names[register]], right)
            if word != right:
                if {word, right} == {KNOWN, NEW}:
                    raise Contradiction(f"%{register} is {word}, and should be {right}")
                raise WrongWord(f"{word} instead of {right}")
            if mention.role is Role.BEGINS:
                self.noted.pop(register, None)
            else:
                self.noted[register] = None
