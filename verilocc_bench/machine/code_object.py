"""Code objects of AMD's ROCm: kernels, their descriptors and their arguments.

A code object is an ELF file. Each kernel has a function symbol, a descriptor of
64 bytes (symbol `NAME.kd`) and an entry in the note `AMDGPU`, in MessagePack.
Source: LLVM, "User Guide for AMDGPU Backend", sections "Kernel Descriptor" and
"Code Object V5 Metadata".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from verilocc_bench.elf import MAGIC, ElfFile, ElfSection, ElfSymbol, read_elf, read_notes
from verilocc_bench.errors import InputError, MissingExtraError

_T = TypeVar("_T")

ARCHITECTURES = {0x3F: "gfx90a", 0x4C: "gfx942"}
"""By the low byte of the ELF file's flags."""

_DESCRIPTOR_BYTES = 64
_AMDGPU = b"\xe0\x00"  # EM_AMDGPU, in the field e_machine
_MACHINE_FIELD = slice(18, 20)
_EXTRA = "execute"


@dataclass(frozen=True, slots=True)
class KernelArgument:
    """One argument: its place in the kernarg segment, and what it is (`global_buffer`,
    `by_value`, `hidden_…`)."""

    offset: int
    size: int
    kind: str
    name: str | None


@dataclass(frozen=True, slots=True)
class Descriptor:
    """What a kernel descriptor says of the state at entry. Sizes are in bytes."""

    lds_bytes: int
    scratch_bytes: int
    kernarg_bytes: int
    vector_registers: int
    accumulator_offset: int
    user_scalars: int
    private_segment_buffer: bool
    dispatch_pointer: bool
    queue_pointer: bool
    kernarg_pointer: bool
    dispatch_id: bool
    flat_scratch_init: bool
    private_segment_size: bool
    preload_length: int
    preload_offset: int
    private_segment: bool
    work_group_ids: tuple[bool, bool, bool]
    work_group_info: bool
    work_item_dimensions: int
    float_mode: int
    ieee: bool
    dx10_clamp: bool
    clamps_overflow: bool


@dataclass(frozen=True, slots=True)
class KernelCode:
    """A kernel of a code object. `entry` is the address of its first instruction in `section`."""

    name: str
    arch: str
    section: str
    entry: int
    size: int
    descriptor: Descriptor
    arguments: tuple[KernelArgument, ...]
    largest_work_group: int


@dataclass(frozen=True, slots=True)
class CodeObject:
    """A code object: its bytes and its kernels by name."""

    data: bytes
    arch: str
    kernels: dict[str, KernelCode]

    def kernel(self, name: str | None = None) -> KernelCode:
        """The kernel of that name, or the only one. Raises InputError where there is none."""
        if name is None and len(self.kernels) == 1:
            return next(iter(self.kernels.values()))
        if name is None or name not in self.kernels:
            raise InputError(
                f"expected the name of one of the kernels {', '.join(self.kernels)}, got {name!r}"
            )
        return self.kernels[name]


def is_code_object(data: bytes) -> bool:
    """True for the bytes of an ELF file for AMD's GPUs."""
    return data.startswith(MAGIC) and data[_MACHINE_FIELD] == _AMDGPU


def load_code_object(data: bytes) -> CodeObject:
    """The kernels of a code object for gfx90a or gfx942.

    Raises InputError for other and for damaged files, and for code with relocations
    that execution would need; MissingExtraError without pyelftools or msgpack.
    """
    file = read_elf(data, _EXTRA)
    if file.machine != "EM_AMDGPU":
        raise InputError("expected a code object for AMDGPU, got another ELF file")
    arch = ARCHITECTURES.get(file.flags & 0xFF)
    if arch is None:
        raise InputError(
            f"expected code for {' or '.join(ARCHITECTURES.values())}, "
            f"got processor 0x{file.flags & 0xFF:x}"
        )
    # Code that a linker has to patch is refused; the descriptors' own entries are known.
    for section in file.sections:
        if section.kind not in {"SHT_RELA", "SHT_REL"} or not section.data:
            continue
        patched = [each.name for each in file.sections if each.index == section.info]
        if not patched or patched[0].startswith(".text"):
            raise InputError(
                f"{section.name} patches {' '.join(patched) or 'no section'}: expected linked "
                "code, as `lower -o FILE.co` writes"
            )
    symbols = {symbol.name: symbol for symbol in file.symbols}
    kernels = {
        kernel.name: kernel
        for metadata in _metadata(file)
        for kernel in [_kernel(file, arch, symbols, metadata)]
    }
    if not kernels:
        raise InputError("the code object has no kernel")
    return CodeObject(data, arch, kernels)


def code_of(data: bytes, kernel: KernelCode) -> bytes:
    """The machine code of a kernel of the code object `data`."""
    section = _section(read_elf(data, _EXTRA), kernel.section)
    start = kernel.entry - section.address
    return section.data[start : start + kernel.size]


def section_of(data: bytes, name: str) -> bytes:
    """The contents of a section. Raises InputError if there is none."""
    return _section(read_elf(data, _EXTRA), name).data


def _section(file: ElfFile, name: str) -> ElfSection:
    section = file.section(name)
    if section is None:
        raise InputError(f"the object has no section {name}")
    return section


def _metadata(file: ElfFile) -> Iterator[Mapping[str, Any]]:
    """What the notes say of each kernel."""
    try:
        import msgpack
    except ModuleNotFoundError:
        raise MissingExtraError("msgpack", _EXTRA, "code objects") from None
    for section in file.sections:
        for note in read_notes(section, "AMDGPU") if section.kind == "SHT_NOTE" else ():
            try:
                content = msgpack.unpackb(note)
            except (ValueError, TypeError, msgpack.UnpackException) as error:
                raise InputError(f"the note AMDGPU is not MessagePack: {error}") from None
            if not isinstance(content, dict):
                raise InputError("expected a map in the note AMDGPU")
            yield from _maps(content, "amdhsa.kernels")


def _maps(content: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    """A list of maps; an empty one where there is none."""
    found = content.get(key, [])
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise InputError(f"expected a list of maps as {key} in the note AMDGPU")
    return found


def _entry(content: Mapping[str, Any], key: str, kind: type[_T]) -> _T:
    """An entry of that type; a number is not negative and has at most 32 bits."""
    value = content.get(key)
    if not isinstance(value, kind) or (isinstance(value, int) and not 0 <= value < 1 << 32):
        raise InputError(f"no {kind.__name__} as {key} in the note AMDGPU: {str(value)[:40]!r}")
    return value


def _kernel(
    file: ElfFile, arch: str, symbols: Mapping[str, ElfSymbol], metadata: Mapping[str, Any]
) -> KernelCode:
    name = _entry(metadata, ".name", str)
    section, entry = _place(file, symbols, name)
    home, start = _place(file, symbols, f"{name}.kd")
    arguments = tuple(
        KernelArgument(
            _entry(each, ".offset", int),
            _entry(each, ".size", int),
            _entry(each, ".value_kind", str),
            _entry(each, ".name", str) if ".name" in each else None,
        )
        for each in _maps(metadata, ".args")
    )
    size = symbols[name].size or _bytes_after(section, symbols[name], symbols)
    if entry + size > len(section.data):
        raise InputError(f"the code of kernel {name[:60]!r} goes beyond section {section.name}")
    key = ".max_flat_workgroup_size"
    return KernelCode(
        name=name,
        arch=arch,
        section=section.name,
        entry=section.address + entry,
        size=size,
        descriptor=_descriptor(home.data[start : start + _DESCRIPTOR_BYTES], arch),
        arguments=arguments,
        largest_work_group=_entry(metadata, key, int) if key in metadata else 1024,
    )


def _place(file: ElfFile, symbols: Mapping[str, ElfSymbol], name: str) -> tuple[ElfSection, int]:
    """The section of a symbol, and the symbol's place in its data."""
    symbol = symbols.get(name)
    if symbol is None:
        raise InputError(f"the code object has no symbol {name[:60]!r}")
    if symbol.section is None or symbol.section >= len(file.sections):
        raise InputError(f"symbol {name[:60]!r} stands in no section")
    section = file.sections[symbol.section]
    place = symbol.value - section.address
    if not 0 <= place < len(section.data):
        raise InputError(f"symbol {name[:60]!r} lies outside of its section {section.name}")
    return section, place


def _bytes_after(section: ElfSection, function: ElfSymbol, symbols: Mapping[str, ElfSymbol]) -> int:
    """The bytes to the next function, or to the end of the section.

    Functions written by hand often have no size of their own.
    """
    ends = [
        symbol.value
        for symbol in symbols.values()
        if symbol.is_function and symbol.section == function.section
    ]
    ends.append(section.address + len(section.data))
    return min((end for end in ends if end > function.value), default=function.value) - (
        function.value
    )


def _descriptor(raw: bytes, arch: str) -> Descriptor:
    if len(raw) != _DESCRIPTOR_BYTES:
        raise InputError("a kernel descriptor is cut short")

    def number(offset: int, size: int = 4) -> int:
        return int.from_bytes(raw[offset : offset + size], "little")

    rsrc3, rsrc1, rsrc2 = number(44), number(48), number(52)
    properties, preload = number(56, 2), number(58, 2)
    if properties & (1 << 10):
        raise InputError(f"expected waves of 64 lanes: {arch} has no others")
    return Descriptor(
        lds_bytes=number(0),
        scratch_bytes=number(4),
        kernarg_bytes=number(8),
        vector_registers=((rsrc1 & 63) + 1) * 8,
        accumulator_offset=((rsrc3 & 63) + 1) * 4,
        user_scalars=rsrc2 >> 1 & 31,
        private_segment_buffer=bool(properties & 1),
        dispatch_pointer=bool(properties & 2),
        queue_pointer=bool(properties & 4),
        kernarg_pointer=bool(properties & 8),
        dispatch_id=bool(properties & 16),
        flat_scratch_init=bool(properties & 32),
        private_segment_size=bool(properties & 64),
        preload_length=preload & 127,
        preload_offset=preload >> 7,
        private_segment=bool(rsrc2 & 1),
        work_group_ids=(bool(rsrc2 & 128), bool(rsrc2 & 256), bool(rsrc2 & 512)),
        work_group_info=bool(rsrc2 & 1024),
        work_item_dimensions=(rsrc2 >> 11 & 3) + 1,
        float_mode=rsrc1 >> 12 & 0xFF,
        ieee=bool(rsrc1 & 1 << 23),
        dx10_clamp=bool(rsrc1 & 1 << 21),
        clamps_overflow=bool(rsrc1 & 1 << 26),
    )
