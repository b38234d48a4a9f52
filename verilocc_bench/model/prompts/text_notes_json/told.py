"""What an assignment looks like in windows, and the rule that makes one: for demonstrations.

The rule is that of `text-notes` (model.notes.text_teacher): what has a line keeps its register,
and what has none takes the first block of the smallest that are wide enough.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress

from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function
from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.model.prompts.notes.ledger import Contradiction
from verilocc_bench.model.prompts.notes.reading import Role
from verilocc_bench.model.prompts.notes.window import DryWindow, WrongWord
from verilocc_bench.model.prompts.notes.words import CROSSED, KNOWN, NEW, register_word
from verilocc_bench.model.prompts.text_notes.episode import read_text
from verilocc_bench.model.prompts.text_notes.ledger import TextLedger, empty_text_ledger
from verilocc_bench.model.prompts.text_notes_json.lists import FreeLists
from verilocc_bench.model.prompts.text_notes_json.window import JsonWindow
from verilocc_bench.model.prompts.text_notes_json.wording import (
    DRY_WORDS,
    Element,
    dry_text,
    window_text,
    write_answer,
)

Choose = Callable[[int, str, FreeLists], str | None]
"""The register of a virtual register without a line, given its shape and the lists."""


class NoRuleAnswer(Exception):
    """The rule comes to a dead end, or has no words for a class; the message says which."""


def by_rule(register: int, shape: str, lists: FreeLists) -> str | None:
    """The first block of the smallest that are wide enough."""
    del register
    place = lists.first(shape)
    return None if place is None else register_word(place.file, place.number)


def rule_answer(function: Function) -> dict[str, str]:
    """The assignment of the rule. Raises NoRuleAnswer."""
    ledger = empty_text_ledger(function)
    for _ in told_turns(function, by_rule, ledger):
        pass
    return {
        f"%{register}": register_word(place.file, place.number)
        for register, place in sorted(ledger.given.items())
    }


def told_turns(function: Function, choose: Choose, ledger: TextLedger) -> Iterator[Turn]:
    """The windows of a function with their answers, which fill the notes.

    Raises NoRuleAnswer where these contradict the notes, or find no place.
    """
    try:
        for window in read_text(function, ledger, random.Random(0), JsonWindow):  # noqa: S311
            if isinstance(window, DryWindow):
                yield _told_dry(window)
            else:
                turn = _told(window, choose)
                if turn is not None:
                    yield turn
    except (Contradiction, WrongWord, InputError) as error:
        raise NoRuleAnswer(str(error)) from error


def turns_until_wrong(function: Function, choose: Choose) -> Iterator[Turn]:
    """The same, up to the window in which the answers go wrong."""
    with suppress(NoRuleAnswer):
        yield from told_turns(function, choose, empty_text_ledger(function))


def _told(window: JsonWindow, choose: Choose) -> Turn | None:
    prompt, lists = window_text(window), window.free_lists()
    window.free = lists
    elements: list[Element] = []
    for place, item in window.asked():
        known = window.known(item)
        if known is None:
            word = choose(item.register, window.shapes[item.register], lists)
        else:
            word = register_word(known.file, known.number)
        element: Element = {f"%{item.register}": word}
        elements.append(element)
        if not window.hear(place, word):
            return Turn(prompt, write_answer(elements))
        if changes := lists.changes():
            element["free"] = changes
    window.end()
    return Turn(prompt, write_answer(elements)) if elements else None


def _told_dry(window: DryWindow) -> Turn:
    prompt = dry_text(window)
    elements: list[Element] = []
    for mention in window.mentions:
        if mention.role is Role.BEGINS:
            word = CROSSED
        else:
            word = KNOWN if mention.register in window.noted else NEW
        window.hear(mention, word)
        elements.append({f"%{mention.register}": DRY_WORDS[word]})
    return Turn(prompt, write_answer(elements))
