"""Reads the body of a machine function from LLVM's printed text, apart from `read`.

`mir_gate` compares a normalized text with it, so it shares no code with the parser of
instructions and with `normalize`. The body must have passed that parser: nothing is
refused here but what has no opcode. Each spelling of an operand is read once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits
from verilocc_bench.targets.amdgpu_instructions import early_clobbers

_HEAD = re.compile(r"bb\.(\d+)\b")
_NUMBERED_BLOCK = re.compile(r"%bb\.(\d+)")
_QUOTED = re.compile(r'"[^"]*"')
_TAIL = re.compile(
    r" ::.*| ?/\*.*?\*/|,? (?:debug-location|debug-instr-number|heap-alloc-marker|pcsections|mmra"
    r"|cfi-type|pre-instr-symbol|post-instr-symbol|deactivation-symbol) .*|\s*;.*"
)
_WORDS = re.compile(r"(?:[a-z][a-z-]* )*([A-Z]\w*)(?: (.*))?")
_OPERAND = re.compile(
    r"(?P<flags>(?:[a-z][a-z-]* )*)(?P<kind>[%$])(?P<name>[\w$-]+)(?:\.(?P<lanes>\w+))?(?::\w+)?"
    r"(?P<ends>(?:\([^()]*\))*)"
)
_BLOCK_OR_OBJECT = re.compile(r"%(?:bb|stack|fixed-stack|const|jump-table|ir|ir-block|subreg)\b.*")
_COMMA = re.compile(r", (?![^(<]*[)>])")
_TIE = re.compile(r"\(tied-def (\d+)\)")
_NO_CODE = re.compile(r"DBG_\w+|CFI_INSTRUCTION|PSEUDO_PROBE|LIFETIME_(START|END)")
_UNIT = re.compile(r"([vas])gpr(\d+)")
_SCALARS = 102  # a name beyond s101 is outside allocation
_VCC = {"vcc": (0, 2), "vcc_lo": (0, 1), "vcc_hi": (1, 1)}


@dataclass(frozen=True, slots=True, eq=False)
class PrintedRegister:
    """A register operand as printed. `tied` counts all operands of the instruction."""

    name: str
    virtual: bool
    lanes: tuple[int, int] | None
    half: bool
    defined: bool
    undef: bool
    early: bool
    implicit: bool
    internal: bool
    tied: int | None


PlacedRegister = tuple[int, PrintedRegister]
"""A register with its place among all operands of its instruction."""


@dataclass(frozen=True, slots=True)
class PrintedInstruction:
    """An instruction as printed, with the blocks and the register mask that it names."""

    number: int
    opcode: str
    registers: tuple[PlacedRegister, ...]
    targets: tuple[int, ...]
    mask: str = ""
    members: tuple[PrintedInstruction, ...] = ()


@dataclass(slots=True)
class PrintedBlock:
    """A block with the line of its head; `successors` is None if the text does not name them."""

    number: int
    line: int
    lines: list[PrintedInstruction]
    successors: tuple[int, ...] | None = None
    live_ins: tuple[str, ...] = ()


@cache
def physical_units(name: str) -> FixedUnits | None:
    """The units of a physical register by LLVM's name of it; None outside allocation."""
    name = name.removesuffix("_lo16").removesuffix("_hi16")
    if name in _VCC:
        return FixedUnits("vcc", *_VCC[name])
    units = [_UNIT.fullmatch(part) for part in name.split("_")]
    first = units[0]
    if first is None or (first[1] == "s" and int(first[2]) >= _SCALARS):
        return None
    return FixedUnits(first[1], int(first[2]), len(units))


@cache
def _lanes(name: str) -> tuple[int, int, bool]:
    """(first lane, lanes, True for half a lane) of a sub-register index by its spelling."""
    lanes: list[int] = []
    lane = halves = 0
    for part in name.split("_"):
        if part.startswith("sub"):
            lane = int(part[3:])
        else:
            halves += 1
        lanes.append(lane)
    count = len(set(lanes))
    return min(lanes), count, halves == 1


class BodyReader:
    """Reads the lines of a body, which begins with the head of a block at `lines[first]`."""

    def __init__(self, lines: Sequence[str], first: int) -> None:
        self._lines, self._at = lines, first
        self._known: dict[str, PrintedRegister | int | str | None] = {}

    def blocks(self) -> list[PrintedBlock]:
        """The blocks, without debug and unwind notes."""
        found: list[PrintedBlock] = []
        while self._at < len(self._lines):
            raw = self._lines[self._at]
            line = raw.strip()
            if line and not raw[0].isspace():
                break
            if head := _HEAD.match(line):
                found.append(PrintedBlock(int(head[1]), self._at + 1, []))
            elif line.startswith("successors:"):
                named = dict.fromkeys(int(n) for n in _NUMBERED_BLOCK.findall(line))
                found[-1].successors = tuple(named)
            elif line.startswith("liveins:"):
                found[-1].live_ins += tuple(re.findall(r"\$(\w+)", line))
            elif line and line[0] not in ";#":
                instruction = self._instruction(line)
                if not _NO_CODE.fullmatch(instruction.opcode):
                    found[-1].lines.append(instruction)
            self._at += 1
        return found

    def _instruction(self, line: str) -> PrintedInstruction:
        """The instruction of a line, with its members if it begins a bundle."""
        if not line.endswith(" {"):
            return self._single(line)
        head = self._single(line.removesuffix(" {"))
        members = []
        self._at += 1
        while (member := self._lines[self._at].strip()) != "}":
            if member and member[0] not in ";#":
                members.append(self._single(member))
            self._at += 1
        return replace(head, members=tuple(members))

    def _single(self, line: str) -> PrintedInstruction:
        if '"' in line:
            line = _QUOTED.sub('""', line)
        if "::" in line or "-" in line or ";" in line or "*" in line or "mmra" in line:
            line = _TAIL.sub("", line)
        left, equals, right = line.partition(" = ")
        words = _WORDS.fullmatch(right if equals else left)
        if words is None:
            raise InputError(f"expected an instruction, not {line[:60]!r}", line=self._at + 1)
        opcode, rest = words[1], words[2]
        parts = [f"def {part}" for part in left.split(", ")] if equals else []
        if rest:
            parts += _COMMA.split(rest) if "(" in rest else rest.split(", ")
        # LLVM's own parser adds these flags, too, if the text lacks them.
        for place in early_clobbers(opcode):
            if place < len(parts):
                parts[place] = f"early-clobber {parts[place]}"
        registers: list[PlacedRegister] = []
        targets: list[int] = []
        mask = ""
        for place, part in enumerate(parts):
            operand = self._known[part] if part in self._known else self._operand(part)
            if isinstance(operand, PrintedRegister):
                registers.append((place, operand))
            elif isinstance(operand, int):
                targets.append(operand)
            elif operand is not None:
                mask = operand
        return PrintedInstruction(self._at + 1, opcode, tuple(registers), tuple(targets), mask)

    def _operand(self, text: str) -> PrintedRegister | int | str | None:
        """A register, the number of a block, the name of a mask, or None for anything else."""
        operand: PrintedRegister | int | str | None = None
        if block := _NUMBERED_BLOCK.match(text):
            operand = int(block[1])
        elif text.startswith(("csr_", "CustomRegMask")):
            operand = text
        elif not _BLOCK_OR_OBJECT.fullmatch(text) and (match := _OPERAND.fullmatch(text)):
            lanes = match["lanes"]
            first, count, half = _lanes(lanes) if lanes else (0, 0, False)
            virtual = match["kind"] == "%"
            tie = _TIE.search(match["ends"])
            flags = match["flags"].split()
            operand = PrintedRegister(
                match["name"],
                virtual,
                (first, count) if lanes else None,
                half or (not virtual and match["name"].endswith(("_lo16", "_hi16"))),
                defined="def" in flags or "implicit-def" in flags,
                undef="undef" in flags,
                early="early-clobber" in flags,
                implicit="implicit" in flags or "implicit-def" in flags,
                internal="internal" in flags,
                tied=int(tie[1]) if tie else None,
            )
        self._known[text] = operand
        return operand


def merged_bundle(line: PrintedInstruction) -> PrintedInstruction:
    """A bundle as one instruction: what its head alone says, then its members in order."""
    said = {_spot(r) for member in line.members for _, r in member.registers}
    alone = [each for each in line.registers if _spot(each[1]) not in said]
    merged: list[PlacedRegister] = []
    start = 0
    for at, registers in enumerate([alone, *(member.registers for member in line.members)]):
        later = [r for member in line.members[at:] for _, r in member.registers] if at else []
        read = any(not (r.defined or r.internal) for r in later)
        for place, register in registers:
            tied = None if register.tied is None else start + register.tied
            early = register.early or (register.defined and read)
            if not register.internal:
                merged.append((start + place, replace(register, early=early, tied=tied)))
        start += 1 + max((place for place, _ in registers), default=0)
    return replace(line, registers=tuple(merged))


def _spot(register: PrintedRegister) -> tuple[str, bool, tuple[int, int] | None]:
    return register.name, register.virtual, register.lanes
