"""The conversation in which a model allocates registers while it reads a function backwards.

The program shows the function's names line by line, from the last line to the first. Each name
stands with its class; a star marks its first place in the text. At the end of a back edge's lines
the program shows the names of these lines once more, each at its first place among them. The model
answers after each name. All that it knows of the registers it has said itself, but for the first
words, which say what the header offers.

Format `links`: the model keeps lists of free blocks by size and says each change.

    shown     1v n7          the name n7 is mentioned; its class is one register of v
    known     v5             n7 has this register since its last mention
    new       T.v1 v9 O.v1 v3            takes v9, the head of the list; under it lies v3
    new       T.v1 - T.v2 v8 O.v2 - v9 Q.v1 - H.v1 v9 n7 v8     no v1 left: splits a v2
    shown     *1v n7         its first place in the text: free from here on
    freed     v5 Q.v1 v3 H.v1 v5         v5 goes on the list; the head was v3 and is v5 now

Format `lowest`: the model says the register alone; a new name takes the lowest that fits.
"""

from __future__ import annotations

import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

FILES = ("v", "a", "s")
SIZES: Mapping[str, tuple[int, ...]] = {
    "v": (1, 2, 4, 8, 16, 32),
    "a": (1, 2, 4, 8, 16, 32),
    "s": (1, 2, 4, 8, 16),
}
COUNTS: Mapping[str, int] = {"v": 256, "a": 256, "s": 106}
NAME_COUNT = 1024
MOST_AT_ONCE = sum(COUNTS.values())
"""No more names than this have registers at once."""
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 32)
FILE_SETS = ("v", "a", "a v", "s", "s vcc")
PLACES = ("", "*", "~", "~*")
"""How a name stands: a mention, its first place; the same in the second showing of a loop."""
ROLES = ("T", "O", "Q", "H")

MEANINGS = (
    "shown",
    "known",
    "unknown",
    "head",
    "under",
    "probe",
    "split",
    "recall",
    "old head",
    "form",
    "local",
)
"""What a word is; the first is not the model's."""
SHOWN, KNOWN, UNKNOWN, HEAD, UNDER, PROBE, SPLIT, RECALL, OLD_HEAD, FORM, LOCAL = range(11)


def _all_words() -> list[str]:
    words = ["<pad>", "<begin>", "-", "."]
    words += [f"n{index}" for index in range(NAME_COUNT)]
    words += [f"{file}{index}" for file in FILES for index in range(COUNTS[file])]
    words += [f"{p}{w} {f}" for p in PLACES for w in WIDTHS for f in FILE_SETS]
    words += [f"{r}.{f}{size}" for r in ROLES for f in FILES for size in SIZES[f]]
    return words


WORDS: tuple[str, ...] = tuple(_all_words())
INDEX: Mapping[str, int] = {word: index for index, word in enumerate(WORDS)}
PAD = INDEX["<pad>"]
BEGIN = INDEX["<begin>"]
FIRST_NAME = INDEX["n0"]
FIRST_REGISTER = INDEX["v0"]
LAST_REGISTER = INDEX[f"s{COUNTS['s'] - 1}"]


class NoFreeBlock(Exception):
    """No block is left for a name."""


class Shown(NamedTuple):
    """What the program shows next: a name of the function at a place of the text."""

    place: int
    """Index into PLACES."""
    name: int
    """The name's number in the function."""


def script(function: Mapping[str, Any], stop: int | None = None) -> Iterator[Shown]:
    """What the program shows, in order, of the lines before `stop`; it is cut out of the text."""
    lines: Sequence[Sequence[int]] = function["lines"]
    stop = len(lines) if stop is None else stop
    first_line: dict[int, int] = {}
    for index in range(len(lines)):
        for name in lines[index]:
            first_line.setdefault(name, index)
    loops: dict[int, list[int]] = {}
    for start, end in function["loops"]:
        if end < stop:
            loops.setdefault(end, []).append(start)
    for index in range(stop - 1, -1, -1):
        for start in sorted(loops.get(index, ())):
            seen: set[int] = set()
            for line in range(start, index + 1):
                for name in lines[line]:
                    if name not in seen:
                        seen.add(name)
                        yield Shown(3 if first_line[name] == line else 2, name)
        stars = [name for name in lines[index] if first_line[name] == index]
        for name in lines[index]:
            yield Shown(0, name)
        for name in stars:
            yield Shown(1, name)


@dataclass(slots=True)
class Said:
    """The words of a conversation with their meanings."""

    words: list[int] = field(default_factory=list)
    meanings: list[int] = field(default_factory=list)

    def say(self, word: str, meaning: int) -> None:
        """Adds a word."""
        self.words.append(INDEX[word])
        self.meanings.append(meaning)


def size_for(file: str, width: int) -> int:
    """The least size of a block that holds so many registers."""
    return next(size for size in SIZES[file] if size >= width)


def blocks_of(units: Iterable[int], sizes: Sequence[int]) -> dict[int, list[int]]:
    """Units cut into the largest aligned blocks, by size, the lowest block last."""
    left = set(units)
    found: dict[int, list[int]] = {size: [] for size in sizes}
    for size in reversed(sizes):
        for start in sorted({unit - unit % size for unit in left}, reverse=True):
            block = set(range(start, start + size))
            if block <= left:
                left -= block
                found[size].append(start)
    return found


class Teacher:
    """Says the answers of one format, and keeps what it has said."""

    def __init__(self, said: Said) -> None:
        self.said = said
        self.held: dict[int, tuple[str, int]] = {}

    def begin(self, offered: Mapping[str, Sequence[int]], rng: random.Random | None) -> None:
        """Says the first words: what may be used."""
        raise NotImplementedError

    def answer(self, shown: Shown, kind: Sequence[Any], word: str) -> None:
        """Says the answer to what is shown; `word` is the name's word."""
        raise NotImplementedError

    def hear(self, shown: Shown, words: Sequence[str]) -> None:
        """Goes on from another's answer to what is shown."""
        registers = [w for w in words if FIRST_REGISTER <= INDEX[w] <= LAST_REGISTER]
        if shown.place == 1:
            self.held.pop(shown.name, None)
        elif registers and shown.name not in self.held:
            self.held[shown.name] = (registers[0][0], int(registers[0][1:]))


class LinksTeacher(Teacher):
    """Lists of free blocks by size; the last one freed is taken first."""

    def __init__(self, said: Said) -> None:
        super().__init__(said)
        self.lists = {(f, size): list[int]() for f in FILES for size in SIZES[f]}

    def begin(self, offered: Mapping[str, Sequence[int]], rng: random.Random | None) -> None:
        say = self.said.say
        for file in FILES:
            for size, starts in blocks_of(offered[file], SIZES[file]).items():
                if rng is not None:
                    rng.shuffle(starts)
                if not starts:
                    say(f"H.{file}{size}", SHOWN)
                    say("-", SHOWN)
                for start in starts:
                    self._push(file, size, start, (SHOWN, SHOWN, SHOWN))

    def answer(self, shown: Shown, kind: Sequence[Any], word: str) -> None:
        if shown.place == 3:
            self.said.say(".", LOCAL)
        elif shown.place == 1:
            file, start = self.held.pop(shown.name)
            self._push(file, size_for(file, kind[1]), start, (RECALL, OLD_HEAD, FORM))
        elif shown.name in self.held:
            file, start = self.held[shown.name]
            self.said.say(f"{file}{start}", KNOWN)
        else:
            self._take(shown.name, kind[0], size_for(kind[0], kind[1]), word)

    def hear(self, shown: Shown, words: Sequence[str]) -> None:
        super().hear(shown, words)
        for word, after in itertools.pairwise(words):
            if word[:2] in ("T.", "H.") and after[1:].isdigit():
                stack, start = self.lists[word[2], int(word[3:])], int(after[1:])
                if word[0] == "H":
                    stack.append(start)
                elif start in stack:
                    stack.remove(start)

    def _push(self, file: str, size: int, start: int, meanings: tuple[int, int, int]) -> None:
        say, stack = self.said.say, self.lists[file, size]
        say(f"{file}{start}", meanings[0])
        say(f"Q.{file}{size}", meanings[2])
        say(f"{file}{stack[-1]}" if stack else "-", meanings[1])
        say(f"H.{file}{size}", meanings[2])
        say(f"{file}{start}", meanings[2])
        stack.append(start)

    def _take(self, name: int, file: str, wanted: int, word: str) -> None:
        say = self.said.say
        say(f"T.{file}{wanted}", UNKNOWN)
        sizes = [size for size in SIZES[file] if size >= wanted]
        for size in sizes:
            if size != wanted:
                say(f"T.{file}{size}", PROBE)
            if self.lists[file, size]:
                break
            if size == sizes[-1]:
                raise NoFreeBlock
            say("-", HEAD)
        stack = self.lists[file, size]
        start = stack.pop()
        say(f"{file}{start}", HEAD)
        say(f"O.{file}{size}", FORM)
        say(f"{file}{stack[-1]}" if stack else "-", UNDER)
        self.held[name] = (file, start)
        if size != wanted:
            while size != wanted:
                size //= 2
                self._push(file, size, start + size, (SPLIT, SPLIT, SPLIT))
            say(word, SPLIT)
            say(f"{file}{start}", SPLIT)


class LowestTeacher(Teacher):
    """The lowest registers that fit; nothing is said but the register."""

    def __init__(self, said: Said) -> None:
        super().__init__(said)
        self.free: dict[str, list[bool]] = {f: [False] * COUNTS[f] for f in FILES}

    def begin(
        self,
        offered: Mapping[str, Sequence[int]],
        rng: random.Random | None,  # noqa: ARG002  registers have one order
    ) -> None:
        say = self.said.say
        for file in FILES:
            last = max(offered[file], default=0)
            say(f"H.{file}1", SHOWN)
            say(f"{file}{last}", SHOWN)
            for unit in range(last + 1):
                if unit in offered[file]:
                    self.free[file][unit] = True
                else:
                    say(f"{file}{unit}", SHOWN)

    def answer(
        self,
        shown: Shown,
        kind: Sequence[Any],
        word: str,  # noqa: ARG002  only a split repeats the name
    ) -> None:
        file, width, _ = kind
        if shown.place == 3:
            self.said.say(".", LOCAL)
        elif shown.place == 1:
            file, start = self.held.pop(shown.name)
            self.said.say(f"{file}{start}", RECALL)
            self.free[file][start : start + width] = [True] * width
        elif shown.name in self.held:
            file, start = self.held[shown.name]
            self.said.say(f"{file}{start}", KNOWN)
        else:
            start = self._lowest(file, width)
            self.said.say(f"{file}{start}", UNKNOWN)
            self.held[shown.name] = (file, start)
            self.free[file][start : start + width] = [False] * width

    def _lowest(self, file: str, width: int) -> int:
        step = 1 if width == 1 else min(4, size_for(file, width)) if file == "s" else 2
        free = self.free[file]
        for start in range(0, len(free) - width + 1, step):
            if free[start] and all(free[start : start + width]):
                return start
        raise NoFreeBlock


TEACHERS: Mapping[str, Callable[[Said], Teacher]] = {
    "links": LinksTeacher,
    "lowest": LowestTeacher,
}


def shown_words(function: Mapping[str, Any], shown: Shown, word: str) -> tuple[str, str]:
    """The two words by which the program shows a name."""
    return f"{PLACES[shown.place]}{function['kinds'][shown.name][2]}", word


def converse(
    function: Mapping[str, Any],
    form: str,
    names: FreshNames,
    *,
    stop: int | None = None,
    rng: random.Random | None = None,
    offered: Mapping[str, Sequence[int]] | None = None,
    limit: int = 1 << 30,
) -> tuple[Said, dict[int, tuple[str, int]], bool]:
    """A conversation with the teacher; the register of each name; whether all was said.

    It ends early at `limit` words, or where no register is left.
    """
    said = Said()
    teacher = TEACHERS[form](said)
    said.say("<begin>", SHOWN)
    teacher.begin(offered or function["offered"], rng)
    places: dict[int, tuple[str, int]] = {}
    for shown, word in names.name(function, stop):
        if len(said.words) >= limit:
            return said, places, False
        before = len(said.words)
        for spoken in shown_words(function, shown, word):
            said.say(spoken, SHOWN)
        try:
            teacher.answer(shown, function["kinds"][shown.name], word)
        except NoFreeBlock:
            del said.words[before:], said.meanings[before:]
            return said, places, False
        if shown.name in teacher.held:
            places[shown.name] = teacher.held[shown.name]
    return said, places, True


class FreshNames:
    """Gives the name words in a random order; a word comes again only when its name is done."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._left: deque[str] = deque()
        self.refill()

    def refill(self) -> None:
        """Before a function: all words again, where names without an end have taken most."""
        if len(self._left) < MOST_AT_ONCE:
            order = [f"n{index}" for index in range(NAME_COUNT)]
            self._rng.shuffle(order)
            self._left = deque(order)

    def name(
        self, function: Mapping[str, Any], stop: int | None = None
    ) -> Iterator[tuple[Shown, str]]:
        """The script of a function with the words of its names."""
        self.refill()
        words: dict[int, str] = {}
        unborn: dict[str, int] = {}  # names of a loop alone: others may take their words
        for shown in script(function, stop):
            if shown.name not in words:
                word = words[shown.name] = self._left.popleft()
                if word in unborn:
                    del words[unborn.pop(word)]
            word = words[shown.name]
            yield shown, word
            if shown.place == 1:
                self._left.append(words.pop(shown.name))
            elif shown.place == 3 and word not in unborn:
                unborn[word] = shown.name
                self._left.append(word)
            elif shown.place != 3 and unborn.pop(word, None) is not None:
                self._left.remove(word)
