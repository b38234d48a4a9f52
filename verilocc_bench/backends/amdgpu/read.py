"""Reads LLVM machine IR (MIR) text into machine functions, syntax only.

One pass over the lines, linear in their length. Documents begin with `---` and
end with `...`, the next `---`, or the file. One of them may hold the LLVM IR module, of
which `mir_module` reads the parts that allocation depends on; the others are machine
functions, whose keys `mir_yaml` reads, or empty. Unknown syntax in a function body is an
error that names the line. Triton appends its scheduling graph to the machine IR that it
dumps; nothing else is skipped.

Limits: bodies must be past PHI elimination (`llc -stop-before=greedy`).
Syntax reference: LLVM's "Machine IR (MIR) Format Reference Manual".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from verilocc_bench.backends.amdgpu.machine import (
    MachineBlock,
    MachineFunction,
    MachineInstruction,
    MachineModule,
)
from verilocc_bench.backends.amdgpu.mir_instruction import InstructionParser
from verilocc_bench.backends.amdgpu.mir_module import read_module
from verilocc_bench.backends.amdgpu.mir_text import falls_through
from verilocc_bench.backends.amdgpu.mir_yaml import Frame, read_frame
from verilocc_bench.errors import InputError

_BLOCK = re.compile(r"bb\.(\d{1,9})(?:[. ].*)?:", re.ASCII)
_SUCCESSOR = re.compile(r"%bb\.(\d{1,9})(?:\.[^(,]*)?(?:\((?:0x)?[0-9a-fA-F]+\))?", re.ASCII)
_LIVE_IN = re.compile(r"\$(\w+)(?::0x[0-9A-Fa-f]+)?", re.ASCII)
_BODY = re.compile(r"[^|:]*:\s*(?:&\S{1,99}\s+)?\|[-+0-9]*\s*(?:#.*)?")
_GRAPH = "========== SCHEDULING DAG"
"""The first line of what Triton writes below machine IR (TRITON_DUMP_MIR)."""


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
        self._frames: dict[str, Frame] = {}
        self._open_end: int | None = None
        has_ir = False
        for kind, first, last in _documents(self.lines, source):
            if kind == "ir":
                has_ir = True
                read_module(self.lines[first:last], self.module)
            elif kind == "graph":
                self.module.is_triton_dump = True
            elif any(line.strip() and line[0] != "#" for line in self.lines[first:last]):
                if kind == "open":
                    self._open_end = last
                self._add(first, last)
        if not self._frames:
            only = ", only LLVM IR" if has_ir else ""
            raise InputError(
                f"no machine function found{only}: "
                "expected MIR as llc -stop-before=greedy writes it",
                source=source,
                line=len(self.lines),
            )

    @property
    def frames(self) -> Mapping[str, Frame]:
        """The keys of each function, in the order of the text."""
        return self._frames

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions, in the order of the text."""
        return tuple(self._frames)

    def function(self, name: str | None = None) -> MachineFunction:
        """The function of that name, or the only one.

        Raises InputError unless there is exactly one, and for unknown syntax.
        """
        names = ", ".join(self._frames)
        if name is None:
            if len(self._frames) > 1:
                raise InputError(
                    "the file has several functions, choose one with --function "
                    f"(normalize --list says which can be read): {names}",
                    source=self.source,
                )
            name = self.names[0]
        elif name not in self._frames:
            raise InputError(
                f"there is no function {name!r}; there are {names}", source=self.source
            )
        frame = self._frames[name]
        try:
            machine = _FunctionParser(self.lines, frame, self.source).parse()
        except InputError as error:
            raise self._located(error, frame.first, frame.last) from None
        if frame.last == self._open_end and falls_through(machine.blocks[-1]):
            raise self._cut_off(frame.first)
        return machine

    def _add(self, first: int, last: int) -> None:
        try:
            frame = read_frame(self.lines, first, last)
            name = frame.scalar("name")  # parsing the function reports a missing name
        except InputError as error:
            raise self._located(error, first, last) from None
        if name in self._frames:
            raise InputError(f"function {name!r} occurs twice", source=self.source, line=first)
        self._frames[name] = frame

    def _located(self, error: InputError, first: int, last: int) -> InputError:
        """An error in a document, with its file; in the last line of an open one it is cut off."""
        is_open = last == self._open_end
        if is_open and error.line and not any(map(str.strip, self.lines[error.line :])):
            return self._cut_off(first)
        return error.located(self.source)

    def _cut_off(self, first: int) -> InputError:
        return InputError(
            "the file is cut off: expected '...' at the end of the document "
            f"that starts in line {first}",
            source=self.source,
            line=len(self.lines),
        )


def _documents(lines: list[str], source: str) -> Iterator[tuple[str, int, int]]:
    """Yields (kind, first line, line after the last) of each YAML document.

    The kinds are `ir`, `function`, `graph` for Triton's graph, and `open` for a function
    whose end is the file's.
    """
    start: int | None = None
    kind = ""
    for index, line in enumerate(lines):
        if start is not None and not line.startswith(("---", "...", _GRAPH)):
            continue
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
        elif line.startswith(_GRAPH) and not any(map(str.strip, lines[start:index])):
            kind = "graph"
        elif line.rstrip() == "...":
            yield kind, start, index
            start = None
        elif line.startswith("---"):
            yield kind, start, index
            kind, start = ("ir" if line[3:].strip() == "|" else "function"), index + 1
    if start is not None and kind != "ir":
        yield ("open" if kind == "function" else kind), start, len(lines)
    elif start is not None:
        raise InputError(
            "the file is cut off: expected '...' at the end of the document "
            f"that starts in line {start}",
            source=source,
            line=len(lines),
        )


class _FunctionParser:
    """Parses the document of a frame."""

    def __init__(self, lines: list[str], frame: Frame, source: str) -> None:
        self.lines, self.frame, self.source = lines, frame, source
        self.at = frame.first
        self.function = MachineFunction(frame.scalar("name"), frame.first + 1, frame)
        self.instructions = InstructionParser(self.function, source)

    def error(self, message: str, at: int | None = None) -> InputError:
        line = (self.at if at is None else at) + 1
        return InputError(message, source=self.source, line=line)

    def parse(self) -> MachineFunction:
        frame, function = self.frame, self.function
        if not function.name:
            raise self.error("expected 'name:' in a machine function", frame.first)
        function.is_ssa = frame.scalar("isSSA") == "true"
        if "noVRegs" in frame.values:
            function.no_virtual_registers = frame.scalar("noVRegs") == "true"
        function.info = frame.settings("machineFunctionInfo")
        alignment = frame.settings("frameInfo").get("maxAlignment", "")
        function.stack_alignment = int(alignment[:18]) if alignment.isdecimal() else 1
        function.has_fixed_stack = frame.has_fixed_stack()
        registers = frame.registers(self.lines)
        function.classes, function.class_lines = registers.classes, registers.lines
        function.whole_wave = registers.whole_wave
        self.at, self.last = frame.places.get("body", (frame.last, frame.last))
        if self.at < self.last:
            if not _BODY.fullmatch(self.lines[self.at]):
                raise self.error("expected 'body: |'")
            self.at += 1
            self.parse_body()
        if not function.blocks:
            raise self.error(f"function {function.name!r} has no body", frame.first)
        return function

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
