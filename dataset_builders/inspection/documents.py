"""The JSON files of a dataset folder: their schemas, and reading them with findings for errors."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from dataset_builders.inspection.findings import CheckKind, Findings
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json, read_data, read_json

Line = tuple[int, dict[str, Any]]
"""The number of a line, from 1, with its object."""

_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_SHA256 = {"type": "string", "pattern": "^[0-9a-f]{64}$"}
_SHARE = {"type": "number", "minimum": 0, "maximum": 1}


def _map_of(values: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": values}


def _object(properties: dict[str, Any], *, closed: bool = True) -> dict[str, Any]:
    document = {"type": "object", "properties": properties, "required": list(properties)}
    return document | ({"additionalProperties": False} if closed else {})


def _form(properties: dict[str, Any], *, closed: bool = True) -> Draft202012Validator:
    return Draft202012Validator(_object(properties, closed=closed))


MANIFEST_FORM = _form(
    {
        "sweep": _TEXT,
        "archs": {"type": "array", "items": _TEXT},
        "points": _COUNT,
        "format": _TEXT,
        "versions": _map_of(_TEXT),
        "flags": _map_of({"type": "array", "items": _TEXT}),
        "kernel_sources": _map_of(_SHA256),
        "rejected": _map_of(_COUNT),
        "files": _map_of(_SHA256),
    },
    closed=False,
)

REJECTED_FORM = _form(
    dict.fromkeys(("point", "family", "arch", "kernel", "params", "kind", "reason"), _TEXT)
)

ROW_LIST_FORM = _form(
    {
        **dict.fromkeys(("id", "point", "arch", "family", "kernel"), _TEXT),
        "params": {"type": "object"},
        **dict.fromkeys(("track", "split", "group", "cluster", "file"), _TEXT),
        "row_sha256": _SHA256,
        "raw_sha256": _SHA256,
    }
)

_SUMMARY = _object(
    {
        "rows": _COUNT,
        "minimum_distance": _SHARE,
        "median_distance": _SHARE,
        "share_below": {
            "type": "object",
            "propertyNames": {"pattern": r"^0\.[0-9]+$|^1$|^1\.0$"},
            "additionalProperties": _SHARE,
        },
    },
    closed=False,
)

LEAKAGE_FORM = _form(
    {
        "summary": _map_of(_SUMMARY),
        "rows": {
            "type": "array",
            "items": _object(
                {
                    **dict.fromkeys(("id", "split", "nearest"), _TEXT),
                    "nearest_split": {"const": "train"},
                    "distance": _SHARE,
                }
            ),
        },
    },
    closed=False,
)


def _faults(document: Any, form: Draft202012Validator) -> Iterator[str]:
    for error in form.iter_errors(document):
        place = "/".join(map(str, error.absolute_path))
        yield f"{place + ': ' if place else ''}{error.message[:200]}"


def check_document(
    folder: Path, name: str, form: Draft202012Validator, kind: CheckKind, findings: Findings
) -> dict[str, Any] | None:
    """The document of a file; None, with findings, if it has another form."""
    try:
        document = read_json(folder / name)
    except InputError as error:
        if (folder / name).exists():  # otherwise another check reports its absence
            findings.add(kind, name, error.message)
        return None
    faults = list(_faults(document, form))
    for fault in faults:
        findings.add(kind, name, fault)
    return None if faults else document


def check_lines(
    folder: Path, name: str, form: Draft202012Validator, kind: CheckKind, findings: Findings
) -> Iterator[Line]:
    """The well-formed lines of a file, with findings for the others. An empty file has no lines."""
    path = folder / name
    try:
        data = read_data(path) if path.is_file() and path.stat().st_size else b""
        text = data.decode()
    except (InputError, UnicodeDecodeError) as error:
        findings.add(kind, name, str(error))
        return
    for number, line in enumerate(text.splitlines(), 1):
        try:
            document = parse_json(line, path, number)
        except InputError as error:
            findings.add(kind, name, f"line {number}: {error.message}")
            continue
        faults = list(_faults(document, form))
        for fault in faults:
            findings.add(kind, name, f"line {number}: {fault}")
        if not faults:
            yield number, document
