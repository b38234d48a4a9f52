"""ELF files as records: headers and symbols by pyelftools, everything else by plain slices.

pyelftools trusts what a file says of itself. About a damaged file it raises whatever
its parts do: it seeks beyond memory, divides by a size of zero, or has no name for a
number. All that it is asked stands in this module, where its errors become InputError.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from verilocc_bench.errors import InputError, MissingExtraError

MAGIC = b"\x7fELF"

_SYMBOL_TABLES = (".symtab", ".dynsym")
_HEADER_BYTES = {32: 40, 64: 64}
"""The size of a section's header, by the bits of the file's addresses."""


@dataclass(frozen=True, slots=True)
class ElfSection:
    """A section; `kind` is its type, such as `SHT_NOTE`.

    `data` are its bytes, none where it takes no space in the file. They begin at
    `offset` of the file, the section's header at `header_offset`.
    """

    name: str
    index: int
    kind: str
    address: int
    offset: int
    link: int
    info: int
    header_offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ElfSymbol:
    """A symbol; `section` is None where it stands in no section."""

    name: str
    value: int
    size: int
    section: int | None
    is_function: bool


@dataclass(frozen=True, slots=True)
class ElfFile:
    """What the readers of this package need of an ELF file, for a `machine` such as `EM_AMDGPU`.

    `symbols` has the symbols of the first symbol table that there is.
    """

    machine: str
    flags: int
    sections: tuple[ElfSection, ...]
    symbols: tuple[ElfSymbol, ...]

    def section(self, name: str) -> ElfSection | None:
        """The first section of that name, or None."""
        return next((each for each in self.sections if each.name == name), None)


def read_elf(data: bytes, extra: str) -> ElfFile:
    """The sections and symbols of an ELF file, all of which lie within the file.

    Raises InputError for damaged files, and MissingExtraError, which names `extra`,
    without pyelftools.
    """
    try:
        from elftools.elf.elffile import ELFFile
    except ModuleNotFoundError:
        raise MissingExtraError("pyelftools", extra, "reading machine code") from None
    with _asking("the header"):
        elf = ELFFile(io.BytesIO(data))
        machine, flags = str(elf["e_machine"]), int(elf["e_flags"])
    return ElfFile(machine, flags, tuple(_sections(elf, data)), _symbols(elf))


@contextmanager
def _asking(part: str) -> Iterator[None]:
    """Asks pyelftools, and nothing else, about a part of the file."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  see above
        reason = f"{part} cannot be read ({type(error).__name__})"
        raise InputError(f"no whole ELF file: {reason}") from None


def read_notes(section: ElfSection, owner: str) -> Iterator[bytes]:
    """What the notes of an owner say. Raises InputError if a note is not whole."""
    data, position = section.data, 0
    while position < len(data):
        sizes = [int.from_bytes(data[position + at : position + at + 4], "little") for at in (0, 4)]
        name = position + 12
        content = name + _padded(sizes[0])
        position = content + _padded(sizes[1])
        if content + sizes[1] > len(data):
            raise InputError(f"the notes of section {section.index} ({section.name}) are cut short")
        if data[name : name + sizes[0]].rstrip(b"\0") == owner.encode():
            yield data[content : content + sizes[1]]


def _padded(size: int) -> int:
    return size + -size % 4


def _sections(elf: Any, data: bytes) -> Iterator[ElfSection]:
    with _asking("the header"):
        table, count, size = int(elf["e_shoff"]), elf.num_sections(), int(elf["e_shentsize"])
        segments = int(elf["e_phoff"]) + int(elf["e_phnum"]) * int(elf["e_phentsize"])
        whole = size == _HEADER_BYTES[elf.elfclass] and table + count * size <= len(data)
    if not whole:
        raise InputError(
            f"the table of {count} sections at byte {table} goes beyond the end, "
            f"byte {len(data)}: it is not whole"
        )
    if segments > len(data):
        raise InputError(
            f"the program headers go to byte {segments}, the file ends at byte {len(data)}: "
            "it is not whole"
        )
    for index in range(count):
        place = table + index * size
        with _asking(f"section {index}, whose header is at byte {place},"):
            section = elf.get_section(index)
            header, name, kind = section.header, str(section.name), str(section["sh_type"])
            offset, length = int(header["sh_offset"]), int(header["sh_size"])
        in_file = kind not in {"SHT_NOBITS", "SHT_NULL"}
        if in_file and offset + length > len(data):
            raise InputError(
                f"section {index} ({name}) at byte {offset} has {length} bytes, the file "
                f"ends at byte {len(data)}: it is not whole"
            )
        yield ElfSection(
            name,
            index,
            kind,
            int(header["sh_addr"]),
            offset,
            int(header["sh_link"]),
            int(header["sh_info"]),
            place,
            data[offset : offset + length] if in_file else b"",
        )


def _symbols(elf: Any) -> tuple[ElfSymbol, ...]:
    with _asking("the table of symbols"):
        found = [table for name in _SYMBOL_TABLES if (table := elf.get_section_by_name(name))]
        return tuple(
            ElfSymbol(
                str(symbol.name),
                int(symbol["st_value"]),
                int(symbol["st_size"]),
                symbol["st_shndx"] if isinstance(symbol["st_shndx"], int) else None,
                symbol["st_info"]["type"] == "STT_FUNC",
            )
            for symbol in (found[0].iter_symbols() if found else ())
        )
