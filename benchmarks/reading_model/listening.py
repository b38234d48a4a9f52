"""Hears the model's words, and judges the places that they give.

It needs neither torch nor verilocc_bench: it runs where the model runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.reading_model.conversation import (
    FIRST_REGISTER,
    INDEX,
    LAST_REGISTER,
    Shown,
    script,
    size_for,
)


class Listener:
    """Hears the model's answer to one name, and knows from its words where it ends."""

    def __init__(self, form: str, function: Mapping[str, Any], shown: Shown, word: str) -> None:
        self.place = shown.place
        self.word = word
        file, width, _ = function["kinds"][shown.name]
        self.plain = form == "lowest"
        self.wanted = f"{file}{size_for(file, width)}"
        self.register = ""
        self.count = 0
        self.last = ""
        self.before = ""

    def hear(self, word: str) -> bool:
        """Whether the answer is over. Raises ValueError for a word that no answer has here."""
        self.count += 1
        over = self._over(word)
        self.before, self.last = self.last, word
        if self.count > 80:
            raise ValueError("the answer does not end")
        return over

    def _over(self, word: str) -> bool:
        is_register = FIRST_REGISTER <= INDEX[word] <= LAST_REGISTER
        if self.place == 3:
            if word != ".":
                raise ValueError(f"{word} at a name whose first place is in the loop")
            return True
        if self.place == 1:
            if self.count == 1:
                self.register = word
            return self.plain or self.count == 5
        if self.count == 1 and is_register:
            self.register = word
            return True
        if self.plain or (self.count == 1 and not word.startswith("T.")):
            raise ValueError(f"{word} after a name")
        if self.last.startswith("T.") and not self.register:
            if is_register:
                self.register = word
            elif word != "-":
                raise ValueError(f"{word} at the head of a list")
            return False
        if self.last == self.word:
            return True
        return self.last == f"O.{self.wanted}"


def fits(function: Mapping[str, Any], places: Mapping[int, tuple[str, int]]) -> bool:
    """Whether each name has registers of its own from its first place to its last and in loops."""
    offered = {(file, unit) for file, units in function["offered"].items() for unit in units}
    held: dict[tuple[str, int], int] = {}
    for shown in script(function):
        if shown.place == 3:
            continue
        if shown.name not in places:
            return False
        file, start = places[shown.name]
        width = function["kinds"][shown.name][1]
        for unit in range(start, start + width):
            if (
                held.setdefault((file, unit), shown.name) != shown.name
                or (file, unit) not in offered
            ):
                return False
            if shown.place == 1:
                del held[file, unit]
    return True
