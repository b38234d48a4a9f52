"""Reads the architecture of a cubin, its kernels and their register counts.

A cubin is a little-endian 64-bit ELF file for machine 190 (EM_CUDA). Each kernel
has a section `.text.NAME` with its code, and a section `.nv.info.NAME` with its
launch bounds. Its register count stands in the attribute EIATTR_REGCOUNT of
`.nv.info`, beside the number of the kernel's symbol, and for sm_80 in bits 24 to 31 of
the code section's sh_info, too.

The architecture is in e_flags: in bits 8 to 15 from ABI version 8 on (ptxas 13),
in bits 0 to 7 before.

Sources: the ELF specification; names of the attributes as cuobjdump prints
them; the places by experiment with ptxas 12.8, 13.1 and 13.5.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from verilocc_bench.elf import MAGIC, ElfSection, read_elf
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.targets.nvidia_budget import LaunchBounds, read_launch_bounds

_CLASS_64, _LITTLE_ENDIAN = 2, 1
_EXECUTABLE, _MACHINE_CUDA = 2, 190
_HEADER_BYTES = 64
_ABI_BYTE = 8
_NEW_ABI = 8
_FUNCTION = 2  # STT_FUNC
_ENTRY = 0x10  # STO_CUDA_ENTRY, in st_other
_SYMBOL = struct.Struct("<IBBHQQ")
_SECTION_INFO_OFFSET = 44
_INSTRUCTION_BYTES = 16
_CODE_ALIGNMENT = 128

_REGISTER_COUNT = 0x2F  # EIATTR_REGCOUNT: the symbol's number and the count, 32 bits each
_MASK_REGISTERS = 0x29  # EIATTR_COOP_GROUP_MASK_REGIDS: of instructions with a mask of threads
_SIZED_FORMAT = 4
_MOST_REGISTERS = 256


@dataclass(frozen=True, slots=True)
class CubinKernel:
    """A kernel and its place in the file; offsets and sizes are in bytes.

    `symbol_index` is its number in the symbol table. `register_count` includes the
    two registers that ptxas adds to those it names. It stands in one byte at
    `register_count_offset` (None: the section has no count, as for sm_90), and as 32
    bits at each of `register_attribute_offsets`. The 32 bits at each of
    `mask_register_offsets` name a register of the code.
    """

    name: str
    symbol_index: int
    code_offset: int
    code_size: int
    register_count: int
    register_count_offset: int | None
    register_attribute_offsets: tuple[int, ...]
    mask_register_offsets: tuple[int, ...]
    launch_bounds: LaunchBounds


@dataclass(frozen=True, slots=True)
class Cubin:
    """The architecture (`sm_80`) and the kernels of a cubin, in the order of its symbol table."""

    architecture: str
    kernels: tuple[CubinKernel, ...]

    def kernel(self, name: str | None, source: str | Path | None = None) -> CubinKernel:
        """The kernel of that name, or the only one. Raises InputError about `source` otherwise."""
        return self.kernels[choose_kernel([k.name for k in self.kernels], name, source)]


def choose_kernel(names: Sequence[str], name: str | None, source: str | Path | None) -> int:
    """The place of a kernel among `names`, or of the only one.

    Raises InputError about `source` otherwise.
    """
    said = ", ".join(names)
    if name is not None:
        if name not in names:
            raise InputError(f"there is no kernel {name!r}; there are {said}", source=source)
        return names.index(name)
    if len(names) > 1:
        raise InputError(
            "the file has several kernels, choose one with --function "
            f"(normalize --list says which can be read): {said}",
            source=source,
        )
    return 0


def is_cubin(data: bytes) -> bool:
    """True if the data begins like an ELF file, so it cannot be text."""
    return data.startswith(MAGIC)


def read_cubin(data: bytes, source: str | Path | None = None) -> Cubin:
    """The architecture and kernels of a cubin.

    Raises InputError about `source` if the data is not a whole cubin or has no
    kernel, and MissingExtraError without pyelftools.
    """
    _check_header(data, source)
    try:
        sections = read_elf(data, "cubin").sections
        _check_overlap(sections)
        kernels = tuple(_kernels(data, sections))
    except MissingExtraError:
        raise
    except InputError as error:
        raise error.located(source or "<cubin>") from None
    if not kernels:
        raise InputError("expected a cubin with a kernel, this has none", source=source)
    flags = int.from_bytes(data[48:52], "little")
    number = flags >> 8 & 0xFF if data[_ABI_BYTE] >= _NEW_ABI else flags & 0xFF
    return Cubin(f"sm_{number}", kernels)


def with_other_code(data: bytes, kernel: CubinKernel, code: bytes) -> bytes:
    """The cubin with other code in the kernel's section, behind the file if its size differs.

    Then the section has one function, the kernel: nvdisasm lets no branch leave a function.
    """
    start, size = kernel.code_offset, kernel.code_size
    if len(code) == size:
        return data[:start] + code + data[start + size :]
    sections = read_elf(data, "cubin").sections
    section = next(each for each in sections if each.name == f".text.{kernel.name}")
    symbols = next(each for each in sections if each.name == ".symtab")
    changed = bytearray(data + bytes(-len(data) % _CODE_ALIGNMENT))
    place = struct.pack("<QQ", len(changed), len(code))
    changed[section.header_offset + 24 : section.header_offset + 40] = place
    for number in range(len(symbols.data) // _SYMBOL.size):
        at = symbols.offset + number * _SYMBOL.size
        _, kind, _, home, _, _ = _SYMBOL.unpack_from(data, at)
        if number == kernel.symbol_index:
            changed[at + 16 : at + 24] = struct.pack("<Q", len(code))
        elif home == section.index and kind & 0xF == _FUNCTION:
            changed[at + 4] = kind & 0xF0
    return bytes(changed) + code


def _check_header(data: bytes, source: str | Path | None) -> None:
    if not is_cubin(data):
        raise InputError("expected a cubin: byte 0 begins no ELF file", source=source)
    if len(data) < _HEADER_BYTES:
        raise InputError(
            f"expected {_HEADER_BYTES} bytes of ELF header, the file has {len(data)}", source=source
        )
    if data[4] != _CLASS_64 or data[5] != _LITTLE_ENDIAN:
        raise InputError("expected a cubin, a little-endian ELF file of 64 bits", source=source)
    kind, machine = struct.unpack_from("<HH", data, 16)
    if machine != _MACHINE_CUDA:
        raise InputError(
            f"expected a cubin, an ELF file for machine {_MACHINE_CUDA}, not {machine}",
            source=source,
        )
    if kind != _EXECUTABLE:
        raise InputError(
            f"expected a linked cubin, ELF type {_EXECUTABLE}, not {kind} "
            "(ptxas makes one without -c and without -rdc)",
            source=source,
        )


def _check_overlap(sections: Sequence[ElfSection]) -> None:
    """Raises InputError if two sections share bytes of the file."""
    in_order = sorted((s for s in sections if s.data), key=lambda s: (s.offset, s.index))
    for before, after in pairwise(in_order):
        if before.offset + len(before.data) > after.offset:
            raise InputError(
                f"sections {before.index} ({before.name}) and {after.index} ({after.name}) "
                f"overlap at byte {after.offset}: the file is damaged"
            )


def _kernels(data: bytes, sections: Sequence[ElfSection]) -> Iterator[CubinKernel]:
    by_name = {section.name: section for section in sections}
    symbols = by_name.get(".symtab")
    if symbols is None or symbols.link >= len(sections):
        raise InputError("expected a cubin with a symbol table .symtab")
    strings = sections[symbols.link]
    counts = _register_counts(data, by_name.get(".nv.info"))
    seen: set[str] = set()
    for number in range(len(symbols.data) // _SYMBOL.size):
        entry = _SYMBOL.unpack_from(data, symbols.offset + number * _SYMBOL.size)
        name_offset, information, other, index, value, _ = entry
        if information & 0xF != _FUNCTION or not other & _ENTRY:
            continue
        name = _string(strings, name_offset)
        if index >= len(sections) or sections[index].name != f".text.{name}" or value:
            raise InputError(f"expected the code of kernel {name[:60]!r} in section .text.{name}")
        if name in seen:
            raise InputError(f"expected one kernel {name[:60]!r}, there are two")
        seen.add(name)
        attributes = counts.get(number, ())
        said = {int.from_bytes(data[at : at + 4], "little") for at in attributes}
        yield _kernel(name, sections[index], by_name, (number, attributes), said)


def _kernel(
    name: str,
    code: ElfSection,
    by_name: dict[str, ElfSection],
    symbol: tuple[int, tuple[int, ...]],
    said: set[int],
) -> CubinKernel:
    """A kernel by its symbol: the number, and the places of its register counts in .nv.info.

    `said` are these counts.
    """
    if not len(code.data) or len(code.data) % _INSTRUCTION_BYTES:
        raise InputError(
            f"expected whole instructions of {_INSTRUCTION_BYTES} bytes in section {code.name}, "
            f"it has {len(code.data)} bytes"
        )
    information = by_name.get(f".nv.info.{name}")
    bounds = LaunchBounds()
    masks: list[int] = []
    if information is not None:
        bounds = read_launch_bounds(information.data)
        for attribute, place, size in _attributes(information):
            masks += range(place, place + size - 3, 4) if attribute == _MASK_REGISTERS else ()
    count = code.info >> 24
    if not count:
        if len(said) != 1:
            raise InputError(f"expected one register count of kernel {name[:60]!r} in .nv.info")
        (count,) = said
        if not 0 < count <= _MOST_REGISTERS:
            raise InputError(f"expected at most 256 registers of kernel {name[:60]!r}, not {count}")
    number, attributes = symbol
    return CubinKernel(
        name,
        number,
        code.offset,
        len(code.data),
        count,
        code.header_offset + _SECTION_INFO_OFFSET + 3 if code.info >> 24 else None,
        attributes,
        tuple(masks),
        bounds,
    )


def _string(strings: ElfSection, offset: int) -> str:
    table = strings.data
    end = table.find(b"\0", offset)
    text = table[offset:end] if 0 <= offset < len(table) and end >= 0 else b""
    try:
        name = text.decode("ascii")
    except UnicodeDecodeError:
        name = ""
    if not name.isprintable() or not name:
        raise InputError(f"expected the name of a kernel at byte {offset} of {strings.name}")
    return name


def _register_counts(data: bytes, section: ElfSection | None) -> dict[int, tuple[int, ...]]:
    """The offsets of the register counts in the file, by the number of their symbol."""
    found: dict[int, tuple[int, ...]] = {}
    for code, position, size in () if section is None else _attributes(section):
        if code == _REGISTER_COUNT and size == 8:
            symbol = int.from_bytes(data[position : position + 4], "little")
            found[symbol] = (*found.get(symbol, ()), position + 4)
    return found


def _attributes(section: ElfSection) -> Iterator[tuple[int, int, int]]:
    """The attributes that have a size: (code, offset of the contents in the file, bytes)."""
    position, end = 0, len(section.data)
    while position + 4 <= end:
        form, code, size = struct.unpack_from("<BBH", section.data, position)
        position += 4
        if form != _SIZED_FORMAT:
            continue
        if position + size > end:
            raise InputError(f"no attribute of {section.name} at byte {position - 4}")
        yield code, section.offset + position, size
        position += size
