"""Whose answers the models learn, for windows of both kinds."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from verilocc_bench.model.notes.text_notes_format import AnyWindow
from verilocc_bench.model.notes.text_teacher import TextTeacher
from verilocc_bench.model.prompts.notes.reading import Mention, Role
from verilocc_bench.model.prompts.notes.words import CROSSED, KNOWN, NEW
from verilocc_bench.model.prompts.text_notes.window import TextWindow


class OutOfRegisters(Exception):
    """There is no place for a virtual register."""


def teacher_of(window: AnyWindow, prompt: Sequence[str]) -> Callable[[Sequence[str]], str]:
    """Gives the next word after what is fed, from the prompt on."""
    if isinstance(window, TextWindow):
        return TextTeacher(prompt).say
    noted, mentions = window.noted, iter(window.mentions)
    return lambda _: teach_dry(noted, next(mentions))


def teach_dry(noted: dict[int, None], mention: Mention) -> str:
    """The answer to a mention in a dry window."""
    if mention.role is Role.BEGINS:
        return CROSSED
    return KNOWN if mention.register in noted else NEW
