"""Reads the frame of a machine function: the keys of its YAML document.

PyYAML reads all of it but two parts. The body is a text of its own. The registers are
thousands of rows that LLVM prints in one form, which a pattern reads a hundred times as fast;
rows in another form are YAML's again. Values stay text: nothing is a number or a truth value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import yaml

from verilocc_bench.errors import InputError

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_LEFT_OUT = re.compile(r"(['\"]?)(body|registers)\1\s*:(.*)")
_REGISTER_ROW = re.compile(
    r"\s*- *\{ *id: (\d{1,9}), *class: '?([\w-]+)'?((?:[, ].*)?\}.*)", re.ASCII
)
_WHOLE_WAVE = re.compile(r"flags: \[[^][]*\bWWM_REG\b")
_NUMBER = re.compile(r"\d{1,9}", re.ASCII)
_DEPTH = 50
_SHALLOW_CHARACTERS = 20_000
"""A text with fewer characters is not nested so deep that libyaml runs out of stack."""


@dataclass(slots=True)
class RegisterList:
    """Virtual registers by their numbers: their classes, and their lines from 1.

    `whole_wave` has the lines of those with the flag WWM_REG.
    """

    classes: dict[str, str] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    whole_wave: dict[str, int] = field(default_factory=dict)

    def add(self, number: str, class_name: str, line: int) -> None:
        """Adds a register. Raises InputError if it is there."""
        if number in self.classes:
            raise InputError(f"%{number} is described twice", line=line)
        self.classes[number] = class_name
        self.lines[number] = line


@dataclass(frozen=True, slots=True)
class Frame:
    """The keys of the document in `lines[first:last]` of a file, with their values.

    `places` has for each key its own line and the line after its value, counted from 0.
    """

    first: int
    last: int
    values: dict[str, yaml.Node]
    places: dict[str, tuple[int, int]]

    def scalar(self, key: str) -> str:
        """The text of a key's value; empty without the key. Raises InputError for a list."""
        node = self.values.get(key)
        if node is not None and not isinstance(node, yaml.ScalarNode):
            raise InputError(f"expected a word after '{key}:'", line=self.places[key][0] + 1)
        return "" if node is None else str(node.value)

    def settings(self, key: str) -> dict[str, str]:
        """The settings in a key's value; a list is its items with `, ` between them.

        A setting with deeper keys has an empty value. Raises InputError for anything else.
        """
        node = self.values.get(key)
        if node is None or node.value == "":
            return {}
        if not isinstance(node, yaml.MappingNode):
            line = self.places[key][0] + 1
            raise InputError(f"expected keys below '{key}:', not {_shown(node)}", line=line)
        return {name: _text(value) for name, value in _items(node, self.first).items()}

    def has_fixed_stack(self) -> bool:
        """True if there are objects in the list `fixedStack`."""
        node = self.values.get("fixedStack")
        return isinstance(node, yaml.SequenceNode) and bool(node.value)

    def live_ins(self) -> list[str]:
        """The names in the list `liveins`, as `$vgpr0`."""
        node = self.values.get("liveins")
        rows = node.value if isinstance(node, yaml.SequenceNode) else []
        return [_row(row, ("reg",), self.first)["reg"] for row in rows]

    def registers(self, lines: Sequence[str]) -> RegisterList:
        """The list of virtual registers; `lines` are the file's.

        Raises InputError for another form of row.
        """
        node = self.values.get("registers")
        if node is None:
            return RegisterList()
        first = self.first
        if node.value == "":
            printed = self._printed_registers(lines)
            if printed is not None:
                return printed
            first, end = self.places["registers"]
            node = _items(_compose(lines[first:end], first), first)["registers"]
        if not isinstance(node, yaml.SequenceNode):
            line = first + int(node.start_mark.line) + 1
            raise InputError("expected a list after 'registers:'", line=line)
        found = RegisterList()
        for row in node.value:
            values = _row(row, ("id", "class"), first)
            number, line = values["id"], first + int(row.start_mark.line) + 1
            if not _NUMBER.fullmatch(number):
                raise InputError(f"expected a number after 'id:', not {number!r}", line=line)
            found.add(number, values["class"], line)
            if "WWM_REG" in values.get("flags", "").split(", "):
                found.whole_wave[number] = line
        return found

    def _printed_registers(self, lines: Sequence[str]) -> RegisterList | None:
        """The registers in the form in which LLVM prints them; None for another form."""
        found = RegisterList()
        at, end = self.places["registers"]
        while (at := at + 1) < end:
            start, line = at, lines[at]
            while (match := _REGISTER_ROW.fullmatch(line)) is None:
                if line.strip()[:1] in ("", "#"):
                    break
                at += 1  # YAML breaks long rows
                if "}" in line or at == end:
                    return None
                line += " " + lines[at].strip()
            else:
                found.add(match[1], match[2], start + 1)
                if "WWM_REG" in line and _WHOLE_WAVE.search(match[3]):
                    found.whole_wave[match[1]] = start + 1
        return found


def read_frame(lines: Sequence[str], first: int, last: int) -> Frame:
    """The keys of the document in `lines[first:last]`.

    Raises InputError with the line for a document other than a mapping, and for a key that
    stands twice.
    """
    kept = list(lines[first:last])
    for at, line in enumerate(kept):
        if line and not line[0].isspace() and (match := _LEFT_OUT.fullmatch(line)):
            key, value = match[2], match[3].partition("#")[0].strip()
            end = _end_of_value(kept, at + 1, key)
            # Rows that name others, or are named by others, are read with all the rest.
            rows = kept[at + 1 : end]
            if key == "body" or not (value or any("&" in row or "*" in row for row in rows)):
                kept[at + 1 : end] = [""] * len(rows)
    node = _compose(kept, first)
    values = _items(node, first)
    starts = [first + int(key.start_mark.line) for key, _ in node.value]
    places = zip(starts, [*starts[1:], last], strict=True)
    return Frame(first, last, values, dict(zip(values, places, strict=True)))


def _end_of_value(lines: Sequence[str], start: int, key: str) -> int:
    """The line after a key's value: the next that starts without a space and begins no item."""
    for at in range(start, len(lines)):
        start_of_line = lines[at][:1].strip()
        if start_of_line and (key == "body" or start_of_line not in "-#"):
            return at
    return len(lines)


def _compose(lines: Sequence[str], first: int) -> yaml.MappingNode:
    text = "\n".join(lines)
    try:
        if len(text) > _SHALLOW_CHARACTERS:
            _check_depth(text, first)
        node = _node(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first + 1 + (0 if mark is None else mark.line)
        raise InputError(f"expected YAML: {error.problem or error.context}", line=line) from None
    except (yaml.YAMLError, UnicodeError, RecursionError) as error:
        # Characters that YAML does not have.
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"expected YAML: {reason}", line=first + 1) from None
    if not isinstance(node, yaml.MappingNode):
        raise InputError("expected keys such as 'name:'", line=first + 1)
    return node


@lru_cache(maxsize=64)
def _node(text: str) -> yaml.Node | None:
    """A file is read again once one of its functions has an answer; the others stay as they are."""
    found: yaml.Node | None = yaml.compose(text, Loader=_LOADER)
    return found


def _check_depth(text: str, first: int) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > _DEPTH:
                raise InputError(f"nested more than {_DEPTH} deep", line=first + 1)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _items(node: yaml.MappingNode, first: int) -> dict[str, yaml.Node]:
    """The values of a mapping by their keys, each of which stands there once."""
    found: dict[str, yaml.Node] = {}
    for key, value in node.value:
        line = first + int(key.start_mark.line) + 1
        if not isinstance(key, yaml.ScalarNode):
            raise InputError("expected a word as a key", line=line)
        if key.value in found:
            raise InputError(f"the key {str(key.value)[:40]!r} stands twice", line=line)
        found[key.value] = value
    return found


def _row(row: yaml.Node, keys: tuple[str, ...], first: int) -> dict[str, str]:
    """The values of a row, which has these keys."""
    found: dict[str, str] = {}
    if isinstance(row, yaml.MappingNode):
        found = {name: _text(value) for name, value in _items(row, first).items()}
    if not all(found.get(key) for key in keys):
        expected = ", ".join(f"{key}: …" for key in keys)
        raise InputError(
            f"expected '- {{ {expected} }}', not {_shown(row)}",
            line=first + int(row.start_mark.line) + 1,
        )
    return found


def _text(node: yaml.Node) -> str:
    if isinstance(node, yaml.SequenceNode):
        words = [str(item.value) for item in node.value if isinstance(item, yaml.ScalarNode)]
        return ", ".join(words)
    return str(node.value) if isinstance(node, yaml.ScalarNode) else ""


def _shown(node: yaml.Node) -> str:
    return repr(str(node.value)[:60]) if isinstance(node, yaml.ScalarNode) else "other YAML"
