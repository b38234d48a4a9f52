"""Reads kernels of a cubin: disassembles them and checks NVIDIA's own life ranges.

One kernel is read without the others, so it does not matter if nvdisasm or our
tables do not know something in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from verilocc_bench.backends.nvidia.cubin import Cubin, CubinKernel, read_cubin
from verilocc_bench.backends.nvidia.life_range_gate import check_marks
from verilocc_bench.backends.nvidia.life_ranges import parse_life_ranges
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.backends.nvidia.tools import disassemble, life_ranges
from verilocc_bench.errors import InputError, MissingExtraError, RejectedKernel
from verilocc_bench.targets.sm_80 import SM_80

_OLD_ABI_VERSION = 7
_ABI_VERSION_BYTE = 8
_NEW_IDENTIFICATION = bytes((65, 8))
_NEW_FLAGS = (0x0A005004).to_bytes(4, "little")
_SECTION = re.compile(r"^//-+ \.text\.(\S+) +-+$", re.MULTILINE)


def disassembled_function(data: bytes, source: str | Path, name: str | None = None) -> SassFunction:
    """The only kernel of a cubin for sm_80, or the one of that name.

    Raises InputError if the data is not a whole cubin for sm_80 or lacks that
    kernel, and RejectedKernel for instructions with unknown effects.
    """
    cubin = _read_cubin(data, source)
    kernel = cubin.kernel(name, source)
    text = disassemble(_with_new_header(data), source, _selection(cubin, [kernel]))
    return _parse_code(text, kernel, source)


def disassembled_functions(
    data: bytes, source: str | Path
) -> Iterator[tuple[CubinKernel, SassFunction | str]]:
    """Each kernel of a cubin, not past the gate, or the reason why it cannot be read.

    Raises InputError if the data is not a whole cubin for sm_80.
    """
    cubin = _read_cubin(data, source)
    code = _sections(disassemble(_with_new_header(data), source))
    for kernel in cubin.kernels:
        try:
            yield kernel, _parse_code(code.get(kernel.name, ""), kernel, source)
        except RejectedKernel as rejection:
            yield kernel, rejection.reason
        except InputError as error:
            yield kernel, error.message


def load_kernel(
    data: bytes, source: str | Path, name: str | None = None
) -> tuple[CubinKernel, SassFunction]:
    """The only kernel of a cubin, or the one of that name, past the gate.

    Raises the errors of disassembled_function, and RejectedKernel if NVIDIA's own
    life ranges contradict our definitions and uses.
    """
    cubin = _read_cubin(data, source)
    kernel = cubin.kernel(name, source)
    data, selection = _with_new_header(data), _selection(cubin, [kernel])
    function = _parse_code(disassemble(data, source, selection), kernel, source)
    check_life_ranges(function, life_ranges(data, source, selection), source)
    return kernel, function


def load_kernels(
    data: bytes, source: str | Path
) -> Iterator[tuple[CubinKernel, SassFunction | str]]:
    """Each kernel of a cubin past the gate, or the reason why it cannot be read.

    nvdisasm runs twice, and more often only if it fails. Raises InputError if the
    data is not a whole cubin for sm_80, and MissingExtraError without nvdisasm.
    """
    cubin = _read_cubin(data, source)
    yield from _load_group(_with_new_header(data), source, cubin, cubin.kernels)


def _load_group(
    data: bytes, source: str | Path, cubin: Cubin, kernels: Sequence[CubinKernel]
) -> Iterator[tuple[CubinKernel, SassFunction | str]]:
    selection = _selection(cubin, kernels)
    try:
        code = _sections(disassemble(data, source, selection))
        ranges = _sections(life_ranges(data, source, selection))
    except MissingExtraError:
        raise
    except InputError as error:
        if len(kernels) == 1:
            yield kernels[0], error.message
            return
        middle = len(kernels) // 2
        for half in (kernels[:middle], kernels[middle:]):
            yield from _load_group(data, source, cubin, half)
        return
    for kernel in kernels:
        try:
            function = _parse_code(code.get(kernel.name, ""), kernel, source)
            check_life_ranges(function, ranges.get(kernel.name, ""), source)
        except RejectedKernel as rejection:
            yield kernel, rejection.reason
        except InputError as error:
            yield kernel, error.message
        else:
            yield kernel, function


def check_life_ranges(function: SassFunction, text: str, source: str | Path) -> None:
    """The gate: raises RejectedKernel if the life ranges contradict our reading of the function.

    `text` is the output of nvdisasm with `--print-life-ranges`.
    """
    ranges = parse_life_ranges(text, f"{source}, its life ranges").get(function.name)
    if ranges is None:
        raise RejectedKernel("life-ranges", f"nvdisasm shows no life ranges of {function.name!r}")
    disagreement = check_marks(function, ranges)
    if disagreement is not None:
        raise RejectedKernel("life-ranges", f"{function.name}: {disagreement}")


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


def _sections(text: str) -> dict[str, str]:
    """The output of nvdisasm for each function, each with the text before the first one."""
    starts = [*_SECTION.finditer(text)]
    ends = [match.start() for match in starts[1:]] + [len(text)]
    head = text[: starts[0].start()] if starts else ""
    return {
        match[1]: head + text[match.start() : end] for match, end in zip(starts, ends, strict=True)
    }


def _selection(cubin: Cubin, kernels: Sequence[CubinKernel]) -> list[int]:
    """The symbols that nvdisasm must show; empty for all."""
    if len(kernels) == len(cubin.kernels):
        return []
    return [kernel.symbol_index for kernel in kernels]


def _with_new_header(data: bytes) -> bytes:
    """A cubin of ptxas 12 with the header of ptxas 13: nvdisasm 13 needs it for life ranges.

    Three parts of the header differ: the identification, its version, the flags.
    """
    if data[_ABI_VERSION_BYTE] != _OLD_ABI_VERSION:
        return data
    return data[:7] + _NEW_IDENTIFICATION + data[9:0x30] + _NEW_FLAGS + data[0x34:]
