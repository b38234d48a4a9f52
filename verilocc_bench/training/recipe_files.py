"""Recipe files: YAML that is read into dataclasses and checked against their types."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import yaml

from verilocc_bench.errors import InputError
from verilocc_bench.files import read_text

Document = TypeVar("Document")

LIMIT_BYTES = 256 << 10
NODES = 10_000
"""A recipe may have this many values at most; those in this package have about 100."""

WHOLE = "the recipe"
NAMES_OF_TYPES = {
    str: "a text",
    int: "a whole number",
    float: "a number such as 0.1 or 1.0e-3",
    bool: "true or false",
}


def read_document(kind: type[Document], path: Path) -> Document:
    """Reads a dataclass of recipes from a YAML file. An InputError names the file and the place."""
    text = read_text(path, LIMIT_BYTES)
    if text.count("[") + text.count("{") > NODES:  # its parser takes minutes to refuse these
        raise InputError(f"more than {NODES:,} brackets", source=str(path))
    try:
        nodes = _expanded_nodes(yaml.compose(text, yaml.SafeLoader), {})
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"not YAML: {reason}", source=str(path)) from None
    except RecursionError:
        raise InputError("YAML nested too deeply", source=str(path)) from None
    if nodes > NODES:
        raise InputError(f"more than {NODES:,} values, its aliases followed", source=str(path))
    try:
        found = _read(kind, document, WHOLE)
    except InputError as error:
        raise error.located(str(path)) from None
    assert isinstance(found, kind)
    return found


def _expanded_nodes(node: yaml.Node | None, known: dict[int, int]) -> int:
    """The number of values of a document with all aliases expanded.

    `known` holds the counts found so far, by the identity of the node. Raises
    RecursionError if an alias contains itself.
    """
    if node is None:
        return 0
    if id(node) not in known:
        children: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            children = node.value
        elif isinstance(node, yaml.MappingNode):
            children = [each for pair in node.value for each in pair]
        known[id(node)] = 1 + sum(_expanded_nodes(child, known) for child in children)
    return known[id(node)]


def _read(kind: Any, value: Any, place: str) -> Any:
    """A checked value of the type `kind`: a dataclass, a tuple, a mapping or a plain type."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in get_args(kind):
            return None
        (kind,) = (each for each in get_args(kind) if each is not type(None))
        return _read(kind, value, place)
    if dataclasses.is_dataclass(kind):
        return _read_fields(kind, value, place)
    if origin is tuple:
        if not isinstance(value, list):
            raise InputError(f"{place}: expected a list")
        inner = get_args(kind)[0]
        return tuple(_read(inner, each, f"{place} {n}") for n, each in enumerate(value, 1))
    if origin is not None:  # a mapping
        if not isinstance(value, dict):
            raise InputError(f"{place}: expected names and values")
        # JSON cannot hold some values, such as YAML's dates.
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise InputError(f"{place}: expected what JSON can say ({error})") from None
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        expected = NAMES_OF_TYPES.get(kind, str(kind))
        raise InputError(f"{place}: expected {expected}, not {str(value)[:40]!r}")
    if kind is float and not math.isfinite(value):
        raise InputError(f"{place}: expected a finite number")
    return value


def _read_fields(kind: Any, value: Any, place: str) -> Any:
    if not isinstance(value, dict):
        raise InputError(f"{place}: expected names and values")
    types_of = get_type_hints(kind)
    known = {each.name: each for each in dataclasses.fields(kind)}
    for name in value:
        if name not in known:
            raise InputError(f"{place}: unknown key {name!r}; known: {', '.join(known)}")
    for name, each in known.items():
        missing = dataclasses.MISSING
        if name not in value and each.default is missing and each.default_factory is missing:
            raise InputError(f"{place}: {name!r} is missing")
    inner = "" if place == WHOLE else f"{place}: "
    values = {name: _read(types_of[name], value[name], f"{inner}{name}") for name in value}
    try:
        return kind(**values)
    except InputError as error:
        if error.message.startswith(inner):
            raise
        raise InputError(f"{inner}{error.message}") from None
