"""LLVM's own AMDGPU tables, read from the library inside llvmlite.

TableGen's tables (register names, register classes with their members) are constant
data of the library. This
module finds them by their symbols and reads them from the loaded library. So
this package's tables are generated from LLVM, and compared with it. Works on
Linux on x86-64, where llvmlite's library keeps its symbol table.

    python -m dataset_builders.compilers.llvm_tables verilocc_bench/targets

writes `amdgpu_classes.json` into that folder.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import re
import struct
import sys
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.files import write_atomically


class Symbol(StrEnum):
    """The tables and functions of LLVM that are read."""

    REGISTERS = "_ZN4llvm13AMDGPURegDescE"
    REGISTER_NAMES = "_ZN4llvm16AMDGPURegStringsE"
    CLASSES = "_ZN4llvm23AMDGPUMCRegisterClassesE"
    CLASS_NAMES = "_ZN4llvm21AMDGPURegClassStringsE"
    # Several targets have tables of these names; the source file tells them apart.
    SUB_REGISTER_NAMES = "SIRegisterInfo.cpp:_ZN4llvmL20SubRegIndexNameTableE"
    SUB_REGISTER_RANGES = "SIRegisterInfo.cpp:_ZN4llvmL19SubRegIdxRangeTableE"
    OPCODES = "_ZN4llvm11AMDGPUDescsE"
    OPCODE_PLACES = "_ZN4llvm22AMDGPUInstrNameIndicesE"
    OPCODE_NAMES = "_ZN4llvm19AMDGPUInstrNameDataE"
    ENCODING_FUNCTION = "_ZN4llvm6AMDGPU11getMCOpcodeEtj"
    MATRIX_FUNCTION = "_ZN4llvm6AMDGPU21getMFMAEarlyClobberOpEt"
    MODE_CLASSES = "_ZN4llvm28AMDGPURegClassByHwModeTablesE"
    REQUIRED_SETS = "_ZZN4llvm9AMDGPU_MC23computeRequiredFeaturesEjE14FeatureBitsets"
    REQUIRED_PLACES = "_ZZN4llvm9AMDGPU_MC23computeRequiredFeaturesEjE20RequiredFeaturesRefs"
    AVAILABLE_FUNCTION = "_ZN4llvm9AMDGPU_MC24computeAvailableFeaturesERKNS_13FeatureBitsetE"
    FEATURES = "_ZN4llvm15AMDGPUFeatureKVE"
    PROCESSORS = "_ZN4llvm15AMDGPUSubTypeKVE"
    ANCHOR = "LLVMPY_ParseAssembly"  # exported, so that its address in memory is known


_REGISTER_RECORD_BYTES = 24  # llvm::MCRegisterDesc
_CLASS_RECORD = struct.Struct("<QQIHHHHbBBx")  # llvm::MCRegisterClass
_OPCODE_RECORD = struct.Struct("<HHBBHBBHHxxQQ")  # llvm::MCInstrDesc
_OPERAND_RECORD = struct.Struct("<hBBH")  # llvm::MCOperandInfo
_PSEUDO = 1 << 3  # MCID::Pseudo: opcodes of machine IR, others are their encodings
_TIED, _EARLY_CLOBBER = 1 << 0, 1 << 1  # MCOI::OperandConstraint
_SOURCE_FILE = 4  # STT_FILE: the local symbols that follow are that file's
_MEMBER = re.compile(r"(?:[VSA]GPR\d+_?)+")
_HARDWARE_COUNTS = {"v": 256, "a": 256, "s": 102}
# Classes that only operands have: no virtual register can be of one.
_OPERANDS = re.compile(r"VS_(32|64_Align2)|VRegOrLds_32|SReg_\d+(_XNULL|_Encodable)?")
_NAMED = {"VCC_LO": ("vcc", 0, 1), "VCC_HI": ("vcc", 1, 1), "VCC": ("vcc", 0, 2)}


@dataclass(frozen=True, slots=True)
class LLVMRegisterClass:
    """A register class as LLVM has it, over all AMDGPU subtargets."""

    name: str
    size_bits: int
    allocatable: bool
    members: tuple[str, ...]


class LLVMImage:
    """The library inside llvmlite, and the places of LLVM's tables in it."""

    def __init__(self) -> None:
        try:
            import llvmlite.binding
        except ImportError:
            raise MissingExtraError("llvmlite", "build", "reading LLVM's tables") from None
        path = next(Path(llvmlite.binding.__file__).parent.glob("libllvmlite*.so"), None)
        if path is None:
            raise InputError("llvmlite has no libllvmlite.so here: the tables need Linux")
        self.symbols = _read_symbols(path, frozenset(Symbol))
        library = ctypes.CDLL(str(path))
        anchor = ctypes.cast(getattr(library, str(Symbol.ANCHOR)), ctypes.c_void_p).value
        assert anchor is not None
        self.base = anchor - self.symbols[Symbol.ANCHOR][0]

    def data(self, symbol: str) -> bytes:
        """The bytes of a table."""
        address, size = self.symbols[symbol]
        return ctypes.string_at(self.base + address, size)


def _read_symbols(path: Path, wanted: Collection[str]) -> dict[str, tuple[int, int]]:
    """(address, size) of symbols; `FILE:NAME` is a local symbol of a source file."""
    found: dict[str, tuple[int, int]] = {}
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        (table,) = struct.unpack_from("<Q", image, 0x28)
        entry, count = struct.unpack_from("<HH", image, 0x3A)
        sections = [
            struct.unpack_from("<IIQQQQIIQQ", image, table + i * entry) for i in range(count)
        ]
        for section in sections:
            if section[1] != 2:  # SHT_SYMTAB
                continue
            strings = sections[section[6]]
            names = image[strings[4] : strings[4] + strings[5]]
            symbols = image[section[4] : section[4] + section[5]]
            source_file = ""
            for name, info, _, _, value, size in struct.iter_unpack("<IBBHQQ", symbols):
                text = _string(names, name)
                if info & 0xF == _SOURCE_FILE:
                    source_file = text
                for key in (text, f"{source_file}:{text}"):
                    if key in wanted:
                        found[key] = (value, size)
    if missing := {*wanted} - found.keys():
        raise InputError(
            f"no symbols {sorted(map(str, missing))}: not the llvmlite that is known", source=path
        )
    return found


def _string(data: bytes, offset: int) -> str:
    return data[offset : data.index(b"\0", offset)].decode()


def read_register_names() -> list[str]:
    """The names of all AMDGPU registers of LLVM, by LLVM's number (0 is not a register)."""
    image = LLVMImage()
    records, names = image.data(Symbol.REGISTERS), image.data(Symbol.REGISTER_NAMES)
    return [
        _string(names, struct.unpack_from("<I", records, offset)[0])
        for offset in range(0, len(records), _REGISTER_RECORD_BYTES)
    ]


def read_register_classes() -> list[LLVMRegisterClass]:
    """All AMDGPU register classes of LLVM with their members, in LLVM's order."""
    image = LLVMImage()
    registers = read_register_names()
    names = image.data(Symbol.CLASS_NAMES)
    classes: list[LLVMRegisterClass] = []
    for record in _CLASS_RECORD.iter_unpack(image.data(Symbol.CLASSES)):
        begin, _, name, size, _, _, bits, _, allocatable, _ = record
        numbers = struct.unpack(f"<{size}H", ctypes.string_at(begin, 2 * size))
        members = tuple(registers[number] for number in numbers)
        classes.append(LLVMRegisterClass(_string(names, name), bits, bool(allocatable), members))
    return classes


def member_units(name: str) -> tuple[str, int, int] | None:
    """(file, first unit, units) of an LLVM register of CDNA 2 and 3, or None for others."""
    if name in _NAMED:
        return _NAMED[name]
    if not _MEMBER.fullmatch(name):
        return None
    parts = name.split("_")
    file, first = parts[0][0].lower(), int(parts[0][4:])
    return (file, first, len(parts)) if first + len(parts) <= _HARDWARE_COUNTS[file] else None


def _progressions(bases: list[int]) -> list[tuple[int, int, int]]:
    """Sorted bases as (first, last, step) runs, the longest possible from the left."""
    runs: list[tuple[int, int, int]] = []
    while bases:
        step = bases[1] - bases[0] if len(bases) > 1 else 1
        length = 1
        while length < len(bases) and bases[length] - bases[length - 1] == step:
            length += 1
        runs.append((bases[0], bases[length - 1], step))
        bases = bases[length:]
    return runs


def class_table_text() -> str:
    """The table of classes that the package ships, as JSON text.

    A row has the width and the bases, and `true` if only operands have the class.
    """
    rows: list[str] = []
    for llvm_class in sorted(read_register_classes(), key=lambda c: c.name.lower()):
        units = [u for u in map(member_units, llvm_class.members) if u is not None]
        widths = {width for _, _, width in units}
        usable = llvm_class.allocatable or _OPERANDS.fullmatch(llvm_class.name)
        if not usable or len(widths) != 1:
            continue
        files = dict.fromkeys(file for file, _, _ in units)
        ranges = [
            [file, *run]
            for file in files
            for run in _progressions(sorted(base for name, base, _ in units if name == file))
        ]
        if llvm_class.size_bits != 32 * min(widths):
            continue  # VReg_1 is a 1-bit pseudo-class that never reaches allocation
        row = [*widths, ranges, *([] if llvm_class.allocatable else [True])]
        rows.append(f"{json.dumps(llvm_class.name.lower())}: {json.dumps(row)}")
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    write_atomically(folder / "amdgpu_classes.json", class_table_text())
