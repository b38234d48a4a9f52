"""The parser of the normalized text, the exact inverse of the printer.

An accepted text prints as it was read. So a function has only one spelling, and only one
id. While it reads, the parser notes whether each word is spelled as the printer spells it.
Only if one is not, it prints the function and compares, to say what was expected. The cost
is linear in the length of the text. Every error names the line and what was expected there.
"""

from __future__ import annotations

import re

from verilocc_bench.errors import InputError
from verilocc_bench.ir.class_text import parse_class
from verilocc_bench.ir.function import (
    Block,
    FixedUnits,
    Function,
    Guard,
    Instruction,
    Operand,
    VirtualLanes,
    instruction_of,
    operand_of,
)
from verilocc_bench.ir.registers import RegisterClass, RegisterFile, format_units
from verilocc_bench.ir.text import FORMAT_LINE, block_head, header_lines, print_function

MAXIMUM_UNITS = 4096
"""The most units of a register file: no GPU has a larger one, so a larger number is damage."""

MAXIMUM_LINES = 500_000
MAXIMUM_CHARACTERS = 32 << 20
"""The largest kernel seen has 9,000 lines of 40 characters."""

_FILE = re.compile(r"([A-Za-z]+):(\d{1,4})(?:=([A-Za-z_]\w*(?:,[A-Za-z_]\w*)*))?", re.ASCII)
_BLOCK = re.compile(r"bb(\d{1,9})(?:\(([^()]*)\))?(?:->(.+))?", re.ASCII)
_SUCCESSOR = re.compile(r"bb(\d{1,9})", re.ASCII)
_OCCUPANCY = re.compile(r"[1-9]\d{0,2}", re.ASCII)
_OPCODE = re.compile(r"(?!bb\d)[A-Za-z_][\w.$]{0,199}", re.ASCII)
_WORD = re.compile(r"[A-Za-z]\w*", re.ASCII)
_VIRTUAL = re.compile(
    r"(\+)?%(\d{1,9})(?::([A-Za-z][\w.]*?))?(?:\.(\d{1,3})(?:-(\d{1,3}))?)?(!)?(&)?(?:~(\d{1,3}))?",
    re.ASCII,
)
_FIXED = re.compile(r"(\+)?([^!&~+%]+)(!)?(&)?(?:~(\d{1,3}))?", re.ASCII)
_LEADING_ZERO = re.compile(r"[%.~-]0\d", re.ASCII)
_UNITS = re.compile(r"([A-Za-z]+)\[(\d{1,4}):(\d{1,4})\]", re.ASCII)
_UNIT = re.compile(r"([A-Za-z]+)(\d{1,4})", re.ASCII)


def parse_function(text: str, source: str = "<text>", *, canonical: bool = True) -> Function:
    """The function of a normalized text.

    Raises InputError, with the line and what was expected, for anything that the
    printer could not have printed. Without `canonical`, it also accepts the spellings
    of hand-written texts: classes in any order, and spelled out at every first mention.
    """
    lines = text.count("\n")
    if lines > MAXIMUM_LINES or len(text) > MAXIMUM_CHARACTERS:
        raise InputError(
            f"{lines:,} lines with {len(text):,} characters: a normalized text may have "
            f"{MAXIMUM_LINES:,} and {MAXIMUM_CHARACTERS:,}",
            source=source,
        )
    parser = _TextParser(text, source)
    function = parser.parse()
    if canonical:
        parser.check_spelling(function)
    return function


class _TextParser:
    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.lines = text.split("\n")
        self.at = 0
        self.target = ""
        self.files: dict[str, RegisterFile] = {}
        self.unit_names: dict[str, FixedUnits] = {}
        self.masks: dict[str, tuple[FixedUnits, ...]] = {}
        self.classes: dict[str, RegisterClass] = {}
        self.virtual_registers: list[RegisterClass] = []
        self.operands: dict[str, Operand] = {}
        self.opcodes: set[str] = set()
        self.next_name = "%0"
        self.endings: dict[str, RegisterClass] = {}
        self.body = 0
        self.as_printed = _LEADING_ZERO.search(text) is None

    def error(self, message: str) -> InputError:
        return InputError(message, source=self.source, line=self.at + 1)

    def parse(self) -> Function:
        if self.lines[0] != FORMAT_LINE:
            raise self.error(
                f"expected the first line of a normalized text, {FORMAT_LINE!r}, "
                f"not {self.lines[0][:40]!r}"
            )
        if self.lines[-1] != "":
            self.at = len(self.lines) - 1
            raise self.error("the text ends within a line: expected a newline at the end")
        self.at = 1
        self.target = self.header("target ")
        for part in self.header("registers ").split(" "):
            self.parse_file(part)
        reserved: list[FixedUnits] = []
        if self.lines[self.at].startswith("reserved "):
            names = self.header("reserved ").split(" ")
            self.at -= 1
            reserved = [self.fixed(name) for name in names]
            self.at += 1
        maximum_occupancy = self.parse_occupancy()
        while self.lines[self.at].startswith("mask "):
            self.parse_mask(self.lines[self.at].removeprefix("mask "))
        while self.lines[self.at].startswith("class "):
            self.parse_class(self.header("class "))
        self.body = self.at
        for name, register_class in self.classes.items():
            if not self.endings:
                self.endings[""] = register_class  # the default class is not written
            elif _WORD.fullmatch(name):  # after a dot there may be lanes
                self.endings[f":{name}"] = register_class
        live_ins, blocks = self.parse_blocks()
        return Function(
            target=self.target,
            files=tuple(self.files.values()),
            reserved=tuple(reserved),
            virtual_registers=tuple(self.virtual_registers),
            live_ins=live_ins,
            blocks=blocks,
            maximum_occupancy=maximum_occupancy,
        )

    def parse_occupancy(self) -> int | None:
        if not self.lines[self.at].startswith("occupancy "):
            return None
        text = self.lines[self.at].removeprefix("occupancy ")
        if not _OCCUPANCY.fullmatch(text):
            raise self.error(f"expected a number of waves or warps, not {text[:40]!r}")
        self.at += 1
        return int(text)

    def parse_mask(self, text: str) -> None:
        name, *units = text.split(" ")
        if name != f"m{len(self.masks)}" or not units:
            raise self.error(f"expected a line 'mask m{len(self.masks)} …', not {text[:40]!r}")
        self.masks[name] = tuple([self.fixed(unit) for unit in units])
        self.at += 1

    def check_spelling(self, function: Function) -> None:
        """Raises InputError at the first line that the printer spells differently."""
        if self.as_printed and header_lines(function) == self.lines[: self.body]:
            return
        expected = print_function(function).split("\n")
        if expected == self.lines:
            return
        for at, (own, printed) in enumerate(zip(self.lines, expected, strict=False)):
            if own != printed:
                self.at = at
                raise self.error(f"expected {printed[:60]!r}, not {own[:60]!r}")
        raise AssertionError("a function prints at least as many lines as it was read from")

    def header(self, prefix: str) -> str:
        line = self.lines[self.at]
        if not line.startswith(prefix) or len(line) == len(prefix):
            raise self.error(f"expected a line {prefix.strip()!r} …, not {line[:60]!r}")
        self.at += 1
        return line[len(prefix) :]

    def parse_file(self, text: str) -> None:
        match = _FILE.fullmatch(text)
        if match is None or int(match[2]) > MAXIMUM_UNITS:
            self.at -= 1
            raise self.error(f"expected a register file such as v:256, not {text[:40]!r}")
        names = tuple(match[3].split(",")) if match[3] else ()
        if match[1] in self.files or len(set(names)) != len(names):
            self.at -= 1
            raise self.error(f"register file {match[1]} or a name in it occurs twice")
        file = RegisterFile(match[1], int(match[2]), names)
        if names and len(names) < file.count:
            self.at -= 1
            raise self.error(f"{file.name} has {file.count} units, but {len(names)} names")
        self.files[file.name] = file
        for index, name in enumerate(names):
            self.unit_names[name] = FixedUnits(file.name, index, 1)
        if names:
            self.unit_names[file.name] = FixedUnits(file.name, 0, len(names))

    def parse_class(self, text: str) -> None:
        self.at -= 1
        try:
            parsed = parse_class(text, self.files)
        except InputError as error:
            raise self.error(error.message) from None
        if parsed.name in self.classes:
            raise self.error(f"class {parsed.name} is described twice")
        self.classes[parsed.name] = parsed
        self.at += 1

    def parse_blocks(self) -> tuple[tuple[FixedUnits, ...], tuple[Block, ...]]:
        heads: list[tuple[int, tuple[int, ...]]] = []
        bodies: list[list[Instruction]] = []
        live_ins: tuple[FixedUnits, ...] = ()
        instructions: list[Instruction] = []
        for index in range(self.at, len(self.lines) - 1):
            self.at = index
            line = self.lines[index]
            if line.startswith("bb"):
                match = _BLOCK.fullmatch(line)
                if match is None or int(match[1]) != len(heads):
                    raise self.error(
                        f"expected the head of block bb{len(heads)}, not {line[:60]!r}"
                    )
                if match[2]:
                    if heads:
                        raise self.error("only the entry block has live-in registers")
                    live_ins = tuple(self.fixed(part) for part in match[2].split(","))
                heads.append((index, self.parse_successors(match[3])))
                if line != block_head(len(heads) - 1, match[2] or "", heads[-1][1]):
                    self.as_printed = False
                instructions = []
                bodies.append(instructions)
            elif not heads:
                raise self.error(f"expected a class or the head of block bb0, not {line[:60]!r}")
            else:
                instructions.append(self.parse_instruction(line))
        if not heads:
            self.at = len(self.lines) - 1
            raise self.error("the function has no block")
        for at, successors in heads:
            if any(successor >= len(heads) for successor in successors):
                self.at = at
                raise self.error(f"an edge leads to a block beyond the last, bb{len(heads) - 1}")
        return live_ins, tuple(
            Block(tuple(body), successors)
            for body, (_, successors) in zip(bodies, heads, strict=True)
        )

    def parse_successors(self, text: str | None) -> tuple[int, ...]:
        if text is None:
            return ()
        matches = [_SUCCESSOR.fullmatch(name) for name in text.split(",")]
        numbers = tuple(int(match[1]) for match in matches if match is not None)
        if len(numbers) != len(matches) or len(set(numbers)) != len(numbers):
            raise self.error(f"expected different successors such as bb1,bb2, not {text[:60]!r}")
        return numbers

    def parse_instruction(self, line: str) -> Instruction:
        guard = None
        if line.startswith("@"):
            text, _, line = line.partition(" ")
            guard = self.parse_guard(text)
        destroys: tuple[FixedUnits, ...] = ()
        if "^" in line:
            line, _, name = line.rpartition(" ^")
            if name not in self.masks:
                raise self.error(f"expected a mask of the header, not {name[:40]!r}")
            destroys = self.masks[name]
        left, separator, right = line.partition("=")
        if not separator:
            left, right = "", line
        opcode, space, rest = right.partition(" ")
        if opcode not in self.opcodes:
            if not _OPCODE.fullmatch(opcode):
                raise self.error(f"expected an instruction, not {line[:60]!r}")
            self.opcodes.add(opcode)
        if (separator and not left) or (space and not rest):
            self.as_printed = False
        known = self.operands
        definitions: tuple[Operand, ...] = ()
        uses: tuple[Operand, ...] = ()
        if left:
            definitions = tuple([known.get(each) or self.operand(each) for each in left.split(",")])
        if rest:
            uses = tuple([known.get(each) or self.operand(each) for each in rest.split(",")])
        if "~" in line or "&" in rest:
            self.check_marks(definitions, uses)
        return instruction_of(opcode, definitions, uses, guard, destroys)

    def check_marks(self, definitions: tuple[Operand, ...], uses: tuple[Operand, ...]) -> None:
        for use in uses:
            if use.early_clobber:
                raise self.error("a use cannot be an early clobber")
            if use.tied_to is not None and use.tied_to >= len(definitions):
                raise self.error(f"an operand is tied to definition {use.tied_to}: there is none")
        for definition in definitions:
            if definition.tied_to is not None:
                raise self.error("only a use is tied, to a definition")

    def parse_guard(self, text: str) -> Guard:
        negated = text.startswith("@!")
        name = text[2 if negated else 1 :]
        operand = self.operands.get(name) or self.operand(name)
        if operand != Operand(operand.location) or operand.location.count != 1:
            raise self.error(f"expected a guard of one lane and no marks, not {text[:40]!r}")
        return Guard(operand.location, negated)

    def operand(self, text: str) -> Operand:
        register_class = None
        if text.startswith(self.next_name):
            register_class = self.endings.get(text[len(self.next_name) :])
        if register_class is not None:
            # Most operands that are new are the whole of the next register, without marks.
            register = len(self.virtual_registers)
            self.add_register(register_class)
            made = operand_of(
                VirtualLanes(register, 0, register_class.width), False, False, False, None
            )
            self.operands[f"%{register}"] = made
            return made
        match = _VIRTUAL.fullmatch(text)
        if match is None:
            return self.fixed_operand(text)
        implicit, number, class_name, first, last, undef, early_clobber, tied = match.groups()
        register = int(number)
        if class_name is not None or register >= len(self.virtual_registers):
            self.first_mention(register, class_name)
        width = self.virtual_registers[register].width
        low = int(first) if first is not None else 0
        count = width if first is None else int(last or first) - low + 1
        if count < 1 or low + count > width:
            raise self.error(f"%{register} has {width} lanes: {text!r} names others")
        operand = operand_of(
            VirtualLanes(register, low, count),
            undef is not None,
            early_clobber is not None,
            implicit is not None,
            int(tied) if tied is not None else None,
        )
        if first is not None and (count == width or (last is None) != (count == 1)):
            self.as_printed = False
        if class_name is None:
            self.operands[text] = operand
        else:
            # Later mentions have no class: with the same lanes and marks, this is their operand.
            self.operands[text.replace(f":{class_name}", "", 1)] = operand
            if class_name == next(iter(self.classes)):
                self.as_printed = False
        return operand

    def first_mention(self, register: int, class_name: str | None) -> None:
        """Adds a virtual register; without a class name it has the first class of the header."""
        if register != len(self.virtual_registers):
            raise self.error(
                f"virtual registers are numbered by their first place in the text: "
                f"expected %{len(self.virtual_registers)} here, not %{register}"
            )
        if class_name is None:
            class_name = next(iter(self.classes), None)
        if class_name not in self.classes:
            raise self.error(f"class {class_name} is not described in the header")
        self.add_register(self.classes[class_name])

    def add_register(self, register_class: RegisterClass) -> None:
        self.virtual_registers.append(register_class)
        self.next_name = f"%{len(self.virtual_registers)}"

    def fixed_operand(self, text: str) -> Operand:
        match = _FIXED.fullmatch(text)
        if match is None:
            raise self.error(f"expected a register operand, not {text[:40]!r}")
        implicit, name, undef, early_clobber, tied = match.groups()
        operand = operand_of(
            self.fixed(name),
            undef is not None,
            early_clobber is not None,
            implicit is not None,
            int(tied) if tied is not None else None,
        )
        self.operands[text] = operand
        return operand

    def fixed(self, name: str) -> FixedUnits:
        units = self.unit_names.get(name) or self.numbered_units(name)
        if format_units(self.files[units.file], units.first, units.count) != name:
            self.as_printed = False
        return units

    def numbered_units(self, name: str) -> FixedUnits:
        if match := _UNIT.fullmatch(name):
            units = FixedUnits(match[1], int(match[2]), 1)
        elif match := _UNITS.fullmatch(name):
            units = FixedUnits(match[1], int(match[2]), int(match[3]) - int(match[2]) + 1)
        else:
            raise self.error(f"expected a physical register, not {name[:40]!r}")
        file = self.files.get(units.file)
        if file is None or file.unit_names or units.count < 1:
            raise self.error(f"there is no physical register {name[:40]!r} in this function")
        if units.first + units.count > MAXIMUM_UNITS:
            raise self.error(f"{name!r} is beyond every register file")
        return units
