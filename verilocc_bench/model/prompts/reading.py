"""Reads a model's words strictly; it never guesses what is meant.

Only the form is judged here. A well-formed name of a register that does not
exist is part of an answer; the verifier judges it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json
from verilocc_bench.model.language_model import Completion, Finish

SHOWN = 40
"""How many characters of a model's words a message shows."""

_FENCE = re.compile(r"```(?:json)?[ \t]*\n(.*)\n[ \t]*```", re.DOTALL)
KEY = re.compile(r"%(0|[1-9]\d{0,8})", re.ASCII)
_REGISTER = re.compile(r"[A-Za-z_][\w.\[\]:]{0,39}", re.ASCII)


class UnparsableReason(StrEnum):
    """Why a completion is not an answer, or not a part of one.

    Of JSON: `not_json`, `trailing_text` (an object, and more after it),
    `not_an_object`, `duplicate_key`, `not_a_virtual_register` (a key),
    `not_asked` (a key that this prompt does not ask for), `not_a_name` (a
    value that is not a string), `not_a_register` (a name that no register has),
    `empty`, `truncated` (the completion ended at its limit).
    """

    EMPTY = "empty"
    TRUNCATED = "truncated"
    NOT_JSON = "not_json"
    TRAILING_TEXT = "trailing_text"
    NOT_AN_OBJECT = "not_an_object"
    DUPLICATE_KEY = "duplicate_key"
    NOT_A_VIRTUAL_REGISTER = "not_a_virtual_register"
    NOT_ASKED = "not_asked"
    NOT_A_NAME = "not_a_name"
    NOT_A_REGISTER = "not_a_register"


@dataclass(frozen=True, slots=True)
class Unparsable:
    """What is wrong with a completion's form; the message is one line for people.

    `place` is the character of the completion at which reading stopped.
    """

    reason: UnparsableReason
    message: str
    place: int | None = None


def _read_json(completion: Completion) -> Any | Unparsable:
    """The one JSON document of a completion.

    White space around it, and one code fence (with or without the word
    `json`), are allowed; nothing else is. A completion that ended at its limit
    counts if the document is whole.
    """
    text = completion.text.strip()
    if not text:
        return _nothing(completion)
    if fenced := _FENCE.fullmatch(text):
        text = fenced[1].strip()
    try:
        return parse_json(text, "<completion>")
    except InputError as error:
        wrong, start = _not_parsed(text, error, completion), completion.text.find(text)
        return replace(wrong, place=start + (wrong.place or 0))


def read_object(completion: Completion) -> dict[str, str] | Unparsable:
    """The one JSON object of a completion: virtual registers to names."""
    document = _read_json(completion)
    if isinstance(document, Unparsable):
        return document
    if not isinstance(document, dict):
        kind = type(document).__name__
        return Unparsable(UnparsableReason.NOT_AN_OBJECT, f"expected an object, not a {kind}")
    for key, value in document.items():
        if not KEY.fullmatch(key):
            reason = UnparsableReason.NOT_A_VIRTUAL_REGISTER
            message = f"{key[:SHOWN]!r} is not the name of a virtual register"
            return Unparsable(reason, message, _place(completion, key))
        if (wrong := _wrong_name(key, value)) is not None:
            return replace(wrong, place=_place(completion, key))
    return document


def _place(completion: Completion, key: str) -> int | None:
    """Where a key of an object stands; None if it is written in another way."""
    place = completion.text.find(f'"{key}"')
    return place if place >= 0 else None


def _wrong_name(key: str, value: Any) -> Unparsable | None:
    """What is wrong with the name of a register that an object has for a key."""
    if not isinstance(value, str):
        kind = type(value).__name__
        message = f"expected the name of a register for {key}, not a {kind}"
        return Unparsable(UnparsableReason.NOT_A_NAME, message)
    if _REGISTER.fullmatch(value):
        return None
    message = f"{value[:SHOWN]!r} is not the name of a register"
    return Unparsable(UnparsableReason.NOT_A_REGISTER, message)


def _nothing(completion: Completion) -> Unparsable:
    if completion.finish is Finish.LENGTH:
        message = "the completion ended at its limit with nothing said"
        return Unparsable(UnparsableReason.TRUNCATED, message)
    return Unparsable(UnparsableReason.EMPTY, "the completion is empty")


def _not_parsed(text: str, error: InputError, completion: Completion) -> Unparsable:
    """Why a text is not one JSON document."""
    if _has_duplicate_keys(text):
        return Unparsable(UnparsableReason.DUPLICATE_KEY, error.message)
    end = _end_of_document(text) if text.startswith("{") else None
    if end is not None and end < len(text):
        rest = text[end:].strip()[:SHOWN]
        message = f"the object is followed by {rest!r}"
        return Unparsable(UnparsableReason.TRAILING_TEXT, message, end)
    if completion.finish is Finish.LENGTH:
        place = "within the object" if "{" in text else "with no object begun"
        message = f"the completion ended at its limit, {place}"
        return Unparsable(UnparsableReason.TRUNCATED, message, len(text))
    return Unparsable(UnparsableReason.NOT_JSON, error.message, _first_error(text))


def _first_error(text: str) -> int:
    """The character at which a text stops to be JSON."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos
    except (ValueError, RecursionError):
        pass
    return 0


def _has_duplicate_keys(text: str) -> bool:
    """True if a text is a JSON document with a key that stands twice."""
    twice = False

    def note(pairs: list[tuple[str, object]]) -> None:
        nonlocal twice
        twice = twice or len({key for key, _ in pairs}) != len(pairs)

    try:
        json.loads(text, object_pairs_hook=note)
    except (ValueError, RecursionError):
        return False
    return twice


def _end_of_document(text: str) -> int | None:
    """Where the JSON document that a text begins with ends; None if it begins with none."""
    try:
        return json.JSONDecoder().raw_decode(text)[1]
    except (ValueError, RecursionError):
        return None
