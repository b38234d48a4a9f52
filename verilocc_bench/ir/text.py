"""The printer of the normalized text.

The grammar is the same for every architecture; docs/normalized-text.md has it in full.
Every block head and every instruction has one line:

    verilocc-bench 1
    target gfx942
    registers v:256 a:256 s:102 vcc:2=vcc_lo,vcc_hi
    reserved s32
    occupancy 3
    class V 1 v
    class V2 2 v/2
    bb0(v0,s[2:3])->bb2,bb1
    %0=COPY v0
    %1:V2.0!=V_LSHLREV_B32 %0

The lines `reserved` and `occupancy` (the most waves or warps that may run) are there
only if the function has them. A virtual register is numbered by its first place in the
text. Its class stands there, too, unless it is the first class of the header, which is
the most frequent one. `.0` and `.2-3` are lanes; `!` marks undef, `&` early clobber,
`~0` a use tied to definition 0, a leading `+` an implicit operand. A guard stands
before its instruction: `@%4 %7=MOV %5`, `@!%4 BRA`.

What instructions destroy stands in the header, after `occupancy`, numbered by its
first place in the text. An instruction names it after its operands:

    mask m0 v[0:39] v[48:55] s[0:29] vcc
    v0=SI_CALL %7,+v0 ^m0
"""

from __future__ import annotations

import hashlib

from verilocc_bench.ir.class_text import format_class
from verilocc_bench.ir.function import FixedUnits, Function, Guard, Instruction, Operand
from verilocc_bench.ir.registers import RegisterFile, format_units

FORMAT_LINE = "verilocc-bench 1"


def instance_id(normalized: str) -> str:
    """The id of a row: the first 16 hex digits of the SHA-256 of the text."""
    return hashlib.sha256(normalized.encode()).hexdigest()[:16]


def print_function(function: Function) -> str:
    """The normalized text of a function, ending in a newline.

    The function's virtual registers must be numbered by first mention, as the parsers
    do, so that the text is canonical.
    """
    printer = _Printer(function)
    lines = header_lines(function)
    for index, block in enumerate(function.blocks):
        live_ins = ",".join(printer.fixed(units) for units in function.live_ins)
        lines.append(block_head(index, "" if index else live_ins, block.successors))
        lines += [printer.instruction(instruction) for instruction in block.instructions]
    lines.append("")
    return "\n".join(lines)


def header_lines(function: Function) -> list[str]:
    """The lines of a normalized text before its first block."""
    printer = _Printer(function)
    lines = [FORMAT_LINE, f"target {function.target}"]
    lines.append("registers " + " ".join(_format_file(file) for file in function.files))
    if function.reserved:
        lines.append("reserved " + " ".join(printer.fixed(units) for units in function.reserved))
    if function.maximum_occupancy is not None:
        lines.append(f"occupancy {function.maximum_occupancy}")
    lines += [
        f"mask {name} " + " ".join(printer.fixed(units) for units in mask)
        for mask, name in printer.masks.items()
    ]
    lines += [f"class {format_class(c, printer.files)}" for c in printer.classes]
    return lines


def block_head(index: int, live_ins: str, successors: tuple[int, ...]) -> str:
    """The first line of a block, `bb0(v0,s[2:3])->bb2,bb1`."""
    head = f"bb{index}({live_ins})" if live_ins else f"bb{index}"
    return head + "->" + ",".join(f"bb{s}" for s in successors) if successors else head


def _format_file(file: RegisterFile) -> str:
    names = "=" + ",".join(file.unit_names) if file.unit_names else ""
    return f"{file.name}:{file.count}{names}"


class _Printer:
    def __init__(self, function: Function) -> None:
        self.function = function
        self.files = {file.name: file for file in function.files}
        self.mentioned: set[int] = set()
        self.masks = {mask: f"m{number}" for number, mask in enumerate(function.masks())}
        self.classes = function.classes()
        self.default = self.classes[0] if self.classes else None

    def fixed(self, units: FixedUnits) -> str:
        return format_units(self.files[units.file], units.first, units.count)

    def instruction(self, instruction: Instruction) -> str:
        guard = "" if instruction.guard is None else self.guard(instruction.guard)
        definitions = ",".join([self.operand(operand) for operand in instruction.definitions])
        uses = ",".join([self.operand(operand) for operand in instruction.uses])
        text = f"{definitions}={instruction.opcode}" if definitions else instruction.opcode
        text = f"{guard}{text} {uses}" if uses else guard + text
        return f"{text} ^{self.masks[instruction.destroys]}" if instruction.destroys else text

    def guard(self, guard: Guard) -> str:
        return f"@{'!' if guard.negated else ''}{self.operand(Operand(guard.location))} "

    def operand(self, operand: Operand) -> str:
        location = operand.location
        if isinstance(location, FixedUnits):
            text = self.fixed(location)
        else:
            register = location.register
            register_class = self.function.virtual_registers[register]
            text = f"%{register}"
            if register not in self.mentioned:
                self.mentioned.add(register)
                if register_class != self.default:
                    text += f":{register_class.name}"
            if location.count == 1 and register_class.width > 1:
                text += f".{location.first}"
            elif location.count < register_class.width:
                text += f".{location.first}-{location.first + location.count - 1}"
        if operand.implicit:
            text = "+" + text
        if operand.undef:
            text += "!"
        if operand.early_clobber:
            text += "&"
        if operand.tied_to is not None:
            text += f"~{operand.tied_to}"
        return text
