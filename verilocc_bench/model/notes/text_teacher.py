"""Whose answers the model of the format `text-notes` learns.

It knows the words of the window alone, as the model does: it keeps the lines and the lists that
the words make. A name that has a line has the register of its line. One that has none takes the
first block of the shortest list that has one.
"""

from __future__ import annotations

from collections.abc import Sequence

from verilocc_bench.model.prompts.notes.words import FILES_OF_KIND, SAY
from verilocc_bench.model.prompts.text_notes.words import END, SIZES


class TextTeacher:
    """Hears a window's words from its prompt on, and says what comes next."""

    def __init__(self, prompt: Sequence[str]) -> None:
        self.lines: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}
        self._name = ""
        self._block = ""
        self._linking: list[str] | None = None
        place = 1
        while prompt[place] != SAY and not prompt[place].startswith("H_"):
            self.lines[prompt[place]] = prompt[place + 1]
            place += 2
        for word in prompt[place:-1]:
            if word.startswith("H_"):
                blocks = self.lists[word[2:]] = []
            else:
                blocks.append(word)  # the last is what ends the list

    def say(self, fed: Sequence[str]) -> str:
        """The model's next word, after what is fed before it."""
        if self._linking is not None:
            link, self._linking = self._linking, None
            return link[0]
        role, _, rest = fed[-1].partition("_")
        if role == "U":
            del self.lists[rest][0]
            return self.lists[rest][0]
        if role == "P":
            return self._first(rest)
        if role == "F":
            self._linking = list(self.lists[rest])
            block = self._put(fed)
            self.lists[rest].insert(0, block)
            return block
        return self._mention(fed[-2], fed[-1])

    def _mention(self, role: str, name: str) -> str:
        self._name = name
        if name in self.lines:
            self._block = self.lines[name]
            return self._block
        shape = role.partition("_")[2]
        kind = shape.rstrip("0123456789")
        width = int(shape[len(kind) :])
        file = FILES_OF_KIND.get(kind, (kind,))[0]
        return self._first(f"{file}{next(size for size in SIZES[file] if size >= width)}")

    def _first(self, of_list: str) -> str:
        """The head of a list, which is taken if it is a block."""
        head = self.lists.get(of_list, [END])[0]
        if head[0].isalpha():
            self.lines[self._name] = self._block = head
        return head

    def _put(self, fed: Sequence[str]) -> str:
        """The register that `fed` puts on a list."""
        words = [word for word in fed if word[0] == "+" or word[0].isalpha()]
        distance = next((int(word[1:]) for word in words if word[0] == "+"), 0)
        kind = self._block.rstrip("0123456789")
        return f"{kind}{int(self._block[len(kind) :]) + distance}"
