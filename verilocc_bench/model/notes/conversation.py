"""What is said of a window of any kind: words are fed, and after them a word is heard."""

from __future__ import annotations

from verilocc_bench.model.notes.text_notes_format import AnyWindow
from verilocc_bench.model.prompts.text_notes.window import Conversation, TextWindow


def has_mentions(window: AnyWindow) -> bool:
    """False for a window that there is nothing to say to."""
    return bool(window.items if isinstance(window, TextWindow) else window.mentions)


def conversation_of(window: AnyWindow) -> Conversation:
    """Gives what is fed after the prompt, and takes words. Raises WrongWord or Contradiction."""
    if isinstance(window, TextWindow):
        yield from window.conversation()
        return
    for mention in window.mentions:
        window.hear(mention, (yield window.fed(mention)))
