"""Edits as JSON: `{"new": {…}, "insert": […], "replace": […]}`. Cost: linear."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from verilocc_bench.edits.records import (
    At,
    EditKind,
    Edits,
    Insertion,
    OnEdge,
    RegisterSpan,
    Replacement,
    SlotSpan,
    Transfer,
)
from verilocc_bench.errors import InputError

MAXIMUM_EDITS = 1_000_000
"""More than the instructions of any kernel; a longer list is damaged."""

_T = TypeVar("_T")

_REGISTER = re.compile(r"%(0|[1-9]\d{0,8})(?:\.(\d{1,3})(?:-(\d{1,3}))?)?", re.ASCII)
_NAME = re.compile(r"%(0|[1-9]\d{0,8})", re.ASCII)
_SLOT = re.compile(r"slot(0|[1-9]\d{0,5})(?:-(\d{1,6}))?", re.ASCII)


def parse_edits(document: Any) -> Edits:
    """The edits of a decoded answer. Raises InputError that names the wrong entry."""
    if not isinstance(document, dict):
        raise InputError("expected an object as 'edits'")
    if unknown := sorted(document.keys() - {"new", "insert", "replace"}):
        raise InputError(f"unknown key {unknown[0][:40]!r} in the edits")
    new = document.get("new", {})
    if not isinstance(new, dict) or len(new) > MAXIMUM_EDITS:
        raise InputError("expected an object of virtual registers and classes as 'new'")
    classes: dict[int, str] = {}
    for name, spelled in new.items():
        match = _NAME.fullmatch(name)
        if match is None or not isinstance(spelled, str):
            raise InputError(
                f"expected a virtual register and its class in 'new', not {name!r:.40}"
            )
        classes[int(match[1])] = spelled
    return Edits(
        classes,
        tuple(_entries(document, "insert", _insertion)),
        tuple(_entries(document, "replace", _replacement)),
    )


def _entries(document: dict[str, Any], key: str, parse: Callable[[Any], _T]) -> list[_T]:
    entries = document.get(key, [])
    if not isinstance(entries, list) or len(entries) > MAXIMUM_EDITS:
        raise InputError(f"expected a list as '{key}' of the edits")
    found: list[_T] = []
    for number, entry in enumerate(entries):
        try:
            found.append(parse(entry))
        except InputError as error:
            raise InputError(f"entry {number} of '{key}' in the edits: {error.message}") from None
    return found


def _insertion(entry: Any) -> Insertion:
    kinds = {kind.value for kind in EditKind}
    named = sorted(entry.keys() - {"at"}) if isinstance(entry, dict) else []
    if len(named) != 1 or named[0] not in kinds or "at" not in entry:
        raise InputError(f"expected an object with 'at' and one of {', '.join(sorted(kinds))}")
    kind = EditKind(named[0])
    pairs = entry[kind.value] if kind is EditKind.MOVE else [entry[kind.value]]
    if not isinstance(pairs, list) or not pairs:
        raise InputError("expected a list of pairs [destination, source]")
    return Insertion(_where(entry["at"]), kind, tuple(_transfer(kind, pair) for pair in pairs))


def _where(value: Any) -> At | OnEdge:
    if isinstance(value, dict) and value.keys() == {"edge"}:
        return OnEdge(*_numbers(value["edge"], "edge", 2))
    return At(*_numbers(value, "at", 2))


def _numbers(value: Any, what: str, count: int) -> list[int]:
    if (
        not isinstance(value, list)
        or len(value) != count
        or not all(type(number) is int and 0 <= number < MAXIMUM_EDITS for number in value)
    ):
        raise InputError(f"expected {count} numbers as '{what}', not {value!r:.40}")
    return value


def _transfer(kind: EditKind, pair: Any) -> Transfer:
    if not isinstance(pair, list) or len(pair) != 2:
        raise InputError(f"expected a pair [destination, source], not {pair!r:.40}")
    if kind is EditKind.SPILL:
        return Transfer(_slot(pair[0]), _register(pair[1]))
    destination = _register(pair[0])
    if kind is EditKind.RELOAD:
        return Transfer(destination, _slot(pair[1]))
    if kind is EditKind.REMATERIALIZE:
        return Transfer(destination, At(*_numbers(pair[1], "rematerialize", 2)))
    return Transfer(destination, _register(pair[1]))


def _register(value: Any) -> RegisterSpan:
    match = _REGISTER.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise InputError(f"expected a virtual register such as %900 or %900.1, not {value!r:.40}")
    if match[2] is None:
        return RegisterSpan(int(match[1]))
    return RegisterSpan(int(match[1]), int(match[2]), int(match[3] or match[2]))


def _slot(value: Any) -> SlotSpan:
    match = _SLOT.fullmatch(value) if isinstance(value, str) else None
    if match is None or (match[2] is not None and int(match[2]) <= int(match[1])):
        raise InputError(f"expected a spill slot such as slot0 or slot0-3, not {value!r:.40}")
    first = int(match[1])
    return SlotSpan(first, int(match[2] or first) - first + 1)


def _replacement(entry: Any) -> Replacement:
    if not isinstance(entry, list) or len(entry) != 4:
        raise InputError("expected [block, instruction, operand, register]")
    operand = -1 if entry[2] == "guard" else _numbers(entry[2:3], "operand", 1)[0]
    block, index = _numbers(entry[:2], "replace", 2)
    return Replacement(block, index, operand, _register(entry[3]))


def edits_to_json(edits: Edits) -> dict[str, Any]:
    """The inverse of parse_edits; leaves out empty parts."""
    document: dict[str, Any] = {}
    if edits.new:
        document["new"] = {f"%{number}": name for number, name in sorted(edits.new.items())}
    if edits.insertions:
        document["insert"] = [_insertion_json(insertion) for insertion in edits.insertions]
    if edits.replacements:
        document["replace"] = [
            [r.block, r.index, "guard" if r.operand < 0 else r.operand, str(r.span)]
            for r in edits.replacements
        ]
    return document


def _insertion_json(insertion: Insertion) -> dict[str, Any]:
    where = insertion.where
    at: Any = (
        [where.block, where.index]
        if isinstance(where, At)
        else {"edge": [where.source, where.target]}
    )
    pairs: list[Any] = [
        [
            str(transfer.destination),
            [transfer.source.block, transfer.source.index]
            if isinstance(transfer.source, At)
            else str(transfer.source),
        ]
        for transfer in insertion.transfers
    ]
    return {"at": at, insertion.kind.value: pairs if insertion.kind is EditKind.MOVE else pairs[0]}
