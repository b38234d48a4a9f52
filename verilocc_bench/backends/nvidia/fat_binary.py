"""Fat binaries: the container of cubins and PTX that nvcc puts into objects and programs.

A file of its own (`.fatbin`) begins with the container's magic number. A host's object,
library or program is an ELF file of the host's machine that contains it. cuobjdump takes
the cubins out, compressed ones too.
"""

from __future__ import annotations

from pathlib import Path

from verilocc_bench.backends.nvidia.architectures import ARCHITECTURES
from verilocc_bench.backends.nvidia.cubin import choose_kernel, is_cubin, read_cubin
from verilocc_bench.backends.nvidia.tools import extract_cubins
from verilocc_bench.errors import InputError

_MAGIC = 0xBA55ED50.to_bytes(4, "little")
_MACHINE_CUDA = 190
_MACHINE_BYTES = slice(18, 20)


def is_fat_binary(data: bytes) -> bool:
    """True for a fat binary, and for a host's ELF file that contains one."""
    if data.startswith(_MAGIC):
        return True
    machine = int.from_bytes(data[_MACHINE_BYTES], "little")
    return is_cubin(data) and machine != _MACHINE_CUDA and _MAGIC in data


def cubins_of(data: bytes, source: Path, architecture: str | None = None) -> list[bytes]:
    """The cubins of a fat binary for an architecture, or for the first known one that it has.

    Raises InputError if it has none.
    """
    extracted = extract_cubins(data, source)
    wanted = ARCHITECTURES if architecture is None else (architecture,)
    # Code that needs the features of one chip alone is named sm_90a.
    by_name = {name: [c for n, c in extracted if n.removesuffix("a") == name] for name in wanted}
    found = next((cubins for cubins in by_name.values() if cubins), [])
    if not found:
        others = ", ".join(sorted({architecture for architecture, _ in extracted})) or "PTX alone"
        raise InputError(
            f"expected machine code for {' or '.join(by_name)} in the fat binary, it has {others} "
            "(cuobjdump --extract-ptx all writes its PTX, which every command reads)",
            source=source,
        )
    return found


def cubin_with(
    data: bytes, source: Path, function: str | None, architecture: str | None = None
) -> bytes:
    """The cubin that has a kernel, or the only kernel. Raises InputError without one."""
    cubins = cubins_of(data, source, architecture)
    owners = [
        (kernel.name, cubin) for cubin in cubins for kernel in read_cubin(cubin, source).kernels
    ]
    names = [name for name, _ in owners]
    chosen = choose_kernel(names, function, source)
    if names.count(names[chosen]) > 1:
        raise InputError(
            f"several cubins have a kernel {names[chosen]!r}: expected one of them alone "
            "(cuobjdump --extract-elf all writes each to a file)",
            source=source,
        )
    return owners[chosen][1]
