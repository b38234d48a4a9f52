"""Reads the LLVM IR in a MIR file: the attributes and calling convention of each function.

A definition may span several lines. The rest of the IR is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from verilocc_bench.backends.amdgpu.machine import MachineModule

_QUOTED_BYTE = re.compile(rb"\\(\\|[0-9A-Fa-f]{2})")
_DEFINE = re.compile(r'define\b([^@]*)@(?:"((?:[^"\\]|\\.)*)"|([\w.$-]+))\s*\((.*)')
_BODY_START = re.compile(r"\{\s*(?:;.*)?$")
_GROUP_END = re.compile(r"\}\s*(?:;.*)?$")
_GROUP = re.compile(r"attributes #(\d+) = \{(.*)\}.*")
_ATTRIBUTE = re.compile(r'"([^"]*)"(?:="([^"]*)")?')
_ATTRIBUTE_USE = re.compile(r" #(\d+)\b")
_CALLING_CONVENTION = re.compile(r"(?:amdgpu|spir)_\w+|\w+cc|cc ?\d+")


def read_module(lines: Sequence[str], module: MachineModule) -> None:
    """Adds the attributes and calling conventions in the lines of LLVM IR to `module`."""
    groups: dict[str, dict[str, str]] = {}
    tails: dict[str, str] = {}
    for line in _statements(lines):
        if match := _DEFINE.fullmatch(line):
            name = match[3] if match[2] is None else unescaped(match[2])
            tails[name] = match[4]
            found = (word for word in match[1].split() if _CALLING_CONVENTION.fullmatch(word))
            module.calling_conventions[name] = next(found, "ccc")
        elif match := _GROUP.fullmatch(line):
            groups[match[1]] = {m[1]: m[2] or "" for m in _ATTRIBUTE.finditer(match[2])}
        elif line.startswith("target triple"):
            module.triple = line.partition('"')[2].partition('"')[0]
    for name, tail in tails.items():
        own = {m[1]: m[2] or "" for m in _ATTRIBUTE.finditer(tail)}
        for match in _ATTRIBUTE_USE.finditer(tail):
            own |= groups.get(match[1], {})
        module.attributes[name] = own


def _statements(lines: Sequence[str]) -> Iterator[str]:
    """The stripped lines; a definition up to its body, or an attribute group, is one item."""
    pending: list[str] = []
    end = _BODY_START
    for raw in lines:
        line = raw.strip()
        if not pending and line.startswith(("define", "attributes #")):
            end = _BODY_START if line.startswith("define") else _GROUP_END
        elif not pending:
            yield line
            continue
        pending.append(line)
        if end.search(line):
            yield " ".join(pending)
            pending = []
    if pending:
        yield " ".join(pending)


def unescaped(text: str) -> str:
    r"""LLVM's quoted strings: `\5C` and `\\` are a backslash; the bytes are UTF-8."""
    data = _QUOTED_BYTE.sub(
        lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 16)]), text.encode()
    )
    return data.decode(errors="replace")
