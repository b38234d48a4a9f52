"""Reads LLVM machine IR (MIR) text into machine functions, syntax only.

One pass over the lines, linear in their length. Documents are separated by
`---` and ended by `...`; the first may hold the LLVM IR module, of which the
function attributes are kept. Anything in a function body that is not known
syntax is an error that names the line: nothing is skipped silently.

Limits: bodies must be past PHI elimination (`llc -stop-before=greedy`).
Syntax reference: LLVM's "Machine IR (MIR) Format Reference Manual".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from verilocc_bench.errors import InputError
from verilocc_bench.parse.machine import (
    MachineBlock,
    MachineFunction,
    MachineInstruction,
    MachineModule,
)
from verilocc_bench.parse.mir_instruction import InstructionParser

__all__ = ["parse_mir"]


_BLOCK = re.compile(r"bb\.(\d{1,9})(?:[. ].*)?:", re.ASCII)
_SUCCESSOR = re.compile(r"%bb\.(\d{1,9})(?:\.[^(,]*)?(?:\((?:0x)?[0-9a-fA-F]+\))?", re.ASCII)
_LIVE_IN = re.compile(r"\$(\w+)(?::0x[0-9A-Fa-f]+)?", re.ASCII)
_REGISTER_ROW = re.compile(r"  - \{ id: (\d{1,9}), class: '?([\w-]+)'?[,} ].*", re.ASCII)
_WHOLE_WAVE = re.compile(r"flags: \[[^]]*\bWWM_REG\b")
_INFO = re.compile(r"  (\w+): +'?([^']*)'?", re.ASCII)
_QUOTED_BYTE = re.compile(r"\\(\\|[0-9A-Fa-f]{2})")
_DEFINE = re.compile(r'define\b[^@]*@(?:"((?:[^"\\]|\\.)*)"|([\w.$-]+))\((.*)')
_GROUP = re.compile(r"attributes #(\d+) = \{(.*)\}")
_ATTRIBUTE = re.compile(r'"([^"]*)"(?:="([^"]*)")?')
_ATTRIBUTE_USE = re.compile(r" #(\d+)\b")


def parse_mir(text: str, source: str = "<mir>") -> MachineModule:
    """All machine functions of a MIR file.

    Raises InputError with file and line for anything that is not MIR, is cut
    off, or uses syntax that this parser does not know.
    """
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError("expected MIR text, found binary data", source=source, line=line)
    lines = text.split("\n")
    module = MachineModule()
    for kind, first, last in _documents(lines, source):
        if kind == "ir":
            _parse_ir(lines[first:last], module)
        else:
            function = _FunctionParser(lines, first, last, source).parse()
            if any(function.name == other.name for other in module.functions):
                raise InputError(
                    f"function {function.name!r} occurs twice", source=source, line=first
                )
            module.functions.append(function)
    if not module.functions:
        raise InputError(
            "no machine function found: expected MIR as llc -stop-before=greedy writes it",
            source=source,
            line=len(lines),
        )
    return module


def _documents(lines: list[str], source: str) -> Iterator[tuple[str, int, int]]:
    """Yields (kind, first line, line after the last) of each YAML document."""
    start: int | None = None
    kind = ""
    for index, line in enumerate(lines):
        if start is None:
            if line.startswith("---"):
                rest = line[3:].strip()
                if rest and rest != "|" and not rest.startswith("#"):
                    raise InputError(
                        f"expected '---' or '--- |', not {line[:40]!r}",
                        source=source,
                        line=index + 1,
                    )
                kind, start = ("ir" if rest == "|" else "function"), index + 1
            elif line.strip() and not line.startswith(("#", "%", "...", ";")):
                raise InputError(
                    f"expected the start of a MIR document, '---', not {line[:40]!r}",
                    source=source,
                    line=index + 1,
                )
        elif line.rstrip() == "...":
            yield kind, start, index
            start = None
        elif line.startswith("---"):
            yield kind, start, index
            kind, start = ("ir" if line[3:].strip() == "|" else "function"), index + 1
    if start is not None:
        raise InputError(
            "the file is cut off: expected '...' at the end of the document "
            f"that starts in line {start}",
            source=source,
            line=len(lines),
        )


def _parse_ir(lines: list[str], module: MachineModule) -> None:
    groups: dict[str, dict[str, str]] = {}
    uses: dict[str, str] = {}
    for raw in lines:
        line = raw.strip()
        if line.startswith("define"):
            if match := _DEFINE.match(line):
                uses[match[2] or _unescaped(match[1])] = match[3]
        elif line.startswith("attributes #"):
            if match := _GROUP.match(line):
                groups[match[1]] = {m[1]: m[2] or "" for m in _ATTRIBUTE.finditer(match[2])}
        elif line.startswith("target triple"):
            module.triple = line.partition('"')[2].rstrip('"')
    for name, tail in uses.items():
        own = {m[1]: m[2] or "" for m in _ATTRIBUTE.finditer(tail)}
        for match in _ATTRIBUTE_USE.finditer(tail):
            own |= groups.get(match[1], {})
        module.attributes[name] = own


class _FunctionParser:
    """Parses the document in `lines[first:last]`."""

    def __init__(self, lines: list[str], first: int, last: int, source: str) -> None:
        self.lines, self.first, self.last, self.source = lines, first, last, source
        self.at = first
        self.function = MachineFunction(name="", line=first + 1)
        self.instructions = InstructionParser(self.function, source)

    def error(self, message: str, at: int | None = None) -> InputError:
        line = (self.at if at is None else at) + 1
        return InputError(message, source=self.source, line=line)

    def parse(self) -> MachineFunction:
        section = ""
        saw_body = False
        self.at = self.first
        while self.at < self.last:
            line = self.lines[self.at]
            if line and not line[0].isspace() and line[0] not in "#;":
                section, separator, value = line.partition(":")
                if not separator:
                    raise self.error(f"expected a key such as 'name:', not {line[:40]!r}")
                self.parse_key(section, value.strip())
                if section == "body":
                    if saw_body:
                        raise self.error("the function has a second body")
                    saw_body = True
                    self.at += 1
                    self.parse_body()
                    continue
            elif section == "registers" and line.strip():
                self.parse_register_row(line)
            elif section == "machineFunctionInfo" and (match := _INFO.fullmatch(line.rstrip())):
                self.function.info[match[1]] = match[2]
            self.at += 1
        if not self.function.name:
            raise self.error("expected 'name:' in a machine function", self.first)
        if not saw_body or not self.function.blocks:
            raise self.error(f"function {self.function.name!r} has no body", self.first)
        return self.function

    def parse_key(self, key: str, value: str) -> None:
        if key == "name":
            self.function.name = _yaml_string(value)
        elif key == "isSSA":
            self.function.is_ssa = value == "true"
        elif key == "body" and not value.startswith("|"):
            raise self.error("expected 'body: |'")

    def parse_register_row(self, line: str) -> None:
        first = self.at
        while "}" not in line and self.at + 1 < self.last:  # YAML breaks long rows
            self.at += 1
            line += " " + self.lines[self.at].strip()
        match = _REGISTER_ROW.fullmatch(line)
        if match is None:
            raise self.error(
                f"expected '- {{ id: NUMBER, class: NAME }}', not {line.strip()[:60]!r}", first
            )
        if match[1] in self.function.classes:
            raise self.error(f"%{match[1]} is described twice", first)
        self.function.classes[match[1]] = match[2]
        self.function.class_lines[match[1]] = first + 1
        if _WHOLE_WAVE.search(line):
            self.function.whole_wave[match[1]] = first + 1

    def parse_body(self) -> None:
        block: MachineBlock | None = None
        numbers: set[int] = set()
        while self.at < self.last:
            raw = self.lines[self.at]
            line = raw.strip()
            if line and not raw[0].isspace():
                return  # the next key of the document
            if not line or line[0] in ";#":
                pass
            elif line.startswith("bb.") and (match := _BLOCK.fullmatch(line)):
                block = MachineBlock(int(match[1]), self.at + 1)
                if block.number in numbers:
                    raise self.error(f"block bb.{block.number} occurs twice")
                numbers.add(block.number)
                self.function.blocks.append(block)
            elif block is None:
                raise self.error(f"expected a basic block such as 'bb.0:', not {line[:60]!r}")
            elif line.startswith("successors:"):
                if block.successors is not None or block.instructions:
                    raise self.error("a block names its successors once, before its instructions")
                block.successors = tuple(
                    dict.fromkeys(int(m[1]) for m in self.matches(_SUCCESSOR, line[11:]))
                )
            elif line.startswith("liveins:"):
                block.live_ins += tuple(match[1] for match in self.matches(_LIVE_IN, line[8:]))
            elif line.endswith(" {"):
                block.instructions.append(self.parse_bundle(line))
            else:
                block.instructions.append(self.instructions.parse(line, self.at + 1))
            self.at += 1

    def matches(self, pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
        for part in text.split(","):
            if not part.strip():
                continue
            match = pattern.fullmatch(part.strip())
            if match is None:
                raise self.error(f"unknown syntax {part.strip()[:60]!r}")
            yield match

    def parse_bundle(self, line: str) -> MachineInstruction:
        """The head of a bundle, which carries its members."""
        head = self.instructions.parse(line[:-2], self.at + 1)
        start = self.at
        members: list[MachineInstruction] = []
        self.at += 1
        while self.at < self.last and (text := self.lines[self.at].strip()) != "}":
            if text and text[0] not in ";#":
                members.append(self.instructions.parse(text, self.at + 1))
            self.at += 1
        if self.at == self.last:
            raise self.error("expected '}' at the end of the bundle", start)
        return replace(head, bundled=tuple(members))


def _yaml_string(text: str) -> str:
    if len(text) >= 2 and text[0] == text[-1] == "'":
        return text[1:-1].replace("''", "'")
    return _unescaped(text[1:-1]) if len(text) >= 2 and text[0] == text[-1] == '"' else text


def _unescaped(text: str) -> str:
    r"""LLVM's quoted strings: `\5C` and `\\` are a backslash."""
    return _QUOTED_BYTE.sub(lambda m: "\\" if m[1] == "\\" else chr(int(m[1], 16)), text)
