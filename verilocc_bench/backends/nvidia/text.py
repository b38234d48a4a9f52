"""Reads the output of `nvdisasm -c -hex`: functions, labels, instructions, encodings.

An instruction takes two lines: its text with the low 64 bits, then the high 64
bits. Cost: linear in the text; equal texts of instructions are analysed once.
Limits: only the architectures that `architectures` lists. A line of unknown form raises
InputError, and an operation that the table does not cover raises RejectedKernel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import MappingProxyType

from verilocc_bench.backends.nvidia.architectures import (
    ARCHITECTURES,
    KNOWN,
    VARIABLE_LATENCY,
    Architecture,
)
from verilocc_bench.backends.nvidia.effects import DecodedEffects, effects_of, hidden_pair
from verilocc_bench.backends.nvidia.operands import parse_operand
from verilocc_bench.backends.nvidia.records import SassFunction, SassGuard, SassInstruction
from verilocc_bench.errors import InputError, RejectedKernel

_INSTRUCTION = re.compile(r"\s*/\*([0-9a-f]{4,8})\*/ +([^;]*);\s*/\* 0x([0-9a-f]{16}) \*/\s*")
_HIGH_HALF = re.compile(r"\s*/\* 0x([0-9a-f]{16}) \*/\s*")
_BODY = re.compile(r"(?:@(!?)(U?P)([0-6]|T) +)?([A-Z][A-Z0-9a-z_.]*)(?: +(\S.*))?")
_OPERAND = re.compile(r"(?:\{[^{}]*\}|[^,{])+")
_COMMENT = re.compile(r"\s*\(\*\"([^\"]*)\"\*\)\s*")
_KNOWN_COMMENT = re.compile(r"SpillRefill|BRANCH_TARGETS (?P<table>.*)")
_LABEL = re.compile(r"([.$\w][.$\w]*):")
_TARGET = re.compile(r"\s*\.target\s+(\w+)\s*")
_SECTION = re.compile(r'\s*\.section\s+\.text\.([^",\s]+),"[a-z]+",@progbits\s*')
_REGISTERS = re.compile(r'\s*\.sectioninfo\s+@"SHI_REGISTERS=(\d{1,3})"\s*')
_SIZE = re.compile(r"\s*\.size\s+([^,\s]+),\(([^\s()]+) - ([^\s()]+)\)\s*")
_IGNORED = re.compile(
    r"\s*(?://.*)?|\s*\.(?:elftype|headerflags|sectionflags|align|global|weak|local|type|other)\s.*"
    r"|\s*\.size\s+\.nv\.reservedSmem\.\w+,0x[0-9a-f]+"
)
_INSTRUCTION_BYTES = 16
_CALLS = ("CALL", "RET")


@dataclass(frozen=True, slots=True)
class _Body:
    """The content of an instruction's text, without its place and its encoding."""

    opcode: str
    operands: tuple[str, ...]
    guard: SassGuard | None
    never: bool
    effects: DecodedEffects
    target: str | None
    table: tuple[str, ...]
    variable_latency: bool


@dataclass(slots=True)
class _UnfinishedFunction:
    """A function while its lines are read."""

    name: str
    line: int
    register_count: int | None = None
    instructions: list[SassInstruction] = field(default_factory=list)
    labels: dict[str, int] = field(default_factory=dict)
    ends: list[tuple[str, int]] = field(default_factory=list)


def parse_sass(text: str, source: str = "<disassembly>") -> tuple[SassFunction, ...]:
    """The functions of a disassembly, one for each code section, in the order of the text.

    Raises InputError, with `source` and the line, if the text is not the whole
    output of `nvdisasm -c -hex` for a known architecture, and RejectedKernel (`unknown-opcode`,
    `unknown-operands`) for an instruction with unknown definitions and uses.
    """
    return _SassParser(source).parse(text)


class _SassParser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.number = 0
        self.architecture: Architecture | None = None
        self.section: _UnfinishedFunction | None = None
        self.functions: list[SassFunction] = []
        self.bodies: dict[str, _Body] = {}

    def error(self, message: str, line: int | None = None) -> InputError:
        return InputError(message, source=self.source, line=line or self.number)

    def parse(self, text: str) -> tuple[SassFunction, ...]:
        lines = iter(text.splitlines())
        for line in lines:
            self.number += 1
            match = _INSTRUCTION.fullmatch(line)
            if match is None:
                self.other_line(line)
                continue
            number = self.number
            high = _HIGH_HALF.fullmatch(next(lines, ""))
            self.number += 1
            if high is None:
                raise self.error("expected the high 64 bits of the encoding")
            encoding = int(high[1], 16) << 64 | int(match[3], 16)
            self.instruction(number, int(match[1], 16), match[2], encoding)
        self.finish_section()
        if not self.functions:
            raise self.error("expected a section .text.NAME with a function")
        return tuple(self.functions)

    def instruction(self, line: int, address: int, text: str, encoding: int) -> None:
        section = self.section
        if section is None or self.architecture is None:
            raise self.error("expected a section .text.NAME before an instruction", line)
        expected = len(section.instructions) * _INSTRUCTION_BYTES
        if address != expected:
            raise self.error(f"expected address {expected:#06x}, not {address:#06x}", line)
        body = self.bodies.get(text)
        if body is None:
            body = self.bodies[text] = self.body(text, line, address, section.name)
        effects = body.effects
        uses = effects.uses
        if effects.hidden_bit is not None:
            hidden = hidden_pair(encoding, effects.hidden_bit)
            if hidden is not None:
                uses = (*uses, hidden)
        section.instructions.append(
            SassInstruction(
                address,
                line,
                body.opcode,
                body.operands,
                body.guard,
                body.never,
                effects.definitions,
                uses,
                encoding,
                body.target,
                body.table,
                body.variable_latency,
                effects.destroys,
                self.architecture.name,
            )
        )

    def body(self, text: str, line: int, address: int, function: str) -> _Body:
        """The analysis of an instruction's text, between its address and the semicolon."""
        comment = _COMMENT.search(text)
        table: tuple[str, ...] = ()
        if comment is not None:
            known = _KNOWN_COMMENT.fullmatch(comment[1])
            if comment.end() != len(text) or known is None:
                raise self.error(f"expected the comment SpillRefill, not {comment[0]!r}", line)
            text = text[: comment.start()]
            table = tuple(re.split(r"\s*,\s*", known["table"])) if known["table"] else ()
        match = _BODY.fullmatch(text.strip())
        if match is None:
            raise self.error(f"expected an instruction, not {text.strip()[:60]!r}", line)
        negation, file, index, opcode, rest = match.groups()
        operands: tuple[str, ...] = ()
        if rest:
            parts = _OPERAND.findall(rest) if "{" in rest else rest.split(",")
            operands = tuple(part.strip().replace(".reuse", "") for part in parts)
        try:
            effects = effects_of(opcode, operands)
        except InputError as error:
            raise self.error(error.message, line) from None
        except RejectedKernel as rejected:
            reason = f"{rejected.reason}, at address {address:#06x} of function {function}"
            raise RejectedKernel(rejected.kind, reason) from None
        always = file is None or index == "T"
        target = next((parse_operand(text).label for text in operands if "`" in text), None)
        return _Body(
            opcode,
            operands,
            None if always else SassGuard(file, int(index), bool(negation)),
            index == "T" and bool(negation),
            effects,
            target,
            table,
            self.has_variable_latency(opcode),
        )

    def has_variable_latency(self, opcode: str) -> bool:
        stem = opcode.partition(".")[0]
        assert self.architecture is not None
        return stem in VARIABLE_LATENCY and stem not in self.architecture.fixed_latency

    def other_line(self, line: str) -> None:
        """Reads a label or a directive."""
        if (match := _LABEL.fullmatch(line)) is not None:
            self.label(match[1])
        elif (match := _SECTION.fullmatch(line)) is not None:
            self.start_section(match[1])
        elif (match := _REGISTERS.fullmatch(line)) is not None:
            self.current_section().register_count = int(match[1])
        elif (match := _SIZE.fullmatch(line)) is not None:
            self.current_section().ends.append((match[2], self.number))
        elif (match := _TARGET.fullmatch(line)) is not None:
            self.architecture = ARCHITECTURES.get(match[1].removesuffix("a"))
            if self.architecture is None:
                raise self.error(f"expected .target {KNOWN}, not {match[1]}")
        elif not _IGNORED.fullmatch(line):
            raise self.error(
                f"expected an instruction with its encoding, a label or a directive, "
                f"not {line.strip()[:60]!r}"
            )

    def current_section(self) -> _UnfinishedFunction:
        if self.section is None:
            raise self.error("expected a section .text.NAME first")
        return self.section

    def label(self, name: str) -> None:
        section = self.current_section()
        if name in section.labels:
            raise self.error(f"expected each label once, not {name} again")
        section.labels[name] = len(section.instructions)

    def start_section(self, name: str) -> None:
        self.finish_section()
        if self.architecture is None:
            raise self.error("expected .target before the sections")
        self.section = _UnfinishedFunction(name, self.number)

    def finish_section(self) -> None:
        """Checks that the section is complete, and adds its function."""
        section, self.section = self.section, None
        if section is None:
            return
        assert self.architecture is not None
        if section.register_count is None:
            if self.architecture.prints_register_count:
                raise self.error("expected .sectioninfo with SHI_REGISTERS", section.line)
            section.register_count = 0
        if not section.ends or not section.instructions:
            raise self.error("expected a function with a .size and instructions", section.line)
        for label, line in section.ends:
            if label not in section.labels:
                raise self.error(f"expected the label {label} that ends the function", line)
        if max(section.labels[label] for label, _ in section.ends) != len(section.instructions):
            raise self.error("expected no instruction after the end that .size names")
        for instruction in section.instructions:
            named = [*instruction.table]
            if instruction.target is not None and not instruction.opcode.startswith(_CALLS):
                named.append(instruction.target)
            for label in named:
                if label not in section.labels:
                    message = f"expected the label {label}, which is missing"
                    raise self.error(message, instruction.line)
        self.functions.append(
            SassFunction(
                section.name,
                tuple(section.instructions),
                MappingProxyType(section.labels),
                section.register_count,
                self.architecture.name,
            )
        )
