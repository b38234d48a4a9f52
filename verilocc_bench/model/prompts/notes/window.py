"""Windows of the prompt format `notes`: what is shown, what is fed, and what words do to the notes.

    W N0 v4 N1 s6 SAY              lines of the notes that the window needs
    L_v1 v9 v3 v1  C_v1 N2 => v1   no line has N2: it gets the last place of the list
    L_v2 v14 v12 v10 C_v2 N0 => v4 N0 has a line: its register
    L_v2 v14 v12 v10 X_v2 N0 => v4 the same; N0 begins here, v4 and v5 become free
    L_v2 v12 v10 v4  C_v2 N3 => v4

Before each mention the program writes down the lowest places that the notes leave free for such
a one, the lowest last. A dry window has neither registers nor lists:
`C N7 => k` where the name was read before, `n` where it is new, and `X N7 => x`.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence

from verilocc_bench.ir import RegisterClass
from verilocc_bench.model.prompts.notes.ledger import Contradiction, NotedPlace, NotesLedger
from verilocc_bench.model.prompts.notes.reading import Deed, Mention, Role
from verilocc_bench.model.prompts.notes.words import (
    CROSSED,
    DRY,
    KNOWN,
    NAMES,
    NEW,
    NOWHERE,
    REGISTERS,
    SAY,
    WINDOW,
    register_word,
    shape_of,
)

MENTIONS = 16
"""A window has at most so many mentions."""

DRY_MENTIONS = 32
"""A dry window has at most so many mentions."""

SHOWN = 3
"""A list shows at most so many places."""

Listening = Generator[None, str, None]
Naming = random.Random


class WrongWord(Exception):
    """A word stands where it cannot stand; the message says which."""


def _draw_names(mentions: Sequence[Mention], naming: Naming) -> dict[int, str]:
    registers = list(dict.fromkeys(mention.register for mention in mentions))
    return dict(zip(registers, naming.sample(NAMES, len(registers)), strict=True))


class _HeardWindow(ABC):
    """What both kinds have in common: words are heard one at a time."""

    def __init__(self, mentions: Sequence[Mention], names: dict[int, str]) -> None:
        self.mentions = tuple(mentions)
        self.names = names
        self._listening: Listening | None = None

    def begin_answer(self, place: int) -> None:
        """The answer to the mention of that place is to be heard."""
        self._listening = self._listen(self.mentions[place])
        next(self._listening)

    def hear(self, word: str) -> bool:
        """Takes a word of the model's; True where it ends the answer.

        Raises WrongWord or Contradiction, and the window cannot go on.
        """
        assert self._listening is not None
        try:
            self._listening.send(word)
        except StopIteration:
            self._listening = None
            return True
        return False

    @abstractmethod
    def _listen(self, mention: Mention) -> Listening:
        """Takes the words that answer a mention, one at each `yield`."""


class DryWindow(_HeardWindow):
    """A stretch of a loop that is read for who lives around it.

    `noted` are the names read so far and not crossed out, in the order of reading.
    """

    def __init__(self, mentions: Sequence[Mention], noted: dict[int, None], naming: Naming) -> None:
        super().__init__(mentions, _draw_names(mentions, naming))
        self.noted = noted

    def prompt(self) -> list[str]:
        """The names of the window that were read before."""
        return [DRY, *(n for r, n in sorted(self.names.items()) if r in self.noted), SAY]

    def fed(self, place: int) -> list[str]:
        """The words of a mention."""
        mention = self.mentions[place]
        begins = mention.role is Role.BEGINS
        return ["X" if begins else "C", self.names[mention.register]]

    def _listen(self, mention: Mention) -> Listening:
        word = yield
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


class NotesWindow(_HeardWindow):
    """A stretch of the text in which virtual registers get registers."""

    def __init__(
        self,
        mentions: Sequence[Mention],
        classes: Mapping[int, RegisterClass],
        ledger: NotesLedger,
        naming: Naming,
    ) -> None:
        super().__init__(mentions, _draw_names(mentions, naming))
        self.classes = classes
        self.shapes = tuple(shape_of(classes[mention.register]) for mention in mentions)
        self.ledger = ledger

    def prompt(self) -> list[str]:
        """The lines that the window may need."""
        words = [WINDOW]
        for register, name in self.names.items():
            place = self.ledger.live.get(register)
            if place is not None:
                words += [name, register_word(place.file, place.number)]
        return [*words, SAY]

    def places(self, place: int) -> list[NotedPlace]:
        """What the notes leave free for the mention of that place, as far as it is shown."""
        mention = self.mentions[place]
        return self.ledger.places(self.classes[mention.register], mention.begins, SHOWN)

    def fed(self, place: int) -> list[str]:
        """The words of a mention, once; what is lent and given back before it comes about.

        Raises Contradiction where a register is needed back that another has.
        """
        mention, shape = self.mentions[place], self.shapes[place]
        for deed in mention.before:
            self._do(deed)
        words = [register_word(p.file, p.number) for p in self.places(place)] or [NOWHERE]
        name = self.names[mention.register]
        return [f"L_{shape}", *reversed(words), f"{mention.role.value}_{shape}", name]

    def _do(self, deed: Deed) -> None:
        ledger = self.ledger
        if not ledger.has(deed.register):
            return
        if deed.returns:
            ledger.give_back(deed.register, deed.lanes)
        elif deed.until is not None:
            ledger.lend(deed.register, deed.lanes, deed.until)
        else:
            ledger.leave(deed.register, deed.lanes)

    def _listen(self, mention: Mention) -> Listening:
        register, known = mention.register, self.ledger.live.get(mention.register)
        word = yield
        place = _place_of(word)
        kind = self.classes[register]
        if known is None:
            self.ledger.take(register, kind, place, mention.begins)
            for lanes, until in mention.later:
                self.ledger.lend(register, lanes, until)
        elif place != known:
            raise Contradiction(f"%{register} is in {known.file}{known.number}, not in {word}")
        if mention.role is Role.BEGINS:
            self.ledger.cross_out(register, kind.width)


def _place_of(word: str) -> NotedPlace:
    kind = word.rstrip("0123456789")
    if kind not in REGISTERS or kind == word:
        raise WrongWord(f"{word} names no register")
    return NotedPlace(kind, int(word[len(kind) :]))


def cut_windows(mentions: Sequence[Mention], longest: int) -> Iterator[Sequence[Mention]]:
    """Stretches of at most so many mentions."""
    for first in range(0, len(mentions), longest):
        yield mentions[first : first + longest]
