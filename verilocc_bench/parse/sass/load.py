"""A kernel of a cubin as an allocation problem: disassembled, checked, normalized."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from verilocc_bench.cuda_tools import disassemble, life_ranges
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.parse.cubin import Cubin, CubinKernel, read_cubin
from verilocc_bench.parse.sass.life_range_gate import check_marks
from verilocc_bench.parse.sass.life_ranges import parse_life_ranges
from verilocc_bench.parse.sass.normalize import NormalizedSass, normalize_sass
from verilocc_bench.parse.sass.records import SassFunction
from verilocc_bench.parse.sass.text import parse_sass
from verilocc_bench.targets.sm_80 import SM_80

__all__ = ["disassembled_function", "load_cubin_function", "normalize_cubin", "read_sm_80_cubin"]

_OLD_ABI_VERSION = 7
_ABI_VERSION_BYTE = 8
_NEW_IDENTIFICATION = bytes((65, 8))
_NEW_FLAGS = (0x0A005004).to_bytes(4, "little")


def read_sm_80_cubin(data: bytes, source: str | Path) -> Cubin:
    """What a cubin says of itself. Raises InputError for what is no whole cubin for sm_80."""
    cubin = read_cubin(data, source)
    if cubin.architecture != SM_80.name:
        raise InputError(
            f"expected a cubin for {SM_80.name}, this is one for {cubin.architecture}",
            source=source,
        )
    return cubin


def disassembled_function(data: bytes, source: str | Path, name: str | None = None) -> SassFunction:
    """The only kernel of a cubin for sm_80, or the one of that name.

    The cubin's other kernels are not disassembled. Raises InputError for what is
    no whole cubin for sm_80 or has not that one kernel, RejectedKernel for
    instructions whose effects are not known.
    """
    cubin = read_sm_80_cubin(data, source)
    kernel = cubin.kernel(name, source)
    text = disassemble(_with_new_header(data), source, _restriction(cubin, kernel))
    for function in parse_sass(text, f"{source}, disassembled"):
        if function.name == kernel.name:
            return function
    raise InputError(f"nvdisasm shows no code of the kernel {kernel.name!r}", source=source)


def load_cubin_function(data: bytes, source: str | Path, name: str | None = None) -> SassFunction:
    """As disassembled_function, past the gate.

    Raises RejectedKernel for a kernel of which NVIDIA's own life ranges tell
    another story than we do.
    """
    function = disassembled_function(data, source, name)
    cubin = read_cubin(data, source)
    restriction = _restriction(cubin, cubin.kernel(name, source))
    text = life_ranges(_with_new_header(data), source, restriction)
    ranges = parse_life_ranges(text, f"{source}, its life ranges").get(function.name)
    if ranges is None:
        raise InputError(f"nvdisasm shows no life ranges of {function.name!r}", source=source)
    disagreement = check_marks(function, ranges)
    if disagreement is not None:
        raise RejectedKernel("life-ranges", f"{function.name}: {disagreement}")
    return function


def normalize_cubin(
    data: bytes, source: str | Path, name: str | None = None, max_threads: int | None = None
) -> NormalizedSass:
    """The allocation problem of a kernel; errors as for load_cubin_function.

    The budget follows from the launch bounds in the cubin; `max_threads`
    stands for the block's size there.
    """
    function = load_cubin_function(data, source, name)
    bounds = read_cubin(data, source).kernel(name, source).launch_bounds
    if max_threads is not None:
        bounds = replace(bounds, threads=max_threads)
    return normalize_sass(function, bounds.register_limit)


def _restriction(cubin: Cubin, kernel: CubinKernel) -> int | None:
    """What nvdisasm is told to show of a cubin: the kernel, where there are others too."""
    return kernel.symbol_index if len(cubin.kernels) > 1 else None


def _with_new_header(data: bytes) -> bytes:
    """A cubin of ptxas 12 as ptxas 13 would head it: nvdisasm 13 knows no life ranges of others.

    Three places in the header differ: the identification, its version, the flags.
    """
    if data[_ABI_VERSION_BYTE] != _OLD_ABI_VERSION:
        return data
    return data[:7] + _NEW_IDENTIFICATION + data[9:0x30] + _NEW_FLAGS + data[0x34:]
