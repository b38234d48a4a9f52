"""Reads the subset of YAML in the head of a machine function.

It has scalars, lists of scalars, and one level of keys, as LLVM prints them and
people write them by hand. Deeper levels are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from verilocc_bench.errors import InputError

_ESCAPE = re.compile(r"\\(x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U00[01][0-9A-Fa-f]{5}|.)")
_ESCAPED = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_COMMENT = re.compile(r"(?:^|\s)#.*")
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(?:#.*)?')
_SINGLE_QUOTED = re.compile(r"'((?:[^']|'')*)'\s*(?:#.*)?")
_SETTING = re.compile(r"(\w+):(?:\s+(.*))?", re.ASCII)
_ITEM = re.compile(r"(?:'(?:[^']|'')*'|\"(?:[^\"\\]|\\.)*\"|[^\s,'\"\[\]{}][^,'\"\[\]{}]*)")


def read_scalar(text: str) -> str:
    """The value of a scalar: plain, or in either kind of quotes; a comment may follow."""
    text = text.strip()
    if match := _SINGLE_QUOTED.fullmatch(text):
        return match[1].replace("''", "'")
    if match := _DOUBLE_QUOTED.fullmatch(text):
        plain = _ESCAPE.sub(lambda m: _character(m[1]), match[1])
        return plain.encode("utf-8", "replace").decode()
    return _COMMENT.sub("", text).strip()


def read_settings(value: str, rows: Sequence[str]) -> dict[str, str]:
    """The keys of a mapping with their values; a list is its items with `, ` between them.

    `value` is the rest of the line of the mapping's own key, and `rows` are the
    lines below it. A key with deeper keys below it has an empty value. Raises
    InputError for anything else; its line counts from the first row.
    """
    text = _COMMENT.sub("", value).strip()
    if text:
        return _flow_settings(text)
    settings: dict[str, str] = {}
    indentation: int | None = None
    key = ""
    for number, row in enumerate(rows, start=1):
        content = row.strip()
        if not content or content[0] == "#":
            continue
        depth = len(row) - len(row.lstrip())
        if indentation is None:
            indentation = depth
        if content.startswith("- ") and key:
            item = read_scalar(content[2:])
            settings[key] = f"{settings[key]}, {item}" if settings[key] else item
        elif depth > indentation:
            continue
        elif (match := _SETTING.fullmatch(content)) and depth == indentation:
            key = match[1]
            settings[key] = _value(match[2] or "", number)
        else:
            raise InputError(f"expected 'key: value', not {content[:60]!r}", line=number)
    return settings


def _value(text: str, line: int) -> str:
    if not text.startswith("["):
        return read_scalar(text)
    items = _COMMENT.sub("", text).strip()
    if not items.endswith("]"):
        raise InputError(f"expected a list in one line, not {text[:60]!r}", line=line)
    return ", ".join(read_scalar(item) for item in _ITEM.findall(items))


def _flow_settings(text: str) -> dict[str, str]:
    if not (text.startswith("{") and text.endswith("}")):
        raise InputError(f"expected keys in the lines below, not {text[:60]!r}", line=0)
    settings: dict[str, str] = {}
    for part in text[1:-1].split(","):
        if not part.strip():
            continue
        match = _SETTING.fullmatch(part.strip())
        if match is None or "{" in part or "[" in part:
            raise InputError(f"expected 'key: value', not {part.strip()[:60]!r}", line=0)
        settings[match[1]] = read_scalar(match[2] or "")
    return settings


def _character(escape: str) -> str:
    if len(escape) == 1:
        return _ESCAPED.get(escape, escape)
    return chr(min(int(escape[1:], 16), 0x10FFFF))
