"""Kernels of a cubin as allocation problems: disassembled, checked, normalized.

One kernel is read without the others: what nvdisasm or our tables do not know
in them does not matter to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from verilocc_bench.cuda_tools import disassemble, life_ranges
from verilocc_bench.errors import InputError, MissingExtraError, RejectedKernel
from verilocc_bench.parse.cubin import Cubin, CubinKernel, read_cubin
from verilocc_bench.parse.sass.life_range_gate import check_marks
from verilocc_bench.parse.sass.life_ranges import parse_life_ranges
from verilocc_bench.parse.sass.normalize import NormalizedSass, normalize_sass
from verilocc_bench.parse.sass.records import SassFunction
from verilocc_bench.parse.sass.text import parse_sass
from verilocc_bench.targets.sm_80 import SM_80

__all__ = [
    "disassembled_function",
    "load_cubin_function",
    "normalize_cubin",
    "normalize_kernels",
]

_OLD_ABI_VERSION = 7
_ABI_VERSION_BYTE = 8
_NEW_IDENTIFICATION = bytes((65, 8))
_NEW_FLAGS = (0x0A005004).to_bytes(4, "little")
_SECTION = re.compile(r"^//-+ \.text\.(\S+) +-+$", re.MULTILINE)


def disassembled_function(data: bytes, source: str | Path, name: str | None = None) -> SassFunction:
    """The only kernel of a cubin for sm_80, or the one of that name.

    Raises InputError for what is no whole cubin for sm_80 or has not that one
    kernel, RejectedKernel for instructions whose effects are not known.
    """
    cubin = _read_cubin(data, source)
    kernel = cubin.kernel(name, source)
    text = disassemble(_with_new_header(data), source, _selection(cubin, [kernel]))
    return _parse_code(text, kernel, source)


def load_cubin_function(data: bytes, source: str | Path, name: str | None = None) -> SassFunction:
    """As disassembled_function, past the gate.

    Raises RejectedKernel for a kernel of which NVIDIA's own life ranges tell
    another story than we do.
    """
    cubin = _read_cubin(data, source)
    kernel = cubin.kernel(name, source)
    data, selection = _with_new_header(data), _selection(cubin, [kernel])
    function = _parse_code(disassemble(data, source, selection), kernel, source)
    _check(function, life_ranges(data, source, selection), source)
    return function


def normalize_cubin(
    data: bytes, source: str | Path, name: str | None = None, max_threads: int | None = None
) -> NormalizedSass:
    """The allocation problem of a kernel; errors as for load_cubin_function.

    The budget follows from the launch bounds in the cubin; `max_threads`
    stands for the block's size there.
    """
    function = load_cubin_function(data, source, name)
    kernel = _read_cubin(data, source).kernel(name, source)
    return _normalize(function, kernel, max_threads)


def normalize_kernels(
    data: bytes, source: str | Path, max_threads: int | None = None
) -> Iterator[tuple[str, NormalizedSass | str]]:
    """Each kernel's name with its allocation problem, or the reason why there is none.

    nvdisasm runs twice, and more often only where it fails. Raises InputError
    for what is no whole cubin for sm_80, MissingExtraError without nvdisasm.
    """
    cubin = _read_cubin(data, source)
    yield from _normalize_group(_with_new_header(data), source, cubin, cubin.kernels, max_threads)


def _normalize_group(
    data: bytes,
    source: str | Path,
    cubin: Cubin,
    kernels: Sequence[CubinKernel],
    max_threads: int | None,
) -> Iterator[tuple[str, NormalizedSass | str]]:
    selection = _selection(cubin, kernels)
    try:
        code = _sections(disassemble(data, source, selection))
        ranges = _sections(life_ranges(data, source, selection))
    except MissingExtraError:
        raise
    except InputError as error:
        if len(kernels) == 1:
            yield kernels[0].name, error.message
            return
        middle = len(kernels) // 2
        for half in (kernels[:middle], kernels[middle:]):
            yield from _normalize_group(data, source, cubin, half, max_threads)
        return
    for kernel in kernels:
        try:
            function = _parse_code(code.get(kernel.name, ""), kernel, source)
            _check(function, ranges.get(kernel.name, ""), source)
            yield kernel.name, _normalize(function, kernel, max_threads)
        except RejectedKernel as rejection:
            yield kernel.name, rejection.reason
        except InputError as error:
            yield kernel.name, error.message


def _read_cubin(data: bytes, source: str | Path) -> Cubin:
    cubin = read_cubin(data, source)
    if cubin.architecture != SM_80.name:
        raise InputError(
            f"expected a cubin for {SM_80.name}, this is one for {cubin.architecture}",
            source=source,
        )
    return cubin


def _parse_code(text: str, kernel: CubinKernel, source: str | Path) -> SassFunction:
    for function in parse_sass(text, f"{source}, disassembled"):
        if function.name == kernel.name:
            return function
    raise InputError(f"nvdisasm shows no code of the kernel {kernel.name!r}", source=source)


def _check(function: SassFunction, text: str, source: str | Path) -> None:
    """Raises RejectedKernel where the life ranges differ from our reading of the function."""
    ranges = parse_life_ranges(text, f"{source}, its life ranges").get(function.name)
    if ranges is None:
        raise InputError(f"nvdisasm shows no life ranges of {function.name!r}", source=source)
    disagreement = check_marks(function, ranges)
    if disagreement is not None:
        raise RejectedKernel("life-ranges", f"{function.name}: {disagreement}")


def _normalize(
    function: SassFunction, kernel: CubinKernel, max_threads: int | None
) -> NormalizedSass:
    bounds = kernel.launch_bounds
    if max_threads is not None:
        bounds = replace(bounds, threads=max_threads)
    return normalize_sass(function, bounds.register_limit)


def _sections(text: str) -> dict[str, str]:
    """What nvdisasm prints of each function, with what stands before the first one."""
    starts = [*_SECTION.finditer(text)]
    ends = [match.start() for match in starts[1:]] + [len(text)]
    head = text[: starts[0].start()] if starts else ""
    return {
        match[1]: head + text[match.start() : end] for match, end in zip(starts, ends, strict=True)
    }


def _selection(cubin: Cubin, kernels: Sequence[CubinKernel]) -> list[int]:
    """What nvdisasm is told to show; nothing where it is all that there is."""
    if len(kernels) == len(cubin.kernels):
        return []
    return [kernel.symbol_index for kernel in kernels]


def _with_new_header(data: bytes) -> bytes:
    """A cubin of ptxas 12 as ptxas 13 would head it: nvdisasm 13 knows no life ranges of others.

    Three places in the header differ: the identification, its version, the flags.
    """
    if data[_ABI_VERSION_BYTE] != _OLD_ABI_VERSION:
        return data
    return data[:7] + _NEW_IDENTIFICATION + data[9:0x30] + _NEW_FLAGS + data[0x34:]
