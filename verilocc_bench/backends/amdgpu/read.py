"""Reads LLVM machine IR (MIR) text into machine functions, syntax only.

One pass over the lines, linear in their length. Documents begin with `---` and
end with `...`. One of them may hold the LLVM IR module, of which `mir_module`
reads the parts that allocation depends on; the others are machine functions, or
empty. Unknown syntax in a function body is an error that names the line; nothing
is skipped silently.

Limits: bodies must be past PHI elimination (`llc -stop-before=greedy`).
Syntax reference: LLVM's "Machine IR (MIR) Format Reference Manual".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from verilocc_bench.backends.amdgpu.machine import (
    MachineBlock,
    MachineFunction,
    MachineInstruction,
    MachineModule,
)
from verilocc_bench.backends.amdgpu.mir_instruction import InstructionParser
from verilocc_bench.backends.amdgpu.mir_module import read_module
from verilocc_bench.backends.amdgpu.mir_yaml import read_scalar, read_settings
from verilocc_bench.errors import InputError

_BLOCK = re.compile(r"bb\.(\d{1,9})(?:[. ].*)?:", re.ASCII)
_SUCCESSOR = re.compile(r"%bb\.(\d{1,9})(?:\.[^(,]*)?(?:\((?:0x)?[0-9a-fA-F]+\))?", re.ASCII)
_LIVE_IN = re.compile(r"\$(\w+)(?::0x[0-9A-Fa-f]+)?", re.ASCII)
_REGISTER_ROW = re.compile(r"\s*- *\{ *id: (\d{1,9}), *class: '?([\w-]+)'?[,} ].*", re.ASCII)
_WHOLE_WAVE = re.compile(r"flags: \[[^]]*\bWWM_REG\b")


def parse_mir(text: str, source: str = "<mir>", function: str | None = None) -> MachineModule:
    """All machine functions of a MIR file, or the one of that name alone.

    Raises InputError with file and line for a text that is not MIR, is cut off, or
    uses syntax that this parser does not know. With `function`, only that
    function's body is read.
    """
    file = MirFile(text, source)
    names = file.names if function is None else (function,)
    file.module.functions.extend(file.function(name) for name in names)
    return file.module


class MirFile:
    """A MIR file cut into its documents; functions are parsed one by one.

    `module` has the contents of its LLVM IR, and no functions. Raises InputError if
    the text is not a MIR file.
    """

    def __init__(self, text: str, source: str = "<mir>") -> None:
        if "\0" in text:
            line = text.count("\n", 0, text.index("\0")) + 1
            raise InputError("expected MIR text, found binary data", source=source, line=line)
        self.lines = text.split("\n")
        self.source = source
        self.module = MachineModule()
        self._places: dict[str, tuple[int, int]] = {}
        has_ir = False
        for kind, first, last in _documents(self.lines, source):
            if kind == "ir":
                has_ir = True
                read_module(self.lines[first:last], self.module)
            elif any(line.strip() and line[0] != "#" for line in self.lines[first:last]):
                self._add(first, last)
        if not self._places:
            only = ", only LLVM IR" if has_ir else ""
            raise InputError(
                f"no machine function found{only}: "
                "expected MIR as llc -stop-before=greedy writes it",
                source=source,
                line=len(self.lines),
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions, in the order of the text."""
        return tuple(self._places)

    def function(self, name: str | None = None) -> MachineFunction:
        """The function of that name, or the only one.

        Raises InputError if there is none or more than one, or for unknown syntax.
        """
        names = ", ".join(self._places)
        if name is None:
            if len(self._places) > 1:
                raise InputError(
                    "the file has several functions, choose one with --function "
                    f"(normalize --list says which can be read): {names}",
                    source=self.source,
                )
            name = self.names[0]
        elif name not in self._places:
            raise InputError(
                f"there is no function {name!r}; there are {names}", source=self.source
            )
        first, last = self._places[name]
        return _FunctionParser(self.lines, first, last, self.source).parse()

    def _add(self, first: int, last: int) -> None:
        for line in self.lines[first:last]:
            if line.startswith("name:"):
                name = read_scalar(line[5:])
                break
        else:
            name = ""  # parsing the function reports the missing name
        if name in self._places:
            raise InputError(f"function {name!r} occurs twice", source=self.source, line=first)
        self._places[name] = (first, last)


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
            elif section == "registers" and line.strip() and line.strip()[0] != "#":
                self.parse_register_row(line)
            self.at += 1
        if not self.function.name:
            raise self.error("expected 'name:' in a machine function", self.first)
        if not saw_body or not self.function.blocks:
            raise self.error(f"function {self.function.name!r} has no body", self.first)
        return self.function

    def parse_key(self, key: str, value: str) -> None:
        if key == "name":
            self.function.name = read_scalar(value)
        elif key == "isSSA":
            self.function.is_ssa = read_scalar(value) == "true"
        elif key == "noVRegs":
            self.function.no_virtual_registers = read_scalar(value) == "true"
        elif key == "machineFunctionInfo":
            self.function.info = self.settings(value)
        elif key == "frameInfo":
            alignment = self.settings(value).get("maxAlignment", "")
            self.function.stack_alignment = int(alignment) if alignment.isdecimal() else 1
        elif key == "fixedStack":
            self.function.has_fixed_stack = read_scalar(value) != "[]"
        elif key == "body" and not value.startswith("|"):
            raise self.error("expected 'body: |'")

    def settings(self, value: str) -> dict[str, str]:
        rows = []
        for line in self.lines[self.at + 1 : self.last]:
            if line and not line[0].isspace() and line[0] != "#":
                break
            rows.append(line)
        try:
            return read_settings(value, rows)
        except InputError as error:
            raise error.located(self.source, self.at + 1) from None

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
            if ";" in line and '"' not in line and not _BLOCK.fullmatch(line):
                line = line.partition(";")[0].rstrip()
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
        """The head of a bundle, with its members."""
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
