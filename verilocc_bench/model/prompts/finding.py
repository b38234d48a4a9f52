"""Finds the answer in a model's words, by a rule that never mends them.

1. What a model thinks is no answer: all up to the last mark that ends a thought, with or without
   a mark that begins it, and all from a beginning without an end. What a server tells apart as
   reasoning is a thought, too. Only where a model stops by itself with nothing said beside its
   thoughts is the answer looked for in these.
2. The answer is the last complete JSON object whose keys are virtual registers, at least one.
   Prose, code fences and other objects around it do not matter. Where there is no such object, the
   last complete object is refused for what it is.
3. The object is read strictly (model.prompts.reading): no trailing commas, no key twice.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace

from verilocc_bench.model.language_model import Completion, Finish
from verilocc_bench.model.prompts.reading import KEY, Unparsable, UnparsableReason, read_object

_TAG = "(?:seed:)?(?:think|thinking|thoughts?|reasoning|reflection)"
_BEGIN = re.compile(
    rf"<{_TAG}\s*>|\[THINK\]|◁think▷|<\|begin_of_thought\|>|<\|START_THINKING\|>"
    r"|<\|channel\|>analysis<\|message\|>",
    re.IGNORECASE,
)
_END = re.compile(
    rf"</{_TAG}\s*>|\[/THINK\]|◁/think▷|<\|end_of_thought\|>|<\|END_THINKING\|>"
    r"|<\|channel\|>final<\|message\|>",
    re.IGNORECASE,
)

_OBJECT = re.compile(r'\{\s*["}]')
_MOST_CHARACTERS = 200_000_000
"""The work on objects that break off: each costs the characters before its end."""

_DEEP_CHARACTERS = 500_000
"""The work on an object that is nested too deeply."""


def find_object(completion: Completion) -> dict[str, str] | Unparsable:
    """The answer in a completion: virtual registers to names."""
    text = completion.text
    start, begin = _thoughts(text)
    said = text[start : begin.start() if begin else len(text)]  # after the thoughts
    if not said.strip() and (completion.reasoning or completion.text).strip():
        if completion.finish is Finish.LENGTH:
            message = "the completion ended at its limit, while the model was thinking"
            return Unparsable(UnparsableReason.TRUNCATED, message)
        said, start = completion.text, 0
        if not said.strip():
            said = completion.reasoning
    found = _objects(said)
    if found is None:
        return Unparsable(UnparsableReason.NOT_JSON, "too many objects that break off")
    if not found:
        # The reason is that of the last object, which is not complete.
        broken = max((match.start() for match in _OBJECT.finditer(said)), default=0)
        return _moved(read_object(replace(completion, text=said[broken:])), start + broken)
    answers = [span for span, keys in found if keys and all(map(KEY.fullmatch, keys))]
    first, end = answers[-1] if answers else found[-1][0]
    return _moved(read_object(replace(completion, text=said[first:end])), start + first)


def thinks_still(text: str) -> bool:
    """True if a text ends within a thought."""
    return _thoughts(text)[1] is not None


def _thoughts(text: str) -> tuple[int, re.Match[str] | None]:
    """Where the last thought that ends does so, and the mark behind it that begins another."""
    if not any(character in text for character in "<[◁"):  # a search takes longer than this
        return 0, None
    start = max((match.end() for match in _END.finditer(text)), default=0)
    return start, _BEGIN.search(text, start)


def _objects(text: str) -> list[tuple[tuple[int, int], list[str]]] | None:
    """The place and the keys of each complete object that stands in no other.

    None if too much breaks off before the end is reached.
    """
    decoder, place, left = json.JSONDecoder(), 0, _MOST_CHARACTERS
    found = []
    while (match := _OBJECT.search(text, place)) is not None:
        start = match.start()
        try:
            document, place = decoder.raw_decode(text, start)
            found.append(((start, place), list(document)))
        except (ValueError, RecursionError) as error:
            left -= getattr(error, "pos", _DEEP_CHARACTERS)
            place = start + 1
        if left < 0:
            return None
    return found


def _moved(found: dict[str, str] | Unparsable, start: int) -> dict[str, str] | Unparsable:
    """A reason with its place counted from the beginning of the completion."""
    if isinstance(found, Unparsable) and found.place is not None:
        return replace(found, place=found.place + start)
    return found
