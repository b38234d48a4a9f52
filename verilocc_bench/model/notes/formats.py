"""The prompt formats of networks that keep notes."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from functools import cache

from verilocc_bench.allocators import Assistance
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function
from verilocc_bench.model.prompts.notes.episode import empty_ledger, read_function
from verilocc_bench.model.prompts.notes.ledger import NotesLedger
from verilocc_bench.model.prompts.notes.source_hash import notes_source_hash
from verilocc_bench.model.prompts.notes.window import DryWindow, NotesWindow
from verilocc_bench.model.prompts.notes.words import vocabulary
from verilocc_bench.model.prompts.text_notes.episode import read_text
from verilocc_bench.model.prompts.text_notes.ledger import empty_text_ledger
from verilocc_bench.model.prompts.text_notes.source_hash import text_notes_source_hash
from verilocc_bench.model.prompts.text_notes.window import TextWindow
from verilocc_bench.model.prompts.text_notes.words import text_vocabulary

AnyWindow = DryWindow | NotesWindow | TextWindow
AnyReading = (
    Generator[DryWindow | NotesWindow, bool, None] | Generator[DryWindow | TextWindow, bool, None]
)


@dataclass(frozen=True, slots=True)
class NotesFormat:
    """A format: what `--prompt-format` calls it, and how a function is read in it.

    `model_type` is what config.json has. `version` is raised with every change of the words, or of
    what the program reads and feeds. `open` gives the notes before the first word, and the
    reading that fills them; some virtual registers are to be read before all others, where the
    format can.
    """

    name: str
    model_type: str
    version: int
    assistance: Assistance
    vocabulary: Callable[[], tuple[str, ...]]
    source_hash: Callable[[], str]
    open: Callable[[Function, random.Random, Collection[int]], tuple[NotesLedger, AnyReading]]


def _refuse_calls(name: str, function: Function) -> None:
    if function.masks():
        raise InputError(f"the prompt format {name} has no words for registers that calls destroy")


def _open_notes(
    function: Function, naming: random.Random, first: Collection[int]
) -> tuple[NotesLedger, AnyReading]:
    del first
    _refuse_calls("notes", function)
    ledger = empty_ledger(function)
    return ledger, read_function(function, ledger, naming)


def _open_text_notes(
    function: Function, naming: random.Random, first: Collection[int]
) -> tuple[NotesLedger, AnyReading]:
    _refuse_calls("text-notes", function)
    ledger = empty_text_ledger(function)
    return ledger, read_text(function, ledger, naming, TextWindow, first)


NOTES_FORMAT = NotesFormat(
    name="notes",
    model_type="verilocc_notes",
    version=2,
    assistance=Assistance.STATE,
    vocabulary=vocabulary,
    source_hash=notes_source_hash,
    open=_open_notes,
)

TEXT_NOTES_FORMAT = NotesFormat(
    name="text-notes",
    model_type="verilocc_text_notes",
    version=2,
    assistance=Assistance.TEXT,
    vocabulary=text_vocabulary,
    source_hash=text_notes_source_hash,
    open=_open_text_notes,
)

NOTES_FORMATS = {each.name: each for each in (NOTES_FORMAT, TEXT_NOTES_FORMAT)}


@cache
def token_numbers(prompt_format: NotesFormat) -> dict[str, int]:
    """The token of each word."""
    return {word: number for number, word in enumerate(prompt_format.vocabulary())}
