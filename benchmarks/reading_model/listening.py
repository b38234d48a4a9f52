"""Hears the model's words, and judges the places that they give.

It needs neither torch nor verilocc_bench: it runs where the model runs.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from benchmarks.reading_model.conversation import (
    INDEX,
    Backward,
    Conversation,
    FreshNames,
    Showing,
    Text,
    discuss,
    is_register,
)
from benchmarks.reading_model.data import answers
from benchmarks.reading_model.teaching import list_of

MOST_WORDS: Mapping[str, int] = {"opening": 2500, "place": 64}
MOST_SWEPT = 3000


class Listener:
    """Hears the model's answer to one turn, and knows from its words where it ends."""

    def __init__(self, turn: Showing) -> None:
        self.turn = turn
        self.words: list[str] = []
        self.swept = False

    def hear(self, word: str) -> bool:
        """Whether the answer is over. Raises ValueError for a word that no answer has here."""
        before, count = self.words[-1:], len(self.words) + 1
        self.words.append(word)
        shown, ask = self.turn
        good, over = True, True
        if ask == "mark":
            good = word.lstrip("*")[:1].isdigit() and word in INDEX
        elif ask == "back":
            good = word in (".", "@")
        elif ask == "around":
            good = word == "." or (word[0] == "~" and word[1:2].isdigit())
        elif ask == "opening":
            over = word == "."
        elif ask == "free":
            over = count == 5
        elif count == 1:
            good, over = is_register(word) or word[:2] == "T.", is_register(word)
        elif before[0][:2] == "T.":
            good, over = is_register(word) or word == "-", False
        elif word == ".":
            over = False
        else:
            over = before[0] == "O.{}{}".format(*list_of(shown[0])) or before[0] == shown[1]
        if not good:
            raise ValueError(f"{word} for {ask}")
        self.swept |= word[:2] == "S."
        if not over and count > (MOST_SWEPT if self.swept else MOST_WORDS.get(ask, 5)):
            raise ValueError("the answer does not end")
        return over


def fits(text: Text, places: Mapping[int, str]) -> bool:
    """Whether each name has registers of its own from its first place to its last and in loops."""
    names = FreshNames(random.Random(0)).of(text)
    registers = {names[name]: register for name, register in places.items()}
    conversations: list[Backward] = []

    def speak(conversation: Conversation) -> list[list[str]]:
        if isinstance(conversation, Backward):
            conversations.append(conversation)
            return []
        return answers(conversation)

    discuss(text, names, speak)
    held: dict[tuple[str, int], str] = {}
    fixed = set(text["fixed"])
    for turn in conversations[0].turns[1:]:
        mark, word = turn.shown
        if word not in registers:
            return False
        file, start = registers[word][0], int(registers[word][1:])
        for unit in range(start, start + int(mark.lstrip("*~").split()[0])):
            if (
                held.setdefault((file, unit), word) != word
                or f"{file}{unit}" in fixed
                or unit >= text["budget"].get(file, 0)
            ):
                return False
            if turn.ask == "free":
                del held[file, unit]
    return True
