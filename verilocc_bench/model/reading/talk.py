"""One conversation with a model: what it is shown, and where its answers end."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Mapping, Sequence

from verilocc_bench.model.reading.conversation import (
    INDEX,
    WORDS,
    Conversation,
    NoFreeBlock,
    Showing,
    is_mark,
    is_register,
    list_of,
    register_of,
)
from verilocc_bench.model.reading.teaching import Said, Teacher

MOST_WORDS: Mapping[str, int] = {"opening": 2500, "place": 64}
"""Of an answer; of all others 5."""
MOST_SWEPT = 3000
LONGEST_DRAFT, SHORTEST_DRAFT = 1024, 16
"""Words. After a word that the model does not say, a draft has twice the words read before it."""
MOST_REFUSED = 400
"""Words of a conversation that are not the draft's. 277 right ones on an H200 have at most 273."""


class WrongWord(Exception):
    """The model said a word that no answer has there."""


class NoRoom(Exception):
    """A conversation is longer than the model can read."""


class Listener:
    """Hears the model's answer to one turn, and knows from its words where it ends."""

    def __init__(self, turn: Showing) -> None:
        self.turn = turn
        self.words: list[str] = []
        self._swept = False

    def hear(self, word: str) -> bool:
        """Whether the answer is over. Raises WrongWord."""
        before, count = self.words[-1:], len(self.words) + 1
        self.words.append(word)
        shown, ask = self.turn
        good, over = True, True
        if ask == "mark":
            good = is_mark(word)
        elif ask == "back":
            good = word in (".", "@")
        elif ask == "around":
            good = word == "." or (word[0] == "~" and is_mark(word[1:]))
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
        if good and over and ask == "place":
            good = is_register(register_of(self.words))
        if not good:
            raise WrongWord(f"{word} as an answer to {' '.join(shown)}")
        self._swept |= word[:2] == "S."
        if not over and count > (MOST_SWEPT if self._swept else MOST_WORDS.get(ask, 5)):
            raise WrongWord(f"the answer to {' '.join(shown)} does not end")
        return over


class Speaker:
    """One conversation: the program shows, the model answers, the program takes note.

    `banned` are registers that a name may not have, by the name's word.
    """

    def __init__(
        self, conversation: Conversation, banned: Mapping[str, Collection[str]] | None = None
    ) -> None:
        self.turns = conversation.turns
        self._banned = {
            name: {INDEX[word] for word in words} for name, words in (banned or {}).items()
        }
        self._teacher = Teacher(conversation)
        self.words = [INDEX[word] for word in conversation.opening]
        self.answers: list[list[str]] = []
        self.own = self.refused = 0
        """How many words are the model's, and how many of these are not the draft's."""
        self._show()

    def over(self) -> bool:
        """Whether all has been answered."""
        return len(self.answers) == len(self.turns)

    def _show(self) -> None:
        if not self.over():
            turn = self.turns[len(self.answers)]
            self.words += [INDEX[spoken] for spoken in turn.shown]
            self._listener = Listener(turn)

    def bans(self, answer: int) -> bool:
        """Whether the name of this turn would get a register by this word that it may not have."""
        turn, heard = self.turns[len(self.answers)], self._listener.words
        takes = turn.ask == "place" and (not heard or heard[-1][:2] == "T.")
        return takes and answer in self._banned.get(turn.shown[-1], ())

    def impossible(self) -> list[int]:
        """Where a register is banned: the words that may not stand in its place."""
        other = "-" if self._listener.words else "T."
        return [
            index
            for index, word in enumerate(WORDS)
            if self.bans(index) or not (is_register(word) or word[:2] == other)
        ]

    def draft(self, count: int) -> list[int]:
        """Words that the teacher would go on with: a guess that the model's own words must meet."""
        self._teacher.said = Said()
        teacher = copy.deepcopy(self._teacher)
        words: list[int] = []
        spoken = len(self._listener.words)
        for index in range(len(self.answers), len(self.turns)):
            if len(words) >= count:
                break
            turn = self.turns[index]
            if index > len(self.answers):
                words += [INDEX[text] for text in turn.shown]
            teacher.said = Said()
            try:
                teacher.answer(turn)
            except (NoFreeBlock, KeyError):
                count = 0
            words += teacher.said.words[spoken:]
            spoken = 0
        return words

    def hear(self, answer: int) -> None:
        """Adds a word of the model, and what the program shows after it. Raises WrongWord."""
        word = WORDS[answer] if answer < len(WORDS) else "<pad>"
        self.words.append(answer)
        self.own += 1
        if self._listener.hear(word):
            self._teacher.hear(self.turns[len(self.answers)], self._listener.words)
            self.answers.append(self._listener.words)
            self._show()


def converse(
    speaker: Speaker,
    read: Callable[..., Sequence[int]],
    longest: int,
    tell: Callable[[int], object] = lambda _: None,
) -> None:
    """A whole conversation. Raises WrongWord and NoRoom.

    `read` takes some words and the place of the first, and gives the model's next word after each
    of them. Its third argument, if there is one, names words that it may not give. `tell` is told
    how many words the model has said.

    The model reads the teacher's next words as a draft. The draft counts up to the first word that
    the model does not say. There the model's own word stands, and the teacher drafts anew. So the
    words are those that the model says when it reads word by word, but for rounding. A conversation
    ends with a WrongWord when more than MOST_REFUSED of its words are not the draft's.
    """
    place, size = 0, LONGEST_DRAFT
    if len(speaker.words) + sum(len(turn.shown) + 1 for turn in speaker.turns[1:]) > longest:
        raise NoRoom(f"a conversation has more than {longest} words")
    while not speaker.over():
        drafted = [*speaker.words[place:], *speaker.draft(size)][: longest - place]
        # What stands behind a word that is not the draft's is read in vain.
        words = drafted[: len(speaker.words) - place + size]
        if not words:
            raise NoRoom(f"a conversation has more than {longest} words")
        before, index = speaker.own, 0
        for index, likeliest in enumerate(read(words, place), 1):
            said, last = likeliest, index == len(words)
            other = index == len(drafted) or drafted[index] != said
            if place + index == len(speaker.words):
                if speaker.bans(said):
                    rest = words[index - 1 : index]
                    (said,) = read(rest, place + index - 1, speaker.impossible())
                    last = other = True  # what was read behind this word is forgotten
                speaker.refused += other
                if speaker.refused > MOST_REFUSED:
                    raise WrongWord(f"more than {MOST_REFUSED} words are not the draft's")
                speaker.hear(said)
            if speaker.over() or last or words[index] != speaker.words[place + index]:
                break
        place += index
        size = min(LONGEST_DRAFT, max(SHORTEST_DRAFT, 2 * index))
        tell(speaker.own - before)
