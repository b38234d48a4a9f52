"""How windows and their answers are written as JSON, and how answers are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from verilocc_bench.model.language_model import Completion
from verilocc_bench.model.prompts.notes.reading import Mention, Role
from verilocc_bench.model.prompts.notes.window import DryWindow
from verilocc_bench.model.prompts.notes.words import CROSSED, FILES_OF_KIND, KNOWN, NEW
from verilocc_bench.model.prompts.reading import (
    SHOWN,
    Unparsable,
    UnparsableReason,
    read_json,
    wrong_name,
)
from verilocc_bench.model.prompts.text_notes.window import Item
from verilocc_bench.model.prompts.text_notes_json.window import JsonWindow

SYSTEM = """\
You allocate registers for a GPU kernel. You read its text backwards, a few mentions of virtual \
registers at a time, and keep notes. What you meet for the first time, from below, gets a block of \
registers; where it begins, its registers are free again.
A prompt is a JSON object:
- "notes": the first register of what you gave to those that have a line in your notes.
- "free": the free blocks by file and size, by their first registers: "4": ["v8", "v20"] are v8 to \
v11 and v20 to v23. "+" at the end of a list: there are more.
- "read": the mentions in the order of reading. ["%2", "2 of v"] is the virtual register %2, which \
takes two registers of the file v. "begins": it begins here; when you have said its register, it \
is crossed out of the notes and its block is free again. "gives 2-3": then its lanes 2 and 3 alone \
are free again ("gives nothing": none).
Answer with a JSON array and nothing else: for each mention, in their order, an object with the \
name and its first register, such as {"%2": "v4"}.
- One that has a line has the register of its line, also where the line is of this answer.
- One that has no line takes the first block of the smallest size that is wide enough; of "v or \
a" one of a only where no block of v is wide enough.
- As long as one without a line is still to come, write down what has become of the lists: \
{"%3": "v16", "free": {"v": {"1": ["v17"], "2": ["v18"], "4": ["v40"]}}} where v16 was a block \
of four. A block that is taken leaves \
its list. What is left of it, and what is free again, goes to the heads of the lists, as blocks as \
large as they can be that begin at a multiple of their size; what fits in no size that is shown is \
left out. Write only lists that have changed.
- Where no list has a block that is wide enough, or only "+" is left where you would take one: say \
null in place of a register and end the array there. You will be shown the lists again.
With "loop" in place of "read" a loop is read without registers, to find what lives around it. Say \
"new" of a name that you meet for the first time, "known" of one that you have met or that is in \
"noted", and "crossed out" where it begins."""

DRY_WORDS = {KNOWN: "known", NEW: "new", CROSSED: "crossed out"}
_DRY_MEANINGS = {spelled: word for word, spelled in DRY_WORDS.items()}

Element = dict[str, Any]
"""One object of an answer's array."""


def window_text(window: JsonWindow) -> str:
    """The prompt of a window."""
    freed = window.freed()
    read = [_item_words(window, item, freed.get(place, 0)) for place, item in window.asked()]
    parts = {"notes": window.notes(), "free": window.free_lists().written(), "read": read}
    return _lines(parts)


def dry_text(window: DryWindow) -> str:
    """The prompt of a dry window."""
    names = sorted({mention.register for mention in window.mentions})
    noted = [f"%{register}" for register in names if register in window.noted]
    loop = [
        [f"%{mention.register}", "begins"] if _begins(mention) else [f"%{mention.register}"]
        for mention in window.mentions
    ]
    return _lines({"noted": noted, "loop": loop})


def _lines(parts: Mapping[str, Any]) -> str:
    """An object with each key on a line of its own."""
    lines = [f'"{key}": {json.dumps(value)}' for key, value in parts.items()]
    return "{" + ",\n ".join(lines) + "}\n"


def _begins(mention: Mention) -> bool:
    return mention.role is Role.BEGINS


def _item_words(window: JsonWindow, item: Item, freed: int) -> list[str]:
    shape = window.shapes[item.register]
    kind = shape.rstrip("0123456789")
    files = " or ".join(FILES_OF_KIND.get(kind, (kind,)))
    words = [f"%{item.register}", f"{shape[len(kind) :]} of {files}"]
    begins = item.gives is None and _begins(item.mention)
    if begins:
        words.append("begins")
    if freed != ((1 << window.classes[item.register].width) - 1 if begins else 0):
        words.append(f"gives {','.join(_runs(freed)) or 'nothing'}")
    return words


def _runs(lanes: int) -> Iterator[str]:
    """Runs of lanes, as `2-3` or `5`."""
    first = 0
    while lanes >> first:
        if not lanes >> first & 1:
            first += 1
            continue
        last = first
        while lanes >> (last + 1) & 1:
            last += 1
        yield f"{first}-{last}" if last > first else f"{first}"
        first = last + 1


def write_answer(elements: Sequence[Element]) -> str:
    """An answer, as demonstrations have it."""
    return json.dumps(list(elements))


def read_registers(completion: Completion, names: Sequence[str]) -> list[str | None] | Unparsable:
    """What an answer gives to the mentions of these names, in their order.

    It may end early, with null. What it says of lists is left unread.
    """
    found = _read_elements(completion, names, also="free")
    if isinstance(found, Unparsable):
        return found
    for place, (name, word) in enumerate(zip(names, found, strict=False)):
        if word is None:
            if len(found) > place + 1:
                message = f"expected the end after null for {name}"
                return Unparsable(UnparsableReason.NOT_ASKED, message)
            return found
        if (wrong := wrong_name(name, word)) is not None:
            return wrong
    return found if len(found) == len(names) else _missing(names[len(found)])


def read_dry(completion: Completion, names: Sequence[str]) -> list[str] | Unparsable:
    """The words of `notes` that an answer gives to the mentions of a loop."""
    found = _read_elements(completion, names)
    if isinstance(found, Unparsable):
        return found
    for name, word in zip(names, found, strict=False):
        if word not in _DRY_MEANINGS:
            expected = ", ".join(_DRY_MEANINGS)
            message = f"expected one of {expected} for {name}, not {str(word)[:SHOWN]!r}"
            return Unparsable(UnparsableReason.NOT_A_NAME, message)
    if len(found) < len(names):
        return _missing(names[len(found)])
    return [_DRY_MEANINGS[word] for word in found]


def _missing(name: str) -> Unparsable:
    return Unparsable(UnparsableReason.NOT_ASKED, f"the array ends before {name}")


def _read_elements(
    completion: Completion, names: Sequence[str], also: str | None = None
) -> list[Any] | Unparsable:
    """The values of an array of objects that have these names, in this order."""
    document = read_json(completion)
    if isinstance(document, Unparsable):
        return document
    if not isinstance(document, list):
        kind = type(document).__name__
        return Unparsable(UnparsableReason.NOT_AN_ARRAY, f"expected an array, not a {kind}")
    if len(document) > len(names):
        message = f"{len(document)} objects for {len(names)} mentions"
        return Unparsable(UnparsableReason.NOT_ASKED, message)
    values = []
    for element, name in zip(document, names, strict=False):
        keys = [key for key in element if key != also] if isinstance(element, dict) else []
        if keys != [name]:
            said = json.dumps(element)[:SHOWN]
            message = f"expected an object with the key {name}, not {said}"
            return Unparsable(UnparsableReason.NOT_ASKED, message)
        values.append(element[name])
    return values
