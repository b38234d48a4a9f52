"""LLVM's own table of AMDGPU instructions: machine opcodes, and what their operands are.

LLVM has two opcodes for an instruction: one of machine IR (a pseudo), and one of
its encoding for a generation of GPUs, which the assembler names. LLVM has a function
from the first to the second. This module calls it for every opcode, and so finds the
way back. The operands come from `llvm::MCInstrDesc`, as in `llvm_tables`.

Which opcodes a target has follows from LLVM's tables, too: each opcode needs features
(`AMDGPU_MC::computeRequiredFeatures`), and each processor has some. An opcode exists on
a target if its processor has what the opcode and its encoding need. Of the opcodes
without an encoding, those that live until after allocation are named here (`_LASTING`).

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
from dataset_builders.compilers.llvm_features import OpcodeFeatures
from dataset_builders.compilers.llvm_tables import Symbol
from verilocc_bench.files import write_atomically

TARGETS = ("gfx90a", "gfx942")
_FAMILIES = {"gfx90a": (8, 5, 3, 1), "gfx942": (9, 8, 5, 3, 1)}
"""SIEncodingFamily: GFX940, GFX90A, GFX9, SDWA9, VI, as SIInstrInfo::pseudoToMCOpcode asks them."""

_NONE = (0xFFFF, 0xFFFFFFFF)
_BY_MODE = 1  # MCOI::LookupRegClassByHwMode: the class depends on the subtarget
_MODES, _OUR_MODE = 5, 1  # of RegClassByHwMode; ours has AGPRs and aligned tuples
_ANYTHING = 0  # MCOI::OPERAND_UNKNOWN: without a class, it may be a register of any class
_MORE_OPERANDS, _MAY_LOAD, _MAY_STORE = 1 << 1, 1 << 19, 1 << 20  # MCID::Flag
_VECTOR_OPERATION = 0x4780  # SIInstrFlags: VOP1, VOP2, VOPC, VOP3, SDWA
# Opcodes of machine IR with the encoding of another one, for other subtargets or for LLVM's
# own bookkeeping: machine code does not lead back to them.
_TWIN = re.compile(
    r"_exact\b|_gfx80_|_ec$|_gfx11|_inreg$|_(pseudo|const|sideeffects|mode|pad_s_nop)$"
)
_CONSTANTS = (38, 39)  # AMDGPU::OPERAND_KIMM32, OPERAND_KIMM16
_SELECTED = re.compile(r"IMAGE_\w+_gfx90a")  # LLVM selects images as they are encoded
_GFX12 = re.compile(r"\w+_VBUFFER_\w+")  # LLVM does not say that they need GFX12
# Opcodes without an encoding that LLVM expands, or drops, after allocation.
_LASTING = re.compile(
    r"COPY|IMPLICIT_DEF|KILL|SUBREG_TO_REG|BUNDLE|INLINEASM(_BR)?|FAKE_USE|DBG_\w+"
    r"|CFI_INSTRUCTION|PSEUDO_PROBE|LIFETIME_(START|END)|ADJCALLSTACK(UP|DOWN)"
    r"|ATOMIC_FENCE|MEMBARRIER|WAVE_BARRIER|SCHED_(GROUP_)?BARRIER|IGLP_OPT|S_WAITCNT_lds_direct"
    r"|AV_MOV_B(32|64)_IMM_PSEUDO|S_MOV_B64_IMM_PSEUDO|V_MOV_B64_(DPP_)?PSEUDO"
    r"|S_(MOV|AND|ANDN2|OR|XOR)_B64_term|S_AND_SAVEEXEC_B64_term|S_SETPC_B64_return"
    r"|FPTRUNC_ROUND_(F16_F32|F32_F64)_PSEUDO|V_MOV_B32_indirect_(read|write)"
    r"|V_INDIRECT_REG_(READ|WRITE)_GPR_IDX_B32_V\d+|S_INDIRECT_REG_WRITE_MOVREL_B(32|64)_V\d+"
    r"|SI_SPILL_(S|V|A|AV)(?!16_)\d+_(SAVE|RESTORE)|SI_PC_ADD_REL_OFFSET"
    r"|SI_(CALL|RETURN|RETURN_TO_EPILOG|MASKED_UNREACHABLE|EARLY_TERMINATE_SCC0)"
    r"|SI_TCRETURN(_GFX|_CHAIN)?|SI_CS_CHAIN_TC_W64|(ENTER|EXIT)_STRICT_(WWM|WQM)"
)


@dataclass(frozen=True, slots=True)
class LLVMInstruction:
    """An opcode of machine IR; `encodings` are the assembler's names, `form` its operands.

    `encodings` are those from which machine code leads back to the opcode. The form is
    text: the number of definitions and the operands, then the implicit definitions, the
    implicit uses, and marks, each after a `|`. An operand is its register class, `-` if
    it cannot be a register or `*` if it may be of any class; then `&` for an early clobber and
    `=N` for a tie to definition N. The marks: it may load (`L`) or store (`S`), takes
    further operands (`M`), reads the constant bus (`B`), and has a constant on it (`K`).
    """

    opcode: str
    targets: tuple[str, ...]
    encodings: tuple[str, ...]
    form: str


class _Instructions:
    def __init__(self) -> None:
        image = tables.LLVMImage()
        self.records = image.data(Symbol.OPCODES)
        places, names = (
            image.data(Symbol.OPCODE_PLACES),
            image.data(Symbol.OPCODE_NAMES),
        )
        self.names = [tables._string(names, place) for (place,) in struct.iter_unpack("<I", places)]
        self.registers = tables.read_register_names()
        self.classes = [each.name for each in tables.read_register_classes()]
        by_mode = image.data(Symbol.MODE_CLASSES)
        count = len(by_mode) // 2 // _MODES
        self.mode_classes = struct.unpack_from(f"<{count}h", by_mode, 2 * count * _OUR_MODE)
        self.encode = self._function(image, Symbol.ENCODING_FUNCTION, 2)
        self.matrix_twin = self._function(image, Symbol.MATRIX_FUNCTION, 1)
        self.features = OpcodeFeatures(image)

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
            assert fields[0] == opcode, "another layout of llvm::MCInstrDesc"
            encoded = self.encodings(opcode, name, bool(fields[9] & tables._PSEUDO))
            targets = tuple(
                target
                for target, numbers in encoded.items()
                if numbers and all(self.features.has(target, n) for n in (opcode, numbers[0]))
            )
            if targets and not _GFX12.fullmatch(name):
                numbers = dict.fromkeys(n for each in encoded.values() for n in each)
                leads_back = opcode not in numbers and not _TWIN.search(name)
                names = [self.names[number] for number in numbers] if leads_back else []
                form = self.form(name, fields, start)
                found.append(LLVMInstruction(name, targets, tuple(names), form))
        return found

    def encodings(self, opcode: int, name: str, pseudo: bool) -> dict[str, list[int]]:
        """The numbers of an opcode's encodings by target, the one that LLVM takes first.

        An opcode that LLVM expands itself, or selects as it is encoded, stands for itself.
        """
        if _LASTING.fullmatch(name) or _SELECTED.fullmatch(name):
            return {target: [opcode] for target in TARGETS}
        if not pseudo:
            return {}
        twin = self.matrix_twin(opcode)
        asked = opcode if twin in _NONE else twin
        return {
            target: [n for family in families if (n := self.encode(asked, family)) not in _NONE]
            for target, families in _FAMILIES.items()
        }

    def form(self, name: str, fields: tuple[int, ...], start: int) -> str:
        _, count, definitions, _, _, used, defined, first, implicit, flags, own_flags = fields
        operands, constant = [], False
        for index in range(first, first + count):
            at = start + index * tables._OPERAND_RECORD.size
            number, kind, type_, constraint = tables._OPERAND_RECORD.unpack_from(self.records, at)
            constant |= type_ in _CONSTANTS
            if kind & _BY_MODE:
                number = self.mode_classes[number]
            none = "*" if type_ == _ANYTHING and _LASTING.fullmatch(name) else "-"
            text = none if number < 0 else self.classes[number]
            text += "&" if constraint & tables._EARLY_CLOBBER else ""
            text += f"={constraint >> 4 & 0xF}" if constraint & tables._TIED else ""
            operands.append(text)
        both = struct.unpack_from(f"<{used + defined}H", self.records, start + 2 * implicit)
        names = [self.registers[number].lower() for number in both]
        marks = {
            "L": flags & _MAY_LOAD,
            "S": flags & _MAY_STORE,
            "M": flags & _MORE_OPERANDS,
            "B": own_flags & _VECTOR_OPERATION,
            "K": constant,
        }
        parts = (str(definitions), *operands)
        return "|".join(
            (
                " ".join(parts),
                " ".join(names[used:]),
                " ".join(names[:used]),
                "".join(mark for mark, holds in marks.items() if holds),
            )
        )


def read_instructions() -> list[LLVMInstruction]:
    """The opcodes of machine IR that gfx90a or gfx942 have before allocation, in LLVM's order."""
    return _Instructions().read()


def instruction_table_text() -> str:
    """The table of instructions that the package ships, as JSON text.

    For each form the opcodes that have it, each with its encodings: `NAME:_vi` is
    encoded as `NAME_vi`, `NAME:!OTHER` as `OTHER`. `NAME@gfx90a` exists on gfx90a alone.
    """
    found: dict[str, list[str]] = defaultdict(list)
    for each in read_instructions():
        encodings = [
            name.removeprefix(each.opcode) if name.startswith(f"{each.opcode}_") else f"!{name}"
            for name in each.encodings
        ]
        entry = each.opcode if each.targets == TARGETS else f"{each.opcode}@{each.targets[0]}"
        found[each.form].append(f"{entry}:{','.join(encodings)}" if encodings else entry)
    rows = [f"{json.dumps(form)}: {json.dumps(' '.join(found[form]))}" for form in sorted(found)]
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    write_atomically(Path(sys.argv[1]) / "amdgpu_instructions.json", instruction_table_text())
