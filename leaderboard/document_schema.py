"""The form of an accepted submission's document, checked before a page is made of it.

Kernels and records have the form of results.json, whose schema this one builds on.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from verilocc_bench.evaluation.schema import results_schema

_TEXT, _COUNT = {"type": "string"}, {"type": "integer", "minimum": 0}
_NUMBER = {"type": ["number", "null"]}
_OPTIONAL_TEXT = {"type": ["string", "null"]}


def _object(needed: dict[str, Any], **further: Any) -> dict[str, Any]:
    """An object with these keys, perhaps some of the further ones, and others."""
    return {"type": "object", "properties": {**needed, **further}, "required": list(needed)}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


def _map(value: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": value}


def _texts(*names: str) -> dict[str, Any]:
    return dict.fromkeys(names, _TEXT)


@cache
def document_schema() -> dict[str, Any]:
    """The JSON Schema of an accepted document."""
    results = results_schema()
    kernel = results["$defs"]["kernel"]
    shown = kernel | {
        "properties": kernel["properties"]
        | {
            "task": {"type": "string", "pattern": "^[^/]+/[^/]+$"},
            "label_bank_conflicts": {"type": ["integer", "null"], "minimum": 0},
        },
        "required": [*kernel["required"], "label_bank_conflicts"],
    }
    submission = _object(
        {
            **_texts("name", "contact", "training_data", "hardware", "licence", "command"),
            **_texts("dataset", "dataset_hash", "track", "assistance", "decoding"),
            "authors": _list(_TEXT),
            "architectures": _list(_TEXT),
            "samples": _COUNT,
            "verifier_calls": _COUNT,
            "parameters": {"type": ["integer", "null"], "minimum": 0},
            "base": _OPTIONAL_TEXT,
            "description": _OPTIONAL_TEXT,
            "links": _map(_TEXT),
            "claims": _map(_map(_NUMBER)),
        },
        date=_OPTIONAL_TEXT,
        limit=_COUNT,
        measured=_list({"type": "object"}),
        prompt_tokens=_COUNT,
        completion_tokens=_COUNT,
        cost=_NUMBER,
    )
    claim = _texts("task", "figure") | {"claimed": _NUMBER, "found": _NUMBER}
    return _object(
        {
            "submission": submission,
            "board": _object(
                _texts("name", "dataset", "track", "split", "hash") | {"functions": _COUNT},
                limit=_COUNT,
            ),
            "files": _map(_TEXT),
            "versions": _map(_TEXT),
            "checkers": _TEXT,
            "marks": _list(_object(_texts("kind", "message"))),
            "results": results["properties"]["results"],
            "groups": results["properties"]["groups"],
            "kernels": _list(shown),
            "answers": _object(dict.fromkeys(("samples", "distinct", "compiler", "best"), _COUNT)),
            "claims": _list(_object(claim | {"same": {"type": "boolean"}})),
            "examples": _list(_object({"id": _TEXT, "sample": _COUNT, "assignment": _map(_TEXT)})),
        },
        executed=_object({}, executed=_COUNT, wrong=_list(_TEXT)),
        machine_code=_object({}, record={"$ref": "#/$defs/machine_code_sums"}),
    ) | {"$defs": results["$defs"]}
