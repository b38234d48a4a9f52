"""Answers by rule, from the words of the conversation alone: what the model learns to say.

The rule keeps LIFO lists of free blocks. It sees what the model sees: shown words and answers.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence

from verilocc_bench.model.reading.conversation import (
    AROUND,
    BACK,
    FILES,
    FORM,
    HEAD,
    INDEX,
    KNOWN,
    MARK,
    OLD_HEAD,
    OPENING,
    PROBE,
    RECALL,
    SHOWN,
    SIZES,
    SPLIT,
    SWEEP,
    UNDER,
    UNKNOWN,
    Conversation,
    NoFreeBlock,
    Showing,
    is_register,
    list_of,
    register_of,
)


class Said:
    """The words of a conversation with their meanings."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.meanings: list[int] = []

    def say(self, word: str, meaning: int) -> None:
        """Adds a word."""
        self.words.append(INDEX[word])
        self.meanings.append(meaning)


class Teacher:
    """Answers the turns of a conversation, and goes on from another's answers."""

    def __init__(self, conversation: Conversation) -> None:
        self.said = Said()
        self.default = conversation.opening[-1]
        self.seen: dict[str, str] = {}
        self.held: dict[str, tuple[str, int, int]] = {}
        self.counts: dict[str, int] = {}
        self.lists = {(f, size): list[int]() for f in FILES for size in SIZES[f]}
        self.rng: random.Random | None = None
        """Whether the lists begin in an order drawn by chance."""

    def answer(self, turn: Showing) -> None:
        """Says the answer. Raises NoFreeBlock."""
        getattr(self, f"_{turn.ask}")(turn.shown)

    def hear(self, turn: Showing, words: Sequence[str]) -> None:
        """Goes on from another's answer to a turn."""
        if turn.ask in ("mark", "around"):
            self.seen.setdefault(turn.shown[turn.ask == "around"], words[0].lstrip("*"))
        elif turn.ask == "back":
            self._begin(turn.shown)
        elif turn.ask == "opening":
            pairs = itertools.pairwise(turn.shown)
            self.counts = {w[2]: int(last[1:]) + 1 for w, last in pairs if w[:2] == "H."}
        elif turn.ask == "free":
            self.held.pop(turn.shown[1], None)
        elif turn.ask == "place" and turn.shown[1] not in self.held:
            register = register_of(words)
            self.held[turn.shown[1]] = (*list_of(turn.shown[0]), int(register[1:]))
        for word, after in itertools.pairwise(words):
            if word[:2] == "S.":
                self._clear(word[2])
            if word[:2] in ("T.", "H.") and is_register(after):
                stack, start = self.lists[word[2], int(word[3:])], int(after[1:])
                if word[0] == "H":
                    stack.append(start)
                elif start in stack:
                    stack.remove(start)

    def _begin(self, shown: Sequence[str]) -> None:
        if shown[0] == "B":
            self.seen.setdefault(shown[1], "B")

    def _back(self, shown: Sequence[str]) -> None:
        self._begin(shown)
        self.said.say("@" if shown[-1] in self.seen else ".", BACK)

    def _mark(self, shown: Sequence[str]) -> None:
        kind = shown[1] if len(shown) > 1 else self.default
        star = "" if shown[0] in self.seen else "*"
        self.said.say(star + self.seen.setdefault(shown[0], kind), MARK)

    def _around(self, shown: Sequence[str]) -> None:
        mark, word = shown
        new = word not in self.seen and mark[0] != "*"
        self.seen.setdefault(word, mark)
        self.said.say("~" + mark if new else ".", AROUND)

    def _opening(self, shown: Sequence[str]) -> None:
        budget = 2 * sum(word[0] == "H" for word in shown)
        meaning = SHOWN if self.rng else OPENING  # an order drawn by chance cannot be known
        for word, last in zip(shown[:budget:2], shown[1:budget:2], strict=True):
            file = word[2]
            self.counts[file] = int(last[1:]) + 1
            fixed = {int(w[1:]) for w in shown[budget:-1] if w[0] == file}
            blocks = list(_blocks(file, self.counts[file], fixed))
            if self.rng is not None:
                self.rng.shuffle(blocks)
            self._sort(file, blocks, meaning)
        self.said.say(".", meaning)

    def _sort(self, file: str, blocks: Sequence[tuple[int, int]], meaning: int) -> None:
        for size, start in blocks:
            if size:
                self._push(file, size, start, (meaning, meaning, meaning))
            else:
                self.said.say(f"{file}{start}", meaning)
                self.said.say("-", meaning)
        for size in SIZES[file]:
            if not self.lists[file, size]:
                self.said.say(f"H.{file}{size}", meaning)
                self.said.say("-", meaning)

    def _sweep(self, file: str) -> None:
        """Goes through a file from its lowest register on, and sorts it anew."""
        say = self.said.say
        blocks = {(start, "W"): size for f, size, start in self.held.values() if f == file}
        for size in SIZES[file]:
            blocks |= {(start, "Q"): size for start in self.lists[file, size]}
        say(f"S.{file}", SWEEP)
        taken: set[int] = set()
        unit = 0
        while unit < self.counts.get(file, 0):
            say(f"{file}{unit}", SWEEP)
            role = next((role for role in "QW" if (unit, role) in blocks), "-")
            size = blocks.get((unit, role), 1)
            say("-" if role == "-" else f"{role}.{file}{size}", SWEEP)
            if role != "Q":
                taken |= set(range(unit, unit + size))
            unit += size
        say(".", SWEEP)
        self._clear(file)
        joined = _blocks(file, self.counts[file], taken)
        self._sort(file, [block for block in joined if block[0]], SWEEP)
        say(".", SWEEP)

    def _clear(self, file: str) -> None:
        for size in SIZES[file]:
            self.lists[file, size].clear()

    def _free(self, shown: Sequence[str]) -> None:
        file, size, start = self.held.pop(shown[1])
        self._push(file, size, start, (RECALL, OLD_HEAD, FORM))

    def _place(self, shown: Sequence[str]) -> None:
        mark, word = shown
        if word in self.held:
            file, _, start = self.held[word]
            self.said.say(f"{file}{start}", KNOWN)
        else:
            self._take(word, *list_of(mark), again=False)

    def _push(self, file: str, size: int, start: int, meanings: tuple[int, int, int]) -> None:
        say, stack = self.said.say, self.lists[file, size]
        say(f"{file}{start}", meanings[0])
        say(f"Q.{file}{size}", meanings[2])
        say(f"{file}{stack[-1]}" if stack else "-", meanings[1])
        say(f"H.{file}{size}", meanings[2])
        say(f"{file}{start}", meanings[2])
        stack.append(start)

    def _take(self, word: str, file: str, wanted: int, *, again: bool) -> None:
        say = self.said.say
        say(f"T.{file}{wanted}", UNKNOWN)
        size = wanted
        while not self.lists[file, size]:
            say("-", HEAD)
            size *= 2
            if size not in SIZES[file]:
                if again:
                    raise NoFreeBlock
                self._sweep(file)
                self._take(word, file, wanted, again=True)
                return
            say(f"T.{file}{size}", PROBE)
        stack = self.lists[file, size]
        start = stack.pop()
        say(f"{file}{start}", HEAD)
        say(f"O.{file}{size}", FORM)
        say(f"{file}{stack[-1]}" if stack else "-", UNDER)
        self.held[word] = (file, wanted, start)
        if size != wanted:
            while size != wanted:
                size //= 2
                self._push(file, size, start + size, (SPLIT, SPLIT, SPLIT))
            say(word, SPLIT)
            say(f"{file}{start}", SPLIT)


def _blocks(file: str, count: int, fixed: set[int]) -> Iterator[tuple[int, int]]:
    """Fixed registers, as blocks of none, and the largest aligned ones between, downwards."""
    end = count
    while end:
        size = next(
            (
                size
                for size in reversed(SIZES[file])
                if end % size == 0 and fixed.isdisjoint(range(end - size, end))
            ),
            0,
        )
        end -= size or 1
        yield size, end


def taught(
    conversation: Conversation, rng: random.Random | None = None, limit: int = 1 << 30
) -> tuple[Said, list[list[int]], bool]:
    """A conversation with the teacher; the answers; whether all was said.

    It ends early before `limit` words, or where no register is left.
    """
    teacher = Teacher(conversation)
    teacher.rng = rng
    said = teacher.said
    for word in conversation.opening:
        said.say(word, SHOWN)
    answers: list[list[int]] = []
    for turn in conversation.turns:
        before = len(said.words)
        for word in turn.shown:
            said.say(word, SHOWN)
        spoken = len(said.words)
        try:
            teacher.answer(turn)
        except NoFreeBlock:
            del said.words[before:], said.meanings[before:]
            return said, answers, False
        answers.append(said.words[spoken:])
        if len(said.words) >= limit:
            return said, answers, False
    return said, answers, True
