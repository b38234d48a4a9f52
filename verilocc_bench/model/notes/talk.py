"""How words go back and forth over a window: some are fed, and after them one is heard."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Asked:
    """What is fed before the model's next word, and what the rule says there.

    `of_list`: the word tells of a list, and must be the rule's.
    """

    fed: Sequence[str]
    right: str
    of_list: bool = False


Conversation = Generator[Asked, str, None]
"""Asks for the words of a window, one after the other. Raises WrongWord or Contradiction."""


class WrongWord(Exception):
    """A word stands where it cannot stand; the message says which."""


class SpokenWindow(Protocol):
    """A stretch of the text that somebody answers, from its prompt on."""

    def prompt(self) -> list[str]:
        """What is shown before the first word."""
        ...

    def conversation(self) -> Conversation:
        """What is asked after the prompt."""
        ...


Say = Callable[[Asked], str]
"""Whoever answers a window: the next word to what is asked."""


def words_of_rule(asked: Asked) -> str:
    """What the rule says."""
    return asked.right


def answered(window: SpokenWindow, say: Say) -> Iterator[tuple[Sequence[str], str]]:
    """What is fed and what is said to it, to the window's end; so its notes are filled.

    Raises WrongWord or Contradiction after the word that is one.
    """
    talk = window.conversation()
    try:
        asked = next(talk)
        while True:
            word = say(asked)
            yield asked.fed, word
            asked = talk.send(word)
    except StopIteration:
        return
