"""Reads one instruction of LLVM's machine IR: definitions, opcode, operands.

Every part of a line must be known syntax; nothing is skipped silently. Parts that
allocation cannot depend on (memory operands, debug locations, flags, symbols,
immediates) are checked for their form and dropped.
"""

from __future__ import annotations

import re
from dataclasses import replace

from verilocc_bench.backends.amdgpu.machine import (
    MachineFunction,
    MachineInstruction,
    MachineOperand,
    MachineOperandFlag,
)
from verilocc_bench.errors import InputError
from verilocc_bench.targets.amdgpu_instructions import early_clobbers

_FLAGS = {
    "implicit": MachineOperandFlag.IMPLICIT,
    "implicit-def": MachineOperandFlag.IMPLICIT | MachineOperandFlag.DEFINITION,
    "def": MachineOperandFlag.DEFINITION,
    "undef": MachineOperandFlag.UNDEF,
    "early-clobber": MachineOperandFlag.EARLY_CLOBBER,
    "internal": MachineOperandFlag.INTERNAL,
    "dead": MachineOperandFlag.NONE,
    "killed": MachineOperandFlag.NONE,
    "renamable": MachineOperandFlag.NONE,
    "debug-use": MachineOperandFlag.NONE,
}
_REGISTER = re.compile(
    r"((?:(?:" + "|".join(_FLAGS) + r") )*)"
    r"(?:%(\d{1,9}|[A-Za-z_$-][\w$-]*)|\$(\w+))(?:\.(\w+))?(?::(\w+))?"
    r"((?:\((?:tied-def \d{1,4}|[a-z]+\d+|<[^()]*>)\))*)",
    re.ASCII,
)
_NOT_REGISTERS = {
    "bb", "stack", "fixed-stack", "const", "jump-table", "ir", "ir-block", "subreg"
}  # fmt: skip
_OTHER_OPERAND = re.compile(
    r"-?\d+|0x[0-9A-Fa-f]+|(?:float|half|double|bfloat|i\d+|ptr) .+|[@&!\"<].*"
    r"|%(?:bb|stack|fixed-stack|const|jump-table|ir|ir-block|subreg)\b.*"
    r"|(?:target-flags|CustomRegMask|liveout|intrinsic|intpred|floatpred|shufflemask"
    r"|blockaddress|lanemask|dbg-instr-ref)\(.*\).*|csr_\w+"
)
_CALL_OPERAND = re.compile(r"csr_\w+|CustomRegMask\(.*")
_CALL = -1  # the operand that stands for a register mask
_TIED = re.compile(r"\(tied-def (\d{1,4})\)", re.ASCII)
_BLOCK_TARGET = re.compile(r"%bb\.(\d{1,9})(?:\..*)?", re.ASCII)
_INSTRUCTION_FLAGS = (
    "frame-setup|frame-destroy|nnan|ninf|nsz|arcp|contract|afn|reassoc|nuw|nsw|exact|nofpexcept"
    "|nomerge|unpredictable|noconvergent|nneg|disjoint|nusw|samesign|inbounds|lr-split"
)
_OPCODE = re.compile(rf"(?:(?:{_INSTRUCTION_FLAGS}) )*([A-Z]\w*)(?: (.*))?", re.ASCII)
_TAIL = re.compile(
    r",? (?:debug-location|debug-instr-number|heap-alloc-marker|pcsections|mmra|cfi-type"
    r"|pre-instr-symbol|post-instr-symbol|deactivation-symbol) .*"
)


class InstructionParser:
    """Reads the instructions of one function, and notes their inline classes."""

    def __init__(self, function: MachineFunction, source: str) -> None:
        self.function, self.source = function, source
        self.number = 0
        self.operands: dict[str, MachineOperand | int | None] = {}

    def error(self, message: str) -> InputError:
        """An error at the line that is being read."""
        return InputError(message, source=self.source, line=self.number)

    def parse(self, line: str, number: int) -> MachineInstruction:
        """The instruction of one line; errors name its number."""
        self.number = number
        text = self.without_tail(line)
        left, separator, right = text.partition(" = ")
        if not separator or '"' in left:
            left, right = "", text
        match = _OPCODE.fullmatch(right)
        if match is None:
            raise self.error(f"expected an instruction, not {line[:60]!r}")
        operands: list[tuple[int, MachineOperand]] = []
        targets: list[int] = []
        register_mask = ""
        place = others = 0
        for part in left.split(", ") if left else ():
            operand = self.operand("def " + part)
            if not isinstance(operand, MachineOperand):
                raise self.error(f"expected a register before '=', not {part[:40]!r}")
            operands.append((place, operand))
            place += 1
        for part in self.split_operands(match[2]) if match[2] else ():
            parsed = self.operand(part)
            if isinstance(parsed, MachineOperand):
                operands.append((place, parsed))
                others += MachineOperandFlag.IMPLICIT in parsed.flags
            elif parsed is _CALL:
                register_mask = part
                others += 1
            elif parsed is not None:
                targets.append(parsed)
            place += 1
        # LLVM's own parser adds the flag, too, if the text lacks it.
        for early in early_clobbers(match[1]):
            if early < len(operands) and operands[early][0] == early:
                operand = operands[early][1]
                flags = operand.flags | MachineOperandFlag.EARLY_CLOBBER
                operands[early] = (early, replace(operand, flags=flags))
        return MachineInstruction(
            match[1], tuple(operands), place - others, tuple(targets), self.number, register_mask
        )

    def without_tail(self, line: str) -> str:
        """The instruction without memory operands, debug location, symbols and comments."""
        if '"' in line:
            return _without_tail_quoted(line)
        line, _, _ = line.partition(" :: ")
        if "/*" in line:
            line = _without_comments(line)
        if "-" not in line and "pcs" not in line and "mmra" not in line:
            return line
        return _TAIL.sub("", line, count=1)

    def split_operands(self, text: str) -> list[str]:
        """The operands, split at the commas outside quotes and brackets."""
        if '"' not in text and "(" not in text:
            return text.split(", ")
        parts: list[str] = []
        depth, start, quoted = 0, 0, False
        for index, character in enumerate(text):
            if character == '"':
                quoted = not quoted
            elif quoted:
                continue
            elif character in "(<":
                depth += 1
            elif character in ")>":
                depth -= 1
            elif character == "," and depth == 0:
                if text[index + 1 : index + 2] != " ":
                    raise self.error(f"expected ', ' between operands in {text[:60]!r}")
                parts.append(text[start:index])
                start = index + 2
        if quoted or depth:
            raise self.error(f"expected a closing quote or bracket in {text[:60]!r}")
        parts.append(text[start:])
        return parts

    def operand(self, text: str) -> MachineOperand | int | None:
        """A register operand, the number of a block, or None for anything else known."""
        try:
            return self.operands[text]
        except KeyError:
            parsed = self.operands[text] = self.parse_operand(text)
            return parsed

    def parse_operand(self, text: str) -> MachineOperand | int | None:
        """Like `operand`, for a text that was not seen before."""
        match = _REGISTER.fullmatch(text)
        if match is None or match[2] in _NOT_REGISTERS:
            return self.parse_other_operand(text)
        flags = MachineOperandFlag.NONE
        for word in match[1].split():
            flags |= _FLAGS[word]
        tied = _TIED.search(match[6])
        name = match[2] or match[3]
        if match[2] is not None and match[5] is not None:
            known = self.function.classes.setdefault(name, match[5])
            self.function.class_lines.setdefault(name, self.number)
            if known != match[5]:
                raise self.error(f"%{name} has class {known}, and here class {match[5]}")
        return MachineOperand(
            name=name,
            virtual=match[2] is not None,
            sub_register=match[4],
            flags=flags,
            class_name=match[5],
            tied_to=int(tied[1]) if tied else None,
        )

    def parse_other_operand(self, text: str) -> int | None:
        """The number of a block, _CALL for a register mask, None for anything else known."""
        if _CALL_OPERAND.fullmatch(text):
            return _CALL
        if not _OTHER_OPERAND.fullmatch(text):
            raise self.error(f"unknown operand syntax {text[:60]!r}")
        if not text.startswith("%bb."):
            return None
        target = _BLOCK_TARGET.fullmatch(text)
        if target is None:
            raise self.error(f"expected a block such as %bb.1, not {text[:60]!r}")
        return int(target[1])


def _without_comments(text: str) -> str:
    """The text without `/* … */` and the space before it, in linear time."""
    kept: list[str] = []
    at = 0
    while (start := text.find("/*", at)) >= 0 and (end := text.find("*/", start + 2)) >= 0:
        kept.append(text[at:start].removesuffix(" "))
        at = end + 2
    return "".join(kept) + text[at:]


def _without_tail_quoted(line: str) -> str:
    """Like `without_tail`, but ignores text between quotes."""
    pieces = re.split(r'("[^"]*")', line)
    kept: list[str] = []
    for index, piece in enumerate(pieces):
        if index % 2:
            kept.append(piece)
            continue
        piece, comment, _ = piece.partition(";")  # noqa: PLW2901
        head, separator, _ = piece.partition(" :: ")
        head = _without_comments(head)
        if tail := _TAIL.search(head + (" " if head.endswith("-location") else "")):
            kept.append(head[: tail.start()])
            break
        kept.append(head)
        if separator or comment:
            break
    return "".join(kept).rstrip()
