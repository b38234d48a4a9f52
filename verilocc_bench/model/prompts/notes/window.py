"""A window of the notes: its prompt, what is fed, and how the model's words change the notes.

    W L_v1 v3 v7 - L_v2 v10 - … N7 v49 N3 v50 SAY          the prompt
    C_v1 N7  =>  v49 .                                     it has a line: its register
    C_v1 N2  =>  v3 U_v1 v7                                it has none: the head of a list
    C_v2 N5  =>  P_v4 - P_v8 v16 U_v8 - S_v2 v18 - S_v4 v20 -
    X_v1 N7  =>  v49 F_v1 v49 v7                           it begins here: crossed out, freed
    H_v1 N7  =>  v49 F_hv1 hv49 -                          written anew: v49 is lent as hv49

The prompt has the lists of the files that the window's virtual registers may take, and
the lines that the notes have for them. `U_v1 v7` says what is first in the list from now on,
`S_v2 v18 -` and `F_v1 v49 v7` put a block before what was first. A dry window has
neither registers nor lists: `C N7 => k` where the name was read before, `n` where it
is new, and `X N7 => x`.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Generator, Iterator, Mapping, Sequence

from verilocc_bench.ir import RegisterClass
from verilocc_bench.model.prompts.notes.ledger import Contradiction, NotedPlace, NotesLedger
from verilocc_bench.model.prompts.notes.reading import Mention, Role
from verilocc_bench.model.prompts.notes.words import (
    BLOCK_LENGTHS,
    CLOSE,
    CROSSED,
    DRY,
    EMPTY,
    KNOWN,
    LENT,
    MORE,
    NAMES,
    NEW,
    OWN,
    SAY,
    WINDOW,
    files_of_shape,
    natural_parts,
    register_word,
    shape_of,
)

MENTIONS = 16
"""A window has at most so many mentions."""

DRY_MENTIONS = 32
"""A dry window has at most so many mentions."""

LOOKS = 24
"""There are not so many lists to look into."""

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
        self.shapes = tuple(shape_of(classes[m.register], m.borrows) for m in mentions)
        self._widths = {m.register: classes[m.register].width for m in mentions}
        self.ledger = ledger

    def prompt(self) -> list[str]:
        """The lists and lines that the window may need."""
        files = {f for shape in self.shapes for f in files_of_shape(shape)}
        for mention in self.mentions:
            known = self.ledger.live.get(mention.register)
            if known is not None:
                files.add(known.file)
        if any(mention.role is Role.ANEW for mention in self.mentions):
            files |= {LENT[file] for file in files if file in LENT}
        words = [WINDOW]
        for file in BLOCK_LENGTHS:
            for length in self.ledger.lengths.get(file, ()) if file in files else ():
                words += [f"L_{file}{length}", *self.ledger.in_sight(file, length)]
        for register, name in self.names.items():
            place = self.ledger.live.get(register)
            if place is not None:
                words += [name, register_word(place.file, place.number)]
        return [*words, SAY]

    def fed(self, place: int) -> list[str]:
        """The words of a mention."""
        mention = self.mentions[place]
        return [f"{mention.role.value}_{self.shapes[place]}", self.names[mention.register]]

    def _listen(self, mention: Mention) -> Listening:
        register, known = mention.register, self.ledger.live.get(mention.register)
        word = yield
        looks = 0
        while word.startswith("P_"):
            _list_of(word, "P_")
            looks += 1
            if looks > LOOKS:
                raise WrongWord(f"more than {LOOKS} looks into lists")
            word = yield
            if word in (EMPTY, MORE):
                word = yield
        place = _place_of(word)
        if known is not None and place != known:
            raise Contradiction(f"%{register} is in {known.file}{known.number}, not in {word}")
        width = self._widths[register]
        if known is None:
            yield from self._take(register, place)
        elif mention.returns and register in self.ledger.lent:
            self.ledger.give_back(register, width)
        file = place.file
        if mention.role is Role.ANEW:
            file = LENT.get(file, file)
        if mention.role is Role.PLAIN or (mention.role is Role.ANEW and file not in OWN):
            if known is not None and (yield) != CLOSE:
                raise WrongWord(f"another word instead of {CLOSE}")
            return
        parts = natural_parts(place.number, place.number + width, self.ledger.longest(file))
        yield from self._put("F_", file, parts)
        if mention.role is Role.ANEW:
            self.ledger.lend(register)
        else:
            self.ledger.cross_out(register)

    def _take(self, register: int, place: NotedPlace) -> Listening:
        """A block leaves its list, and what is left of it goes to others."""
        file, length = _list_of((yield), "U_")
        head = yield
        if head not in (EMPTY, MORE):
            _place_of(head)
        width = self._widths[register]
        if file != place.file or width > length:
            raise Contradiction(f"{width} registers of {place.file} of a block {file}{length}")
        self.ledger.take(file, length, place.number)
        self.ledger.note(register, place)
        end = place.number + length
        rest = natural_parts(place.number + width, end, self.ledger.longest(file))
        yield from self._put("S_", file, rest)

    def _put(self, role: str, file: str, parts: Sequence[tuple[int, int]]) -> Listening:
        """As many blocks as there must be, each of those that can be."""
        for first, length in parts:
            said = _list_of((yield), role)
            place = _place_of((yield))
            head = yield
            if head not in (EMPTY, MORE):
                _place_of(head)
            if said != (file, length) or place != NotedPlace(file, first):
                raise Contradiction(f"{said[0]}{said[1]} {place.number} is no part of what it has")
            self.ledger.put(file, length, first)


def _split(word: str) -> tuple[str, int]:
    kind = word.rstrip("0123456789")
    if kind not in BLOCK_LENGTHS or kind == word:
        raise WrongWord(f"{word} names no register")
    return kind, int(word[len(kind) :])


def _list_of(word: str, role: str) -> tuple[str, int]:
    if not word.startswith(role):
        raise WrongWord(f"{word} instead of a word with {role}")
    return _split(word[len(role) :])


def _place_of(word: str) -> NotedPlace:
    return NotedPlace(*_split(word))


def cut_windows(mentions: Sequence[Mention], longest: int) -> Iterator[Sequence[Mention]]:
    """Stretches of at most so many mentions; one ends where registers that were lent return."""
    first = 0
    for place, mention in enumerate(mentions, 1):
        if place - first == longest or mention.cuts:
            yield mentions[first:place]
            first = place
    if first < len(mentions):
        yield mentions[first:]
