"""What is said of a window of any kind: words are fed, and after them a word is heard."""

from __future__ import annotations

from verilocc_bench.model.notes.formats import AnyWindow
from verilocc_bench.model.prompts.notes.window import DryWindow, NotesWindow
from verilocc_bench.model.prompts.text_notes.window import Conversation, TextWindow


def has_mentions(window: AnyWindow) -> bool:
    """False for a window that there is nothing to say to."""
    return bool(window.items if isinstance(window, TextWindow) else window.mentions)


def conversation_of(window: AnyWindow) -> Conversation:
    """Gives what is fed after the prompt, and takes words. Raises WrongWord or Contradiction."""
    return window.conversation() if isinstance(window, TextWindow) else _by_mentions(window)


def _by_mentions(window: DryWindow | NotesWindow) -> Conversation:
    for place in range(len(window.mentions)):
        fed = window.fed(place)
        window.begin_answer(place)
        while not window.hear((yield fed)):
            fed = []
