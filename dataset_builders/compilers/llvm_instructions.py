"""LLVM's own table of AMDGPU instructions: machine opcodes, and what their operands are.

LLVM has two opcodes for an instruction: that of machine IR (a pseudo), and that of
its encoding for a generation of GPUs, which the assembler names. LLVM has a function
from the first to the second. This module calls it for every opcode, and so finds the
way back. The operands come from `llvm::MCInstrDesc`, as in `llvm_tables`.

    python -m dataset_builders.compilers.llvm_instructions verilocc_bench/targets

writes `amdgpu_instructions.json` into that folder.
"""

from __future__ import annotations

import ctypes
import json
import re
import struct
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from dataset_builders.compilers import llvm_tables as tables
from verilocc_bench.files import write_atomically

_FAMILIES = (9, 8, 5, 1, 3)
"""SIEncodingFamily: GFX940, GFX90A, GFX9, VI, SDWA9: those that gfx90a and gfx942 take."""

_NONE = (0xFFFF, 0xFFFFFFFF)
_BY_MODE = 1  # MCOI::LookupRegClassByHwMode: the class depends on the subtarget
_MODES, _OUR_MODE = 5, 1  # of RegClassByHwMode; ours has AGPRs and aligned tuples
_MAY_LOAD, _MAY_STORE, _SIDE_EFFECTS = 1 << 19, 1 << 20, 1 << 24  # MCID::Flag
# Opcodes of machine IR with the encoding of another one, for other subtargets or for LLVM's
# own bookkeeping.
_TWIN = re.compile(
    r"_exact\b|_VBUFFER_|_gfx80_|_ec$|_gfx11|_inreg$|_(pseudo|const|sideeffects|mode|pad_s_nop)$"
)


@dataclass(frozen=True, slots=True)
class LLVMInstruction:
    """An opcode of machine IR; `encodings` are the assembler's names, `form` its operands.

    The form is text: the number of definitions and the operands, then the implicit
    definitions, the implicit uses, and `L` or `S` if it may load or store, each
    after a `|`. An operand is its register class or `-`, then `&` for an early
    clobber and `=N` for a tie to definition N.
    """

    opcode: str
    encodings: tuple[str, ...]
    form: str


class _Instructions:
    def __init__(self) -> None:
        image = tables.LLVMImage()
        self.records = image.data(tables._OPCODES)
        places, names = image.data(tables._OPCODE_PLACES), image.data(tables._OPCODE_NAMES)
        self.names = [tables._string(names, place) for (place,) in struct.iter_unpack("<I", places)]
        self.registers = tables.read_register_names()
        self.classes = [each.name for each in tables.read_register_classes()]
        by_mode = image.data(tables._MODE_CLASSES)
        count = len(by_mode) // 2 // _MODES
        self.mode_classes = struct.unpack_from(f"<{count}h", by_mode, 2 * count * _OUR_MODE)
        self.encode = self._function(image, tables._ENCODING_FUNCTION, 2)
        self.matrix_twin = self._function(image, tables._MATRIX_FUNCTION, 1)

    @staticmethod
    def _function(image: tables.LLVMImage, symbol: str, arguments: int) -> ctypes._FuncPointer:
        kinds = (ctypes.c_uint16, ctypes.c_uint)[:arguments]
        return ctypes.CFUNCTYPE(ctypes.c_uint32, *kinds)(image.base + image.symbols[symbol][0])

    def read(self) -> list[LLVMInstruction]:
        found = []
        start = len(self.names) * tables._OPCODE_RECORD.size
        for opcode, name in enumerate(self.names):
            at = start - (opcode + 1) * tables._OPCODE_RECORD.size
            fields = tables._OPCODE_RECORD.unpack_from(self.records, at)
            if not fields[9] & tables._PSEUDO or _TWIN.search(name):
                continue
            twin = self.matrix_twin(opcode)
            encoded = [self.encode(opcode if twin in _NONE else twin, f) for f in _FAMILIES]
            encodings = dict.fromkeys(self.names[n] for n in encoded if n not in _NONE)
            if encodings:
                form = self.form(fields, start)
                found.append(LLVMInstruction(name, tuple(encodings), form))
        return found

    def form(self, fields: tuple[int, ...], start: int) -> str:
        _, count, definitions, _, _, used, defined, first, implicit, flags, _ = fields
        operands = []
        for index in range(first, first + count):
            at = start + index * tables._OPERAND_RECORD.size
            number, kind, _, constraint = tables._OPERAND_RECORD.unpack_from(self.records, at)
            if kind & _BY_MODE:
                number = self.mode_classes[number]
            text = "-" if number < 0 else self.classes[number]
            text += "&" if constraint & tables._EARLY_CLOBBER else ""
            text += f"={constraint >> 4 & 0xF}" if constraint & tables._TIED else ""
            operands.append(text)
        both = struct.unpack_from(f"<{used + defined}H", self.records, start + 2 * implicit)
        names = [self.registers[number].lower() for number in both]
        marks = ("L" if flags & _MAY_LOAD else "") + ("S" if flags & _MAY_STORE else "")
        parts = (str(definitions), *operands)
        return "|".join((" ".join(parts), " ".join(names[used:]), " ".join(names[:used]), marks))


def read_instructions() -> list[LLVMInstruction]:
    """The opcodes of machine IR that gfx90a or gfx942 encode, in LLVM's order."""
    return _Instructions().read()


def instruction_table_text() -> str:
    """The table of instructions that the package ships, as JSON text.

    For each form the opcodes that have it, each with its encodings: `NAME:_vi` is
    encoded as `NAME_vi`, `NAME:!OTHER` as `OTHER`.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for each in read_instructions():
        encodings = [
            name.removeprefix(each.opcode) if name.startswith(f"{each.opcode}_") else f"!{name}"
            for name in each.encodings
        ]
        found[each.form].append(f"{each.opcode}:{','.join(encodings)}")
    rows = [f"{json.dumps(form)}: {json.dumps(' '.join(found[form]))}" for form in sorted(found)]
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    write_atomically(Path(sys.argv[1]) / "amdgpu_instructions.json", instruction_table_text())
