"""The conversations in which a model allocates registers while it reads a function's text.

The program cuts names, classes, block lines and physical registers out of the text, and repeats the
model's own words. Every name of the text has a word of its own, drawn by chance. There are three
kinds of conversations about a function:

`forward`: the text from its first line to its last. The model marks each name, with a star at its
first mention, and says which blocks jump back.

    <begin> 1 v              the class that the header gives first
    n7 2 v    => *2 v        a first mention with its class
    n7        => 2 v         mentioned before
    n9        => *1 v        a first mention without a class
    B n5 -> n5  => @         the line of a block; its successor has begun: a jump back
    -> n8     => .           another successor, which has not

`loop`: the lines between a block and a jump back to it, each name with the mark that it got. The
model says which names live around the loop: `~2 v`, or `.` for all others and the second time.

`backward`: the budget and the physical registers of the text; the model sorts what is left into
lists of aligned blocks, by size. Then the text from its last line to its first, each name with its
mark. At the end of a loop the names that live around it come first, as they were marked; at the end
of a line those with a star once more. The model answers with registers, and says each change of
its lists aloud.

    <begin> H.s1 s9 s4 .     ten registers of s, and the text names s4
      => s8 Q.s2 - H.s2 s8 s6 Q.s2 s8 H.s2 s6 s5 Q.s1 - H.s1 s5 s4 - s0 Q.s4 - H.s4 s0 H.s8 - ... .
    1 v n7    => v5          n7 has this register since its last mention
    1 v n7    => T.v1 v9 O.v1 v3           takes v9, the head of the list; under it lies v3
    1 v n7    => T.v1 - T.v2 v8 O.v2 - v9 Q.v1 - H.v1 v9 n7 v8     no v1 left: splits a v2
    *1 v n7   => v5 Q.v1 v3 H.v1 v5        its first mention: v5 goes on the list, on v3
    2 v n7    => T.v2 - T.v4 - ... - S.v v0 W.v1 v1 Q.v1 v2 Q.v1 v3 W.v1 ... .
                 v1 Q.v1 - H.v1 v1 ... . T.v2 v8 O.v2 -

Where no list has a block, the model goes through the file (S): from the lowest register on it says
which block each is, held (W) or free (Q), and sorts what is free into lists anew, joined.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

FILES = ("v", "a", "s", "u")
SIZES: Mapping[str, tuple[int, ...]] = {
    "v": (1, 2, 4, 8, 16, 32),
    "a": (1, 2, 4, 8, 16, 32),
    "s": (1, 2, 4, 8, 16),
    "u": (1,),
}
COUNTS: Mapping[str, int] = {"v": 256, "a": 256, "s": 106, "u": 7}
NAME_COUNT = 3086
WIDTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 32)
FILE_SETS = ("v", "a", "a v", "s", "s vcc")
MARKS = ("", "*", "~", "~*")
ROLES = ("T", "O", "Q", "H")

MEANINGS = (
    "shown",
    "mark",
    "back",
    "around",
    "opening",
    "known",
    "unknown",
    "head",
    "under",
    "probe",
    "split",
    "recall",
    "old head",
    "form",
    "sweep",
)
"""What a word is; the first is not the model's."""
(
    SHOWN,
    MARK,
    BACK,
    AROUND,
    OPENING,
    KNOWN,
    UNKNOWN,
    HEAD,
    UNDER,
    PROBE,
    SPLIT,
    RECALL,
    OLD_HEAD,
    FORM,
    SWEEP,
) = range(len(MEANINGS))


def _all_words() -> list[str]:
    words = ["<pad>", "<begin>", "-", "."]
    words += [f"n{index}" for index in range(1024)]
    words += [f"{file}{index}" for file in "vas" for index in range(COUNTS[file])]
    words += [f"{m}{w} {f}" for m in MARKS for w in WIDTHS for f in FILE_SETS]
    words += [f"{r}.{f}{size}" for r in ROLES for f in "vas" for size in SIZES[f]]
    # Words below came later: the weights that are kept begin with the words above.
    words += [f"u{index}" for index in range(COUNTS["u"])]
    words += [f"{m}1 u" for m in MARKS] + [f"{r}.u1" for r in ROLES]
    words += ["B", "->", "@"]
    words += [word for f in FILES for word in (f"S.{f}", *(f"W.{f}{size}" for size in SIZES[f]))]
    words += [f"n{index}" for index in range(1024, NAME_COUNT)]
    return words


WORDS: tuple[str, ...] = tuple(_all_words())
INDEX: Mapping[str, int] = {word: index for index, word in enumerate(WORDS)}
PAD = INDEX["<pad>"]
BEGIN = INDEX["<begin>"]


def is_register(word: str) -> bool:
    """Whether a word is a register."""
    return word[0] in FILES and word[1:].isdigit()


def list_of(mark: str) -> tuple[str, int]:
    """The file and the size of the blocks for a mark: `*3 a v` is held by blocks of 4 v."""
    width, *files = mark.lstrip("*~").split()
    file = "v" if "v" in files else files[0]
    return file, next((size for size in SIZES[file] if size >= int(width)), 0)


def is_mark(word: str) -> bool:
    """Whether a word is a mark of a class that has lists, with or without a star."""
    return word in INDEX and word.lstrip("*")[:1].isdigit() and list_of(word)[1] > 0


class NoFreeBlock(Exception):
    """No block is left for a name."""


class Showing(NamedTuple):
    """What the program shows."""

    shown: tuple[str, ...]
    ask: str
    """Which answer is due: mark, back, around, opening, place or free."""


Text = Mapping[str, Any]
"""A function as `cut` cuts it out of its text."""


class FreshNames:
    """Words for the names and blocks of a text: each its own, drawn by chance."""

    def __init__(self, rng: random.Random) -> None:
        self._left = [f"n{index}" for index in range(NAME_COUNT)]
        rng.shuffle(self._left)

    def some(self, count: int) -> list[str]:
        """Words that were not drawn before. Raises ValueError if there are too few."""
        if count > len(self._left):
            raise ValueError(f"{count} names, and {len(self._left)} words are left")
        return [self._left.pop() for _ in range(count)]

    def of(self, text: Text) -> dict[int, str]:
        """Words by the numbers of names. Raises ValueError if there are too few."""
        names = name_numbers(text)
        return dict(zip(names, self.some(len(names)), strict=True))


def name_numbers(text: Text) -> list[int]:
    """The numbers of all names in the order of the text; those of blocks are negative."""
    names = {number_of(item): None for line in text["lines"] for item in line}
    names |= {-1 - n: None for _, number, after in text["blocks"] for n in (number, *after)}
    return list(names)


def number_of(item: Any) -> int:
    """The number of a name as it stands in a line, with a class or without."""
    return item if isinstance(item, int) else int(item[0])


def _spans(text: Text) -> list[tuple[int, int]]:
    """The first line of each block, and the first line after it."""
    starts = [block[0] for block in text["blocks"]]
    return list(zip(starts, [*starts[1:], len(text["lines"])], strict=True))


class Forward:
    """The turns from the first line to the last; what the model has answered to each."""

    def __init__(self, text: Text, names: Mapping[int, str]) -> None:
        self.text, self.names = text, names
        self.opening = ("<begin>", text["default"])
        self.turns: list[Showing] = []
        for (_, number, after), (first, end) in zip(text["blocks"], _spans(text), strict=True):
            for to in after:
                begun = ("B", names[-1 - number]) if to == after[0] else ()
                self.turns.append(Showing((*begun, "->", names[-1 - to]), "back"))
            for line in text["lines"][first:end]:
                for item in line:
                    spelled = () if isinstance(item, int) else (item[1],)
                    self.turns.append(Showing((names[number_of(item)], *spelled), "mark"))

    def marks(self, answers: Sequence[Sequence[str]]) -> tuple[list[list[str]], list[list[int]]]:
        """The model's marks by line; by block the blocks to which it said that it jumps back."""
        spoken = iter(answers)
        marks: list[list[str]] = []
        jumps: list[list[int]] = []
        numbers = [block[1] for block in self.text["blocks"]]
        for (_, _, after), (first, end) in zip(self.text["blocks"], _spans(self.text), strict=True):
            back = [to for to in after if next(spoken)[0] == "@"]
            jumps.append([numbers.index(to) for to in back if to in numbers])
            lines = self.text["lines"][first:end]
            marks += [[next(spoken)[0] for _ in line] for line in lines]
        return marks, jumps


class Loop:
    """The turns about the lines of a loop, with the marks that the model gave."""

    def __init__(
        self,
        text: Text,
        names: Mapping[int, str],
        marks: Sequence[Sequence[str]],
        span: tuple[int, int],
    ) -> None:
        self.turns = [
            Showing((mark, names[number_of(item)]), "around")
            for line in range(*span)
            for item, mark in zip(text["lines"][line], marks[line], strict=True)
        ]
        self.opening: tuple[str, ...] = ("<begin>",)
        if self.turns and not self.turns[0].shown[0].startswith("*"):
            # Else it would begin as a reading from the first line does, with a class and a name.
            self.opening += ("*1 v", names[-1 - text["blocks"][0][1]], ".")

    def around(self, answers: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
        """The names that the model marked as living around, with its marks."""
        pairs = zip(self.turns, answers, strict=True)
        return [(answer[0], turn.shown[1]) for turn, answer in pairs if answer[0] != "."]


class Backward:
    """The turns from the last line to the first."""

    opening = ("<begin>",)

    def __init__(
        self,
        text: Text,
        names: Mapping[int, str],
        marks: Sequence[Sequence[str]],
        around: Mapping[int, Sequence[tuple[str, str]]],
    ) -> None:
        """`around`: by the last line of a loop the names that live around it, with marks."""
        budget = tuple(
            word
            for file, count in text["budget"].items()
            if count
            for word in (f"H.{file}1", f"{file}{min(count, COUNTS[file]) - 1}")
        )
        self.turns = [Showing((*budget, *dict.fromkeys(text["fixed"]), "."), "opening")]
        for line in range(len(text["lines"]) - 1, -1, -1):
            for mark, word in around.get(line, ()):
                self.turns.append(Showing((mark, word), "place"))
            spoken = [names[number_of(item)] for item in text["lines"][line]]
            self.turns += [
                Showing((mark.lstrip("*~"), word), "place")
                for mark, word in zip(marks[line], spoken, strict=True)
            ]
            self.turns += [
                Showing((mark, word), "free")
                for mark, word in zip(marks[line], spoken, strict=True)
                if mark.startswith("*")
            ]


def loops_of(text: Text, jumps: Sequence[Sequence[int]]) -> list[tuple[int, int]]:
    """The lines between a block and a jump back to it, as first and end; outer loops first."""
    spans = _spans(text)
    pairs = {(spans[to][0], spans[block][1]) for block, tos in enumerate(jumps) for to in tos}
    return sorted(pair for pair in pairs if pair[0] < pair[1])


Conversation = Forward | Loop | Backward
Places = dict[str, str]


def discuss(
    text: Text,
    names: Mapping[int, str],
    speak: Callable[[Conversation], Sequence[Sequence[str]]],
) -> Places:
    """All conversations about a text; the first register that the model says of each name's word.

    `speak` gives the answers to the turns of a conversation: as many as there are, or in the last
    one fewer.
    """
    forward = Forward(text, names)
    marks, jumps = forward.marks(speak(forward))
    around: dict[int, list[tuple[str, str]]] = {}
    for span in loops_of(text, jumps):
        loop = Loop(text, names, marks, span)
        around.setdefault(span[1] - 1, []).extend(loop.around(speak(loop)))
    backward = Backward(text, names, marks, around)
    places: Places = {}
    for turn, answer in zip(backward.turns, speak(backward), strict=False):
        if turn.ask == "place":
            places.setdefault(turn.shown[-1], register_of(answer))
    return places


def register_of(answer: Sequence[str]) -> str:
    """The register that an answer gives a name: it stands alone, or before what lies under it."""
    under = next((i for i, word in enumerate(answer) if word[:2] == "O."), 1)
    return answer[under - 1]
