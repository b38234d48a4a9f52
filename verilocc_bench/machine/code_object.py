"""Code objects of AMD's ROCm: kernels, their descriptors and their arguments.

A code object is an ELF file. Each kernel has a function symbol, a descriptor of
64 bytes (symbol `NAME.kd`) and an entry in the note `AMDGPU`, in MessagePack.
Source: LLVM, "User Guide for AMDGPU Backend", sections "Kernel Descriptor" and
"Code Object V5 Metadata".
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from verilocc_bench.errors import InputError, MissingExtraError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

ARCHITECTURES = {0x3F: "gfx90a", 0x4C: "gfx942"}
"""By the low byte of the ELF file's flags."""

_DESCRIPTOR_BYTES = 64
_AMDGPU = b"\xe0\x00"  # EM_AMDGPU, in the field e_machine
_MACHINE_FIELD = slice(18, 20)
_NOTE_TYPE = 32


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
    scalar_registers: int
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
    return data[:4] == b"\x7fELF" and data[_MACHINE_FIELD] == _AMDGPU


def load_code_object(data: bytes) -> CodeObject:
    """The kernels of a code object for gfx90a or gfx942.

    Raises InputError for other files, and for code with relocations that
    execution would need; MissingExtraError without pyelftools or msgpack.
    """
    try:
        from elftools.common.exceptions import ELFError
        from elftools.elf.elffile import ELFFile
    except ModuleNotFoundError:
        raise MissingExtraError("pyelftools", "execute", "code objects") from None
    try:
        file = ELFFile(io.BytesIO(data))
        if file["e_machine"] != "EM_AMDGPU":
            raise InputError("expected a code object for AMDGPU, got another ELF file")
        arch = ARCHITECTURES.get(file["e_flags"] & 0xFF)
        if arch is None:
            raise InputError(
                f"expected code for {' or '.join(ARCHITECTURES.values())}, "
                f"got processor 0x{file['e_flags'] & 0xFF:x}"
            )
        _refuse_relocations(file)
        symbols = _symbols(file)
        metadata = {kernel[".name"]: kernel for kernel in _metadata(file)}
        kernels = {name: _kernel(file, arch, name, symbols, metadata[name]) for name in metadata}
    except (ELFError, KeyError, ValueError, TypeError, IndexError) as error:
        raise InputError(f"expected a code object, cannot read it: {error}") from None
    if not kernels:
        raise InputError("the code object has no kernel")
    return CodeObject(data, arch, kernels)


def code_of(data: bytes, kernel: KernelCode) -> bytes:
    """The machine code of a kernel of the code object `data`."""
    file = _elf_file(data)
    section = file.get_section_by_name(kernel.section)
    start = kernel.entry - section["sh_addr"]
    return bytes(section.data()[start : start + kernel.size])


def section_of(data: bytes, name: str) -> bytes:
    """The contents of a section. Raises InputError if there is none."""
    section = _elf_file(data).get_section_by_name(name)
    if section is None:
        raise InputError(f"the object has no section {name}")
    return bytes(section.data())


def _elf_file(data: bytes) -> Any:
    try:
        from elftools.elf.elffile import ELFFile
    except ModuleNotFoundError:
        raise MissingExtraError("pyelftools", "execute", "code objects") from None
    return ELFFile(io.BytesIO(data))


def _refuse_relocations(file: Any) -> None:
    """Code that a linker has to patch is refused; the descriptors' own entries are known."""
    for section in file.iter_sections():
        if section["sh_type"] in {"SHT_RELA", "SHT_REL"} and section.num_relocations():
            patched = file.get_section(section["sh_info"]).name
            if patched.startswith(".text"):
                raise InputError(f"{section.name} patches {patched}: expected linked code")


def _symbols(file: Any) -> dict[str, Any]:
    table = file.get_section_by_name(".symtab") or file.get_section_by_name(".dynsym")
    if table is None:
        raise InputError("the code object has no symbols")
    return {symbol.name: symbol for symbol in table.iter_symbols()}


def _metadata(file: Any) -> Iterator[dict[str, Any]]:
    try:
        import msgpack
    except ModuleNotFoundError:
        raise MissingExtraError("msgpack", "execute", "code objects") from None
    for section in file.iter_sections():
        if section["sh_type"] != "SHT_NOTE":
            continue
        for note in section.iter_notes():
            if note["n_name"] == "AMDGPU":
                content = note["n_descdata"]
                yield from msgpack.unpackb(content).get("amdhsa.kernels", [])


def _kernel(
    file: ELFFile, arch: str, name: str, symbols: dict[str, Any], metadata: dict[str, Any]
) -> KernelCode:
    function, descriptor = symbols[name], symbols[f"{name}.kd"]
    section = file.get_section(function["st_shndx"])
    home = file.get_section(descriptor["st_shndx"])
    start = descriptor["st_value"] - home["sh_addr"]
    raw = home.data()[start : start + _DESCRIPTOR_BYTES]
    arguments = tuple(
        KernelArgument(a[".offset"], a[".size"], a[".value_kind"], a.get(".name"))
        for a in metadata.get(".args", [])
    )
    return KernelCode(
        name=name,
        arch=arch,
        section=section.name,
        entry=function["st_value"],
        size=function["st_size"] or _bytes_after(section, function, symbols),
        descriptor=_descriptor(raw, arch),
        arguments=arguments,
        largest_work_group=metadata.get(".max_flat_workgroup_size", 1024),
    )


def _bytes_after(section: Any, function: Any, symbols: dict[str, Any]) -> int:
    """The bytes to the next function, or to the end of the section.

    Functions written by hand often have no size of their own.
    """
    entry = function["st_value"]
    ends = [
        symbol["st_value"]
        for symbol in symbols.values()
        if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] == function["st_shndx"]
    ]
    ends.append(section["sh_addr"] + section["sh_size"])
    return int(min((end for end in ends if end > entry), default=entry) - entry)


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
        scalar_registers=102,
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
