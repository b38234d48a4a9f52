"""Answers in files: one JSON object, or one on each line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verilocc_bench.edits.edits_json import edits_to_json, parse_edits
from verilocc_bench.edits.records import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.files import MIB, parse_json, read_text

MAXIMUM_ENTRIES = 1_000_000
"""More than the virtual registers of any kernel; a larger answer is damaged."""

ANSWER_LIMIT_BYTES = 32 * MIB
KEYS = {"id", "assignment", "edits"}


def read_answer(path: Path) -> tuple[str | None, Answer]:
    """The id, or None if it is left out, and the answer of an answer file."""
    return parse_answer(parse_json(read_text(path, ANSWER_LIMIT_BYTES), path), path)


def parse_answer(
    document: Any, source: str | Path, line: int | None = None
) -> tuple[str | None, Answer]:
    """The id and the answer of a decoded document. Raises InputError for any other form."""

    def error(message: str) -> InputError:
        return InputError(message, source=source, line=line)

    if not isinstance(document, dict) or "assignment" not in document:
        raise error('expected an answer {"assignment": {"%0": "v0", …}}; "id" may stand beside it')
    if unknown := sorted(document.keys() - KEYS):
        raise error(f"unknown key {unknown[0][:40]!r} in the answer")
    identifier, assignment = document.get("id"), document["assignment"]
    if identifier is not None and not isinstance(identifier, str):
        raise error("expected a string as 'id'")
    if not isinstance(assignment, dict):
        raise error("expected an object as 'assignment'")
    if len(assignment) > MAXIMUM_ENTRIES:
        raise error(
            f"the assignment has {len(assignment):,} entries, "
            f"more than the {MAXIMUM_ENTRIES:,} accepted"
        )
    for key, value in assignment.items():
        if not isinstance(value, str):
            raise error(
                f"expected the name of a register for {key[:40]!r}, not a {type(value).__name__}"
            )
    edits = document.get("edits")
    if not edits and edits in (None, {}):
        return identifier, Answer(assignment)
    try:
        return identifier, Answer(assignment, parse_edits(edits))
    except InputError as wrong:
        raise error(wrong.message) from None


def answer_to_json(identifier: str, answer: Answer) -> dict[str, Any]:
    """An answer as one JSON object, the inverse of parse_answer."""
    document = {"id": identifier, "assignment": dict(answer.assignment)}
    return document | {"edits": edits_to_json(answer.edits)} if answer.has_edits else document
