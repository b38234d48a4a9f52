"""The published form of results.json, and reading files that claim to have it.

The schema (JSON Schema 2020-12) lies beside this module, in
results.schema.json. It is strict where keys are known. A schema
cannot say that figures agree with each other; that is checked after it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from verilocc_bench.allocators import Assistance
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.metrics import mean
from verilocc_bench.files import read_json

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError


SHOWN_LENGTH = 60
"""How much of what a file says is repeated in a message."""

_TYPES = {
    "array": "an array",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "an object",
    "string": "a string",
}


@cache
def results_schema() -> dict[str, Any]:
    """The JSON Schema of results.json."""
    text = (files("verilocc_bench.evaluation") / "results.schema.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def read_results(path: Path) -> dict[str, Any]:
    """The document of a results.json. Raises InputError, with the place, for anything else."""
    document = read_json(path)
    check_results(document, path)
    assert isinstance(document, dict)
    return with_todays_assistance(document)


def with_todays_assistance(document: dict[str, Any]) -> dict[str, Any]:
    """The document, where models that kept notes have assistance `intervals`.

    Earlier versions called it `text`.
    """
    config = document["config"]
    prompt = config["prompt"]
    notes = prompt is not None and prompt["format"] == "text-notes"
    if not notes or config["assistance"] != Assistance.TEXT:
        return document
    config["assistance"] = Assistance.INTERVALS.value
    for records in (document["results"], *document["groups"].values()):
        for record in records.values():
            record["assistance"] = config["assistance"]
    return document


def check_results(document: object, source: str | Path) -> None:
    """Raises InputError, with the first wrong place, unless a document has the form."""
    if isinstance(document, dict) and {"results", "config"} <= document.keys():
        older = [key for key in ("groups", "kernels", "timing") if key not in document]
        if older:
            raise InputError(
                f"these results have an older form, without {older[0]!r}: run evaluate again",
                source=source,
            )
    check_schema(document, results_schema, source)
    assert isinstance(document, dict)
    _check_figures(document, source)


def check_schema(
    document: object, schema: Callable[[], dict[str, Any]], source: str | Path
) -> None:
    """Raises InputError, with the first wrong place, unless a document follows a JSON Schema."""
    worst = min(
        _validator(schema).iter_errors(document),
        # The outermost error first: errors within it may follow from it.
        key=lambda e: (len(e.absolute_path), _pointer(e.absolute_path), str(e.validator)),
        default=None,
    )
    if worst is not None:
        place = _pointer(worst.absolute_path)
        raise InputError(f"at {place}: {_expectation(worst)}", source=source)


@cache
def _validator(schema: Callable[[], dict[str, Any]]) -> Draft202012Validator:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(_without_references(schema(), schema()))


def _without_references(part: Any, schema: dict[str, Any]) -> Any:
    """A part of a schema, with what it refers to in place of each reference.

    To look references up takes most of the time of checking a document. No definition
    of a schema here holds itself.
    """
    if isinstance(part, list):
        return [_without_references(each, schema) for each in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:  # a description may stand beside it
        name = part["$ref"].removeprefix("#/$defs/")
        return _without_references(schema["$defs"][name], schema)
    # What is defined is used in its places alone.
    return {key: _without_references(each, schema) for key, each in part.items() if key != "$defs"}


def _pointer(path: Iterable[str | int]) -> str:
    """A JSON pointer (RFC 6901); `/` alone is the whole document."""
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "/" + "/".join(part[:SHOWN_LENGTH] for part in parts)


def _expectation(error: ValidationError) -> str:
    """What a rule of the schema expects, in words, and what was found instead."""
    expected: Any = error.validator_value
    found: Any = error.instance
    schema: Any = error.schema
    shown = json.dumps(found)[:SHOWN_LENGTH]
    match error.validator:
        case "type":
            kinds = [expected] if isinstance(expected, str) else expected
            return f"expected {' or '.join(_TYPES[kind] for kind in kinds)}, not {shown}"
        case "required":
            missing = next(key for key in expected if key not in found)
            return f"the key {missing!r} is missing"
        case "additionalProperties":
            known, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
            unknown = next(
                key
                for key in found
                if key not in known and not any(re.search(pattern, key) for pattern in patterns)
            )
            return f"the key {unknown[:SHOWN_LENGTH]!r} is unknown"
        case "enum":
            return f"expected one of {', '.join(map(str, expected))}, not {shown}"
        case "minimum":
            return f"expected {expected} or more, not {shown}"
        case "maximum":
            return f"expected {expected} or less, not {shown}"
        case "pattern":
            return f"expected text like {expected}, not {shown}"
        case "uniqueItems":
            return f"expected items that are all different, not {shown}"
        case _:
            return f"expected something that is not empty, not {shown}"


def _check_figures(document: Mapping[str, Any], source: str | Path) -> None:
    seen: set[tuple[str, str]] = set()
    for number, kernel in enumerate(document["kernels"]):
        if (key := (kernel["split"], kernel["id"])) in seen:
            raise InputError(f"at /kernels/{number}: {key[1]} is there twice", source=source)
        seen.add(key)
        if kernel["valid"] > kernel["samples"]:
            raise InputError(
                f"at /kernels/{number}: more valid samples than samples", source=source
            )
        if (kernel["registers"] is None) != (kernel["valid"] == 0):
            raise InputError(
                f"at /kernels/{number}/registers: expected a number where, and only where, "
                f"there is a valid sample",
                source=source,
            )
    groups = {"results": document["results"]} | {
        f"groups/{name}": records for name, records in document["groups"].items()
    }
    for place, records in groups.items():
        for name, record in records.items():
            _check_record(document["config"], record, f"/{place}{_pointer([name])}", source)
    _check_means(document["results"]["overall"], document["kernels"], source)


def _check_means(
    overall: Mapping[str, Any], kernels: Sequence[Mapping[str, Any]], source: str | Path
) -> None:
    """The shares and scores of kernels are those of the whole."""
    for key, values in (
        ("pass@1", [each["samples"] and each["valid"] / each["samples"] for each in kernels]),
        ("score", [each.get("score") for each in kernels]),
    ):
        if overall.get(key) is None:
            continue
        found = mean([value for value in values if value is not None])
        if found is None or not math.isclose(found, overall[key], abs_tol=1e-6):
            expected = "no number" if found is None else f"{found:.6g}"
            message = f"expected {expected}, the mean over /kernels, not {overall[key]:.6g}"
            raise InputError(f"at /results/overall/{key}: {message}", source=source)


def _check_record(
    config: Mapping[str, Any], record: Mapping[str, Any], place: str, source: str | Path
) -> None:
    for k in config["k"]:
        for key in (f"pass@{k}", f"pass@{k}_low", f"pass@{k}_high"):
            if key not in record:
                raise InputError(f"at {place}: the key {key!r} is missing", source=source)
    for key in ("assistance", "decoding"):
        if record[key] != config[key]:
            raise InputError(
                f"at {place}/{key}: expected {config[key]!r}, as in /config", source=source
            )
