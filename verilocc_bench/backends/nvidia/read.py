"""Reads kernels of a cubin: disassembles them and checks NVIDIA's own life ranges.

One kernel is read without the others, so it does not matter if nvdisasm or our
tables do not know something in them. The gate has two steps: what each instruction
defines and uses (`life_range_gate`), and the normalized text that it becomes
(`text_gate`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.nvidia.architectures import architecture_named
from verilocc_bench.backends.nvidia.context_code import copies_of, with_contexts
from verilocc_bench.backends.nvidia.cubin import Cubin, CubinKernel, read_cubin
from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.backends.nvidia.life_range_gate import check_marks
from verilocc_bench.backends.nvidia.life_ranges import LifeRanges, parse_life_ranges
from verilocc_bench.backends.nvidia.normalize import NormalizedSass, normalize_sass
from verilocc_bench.backends.nvidia.one_listing import parted
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.backends.nvidia.text_gate import check_text
from verilocc_bench.backends.nvidia.tools import code_and_life_ranges, disassemble, life_ranges
from verilocc_bench.errors import InputError, MissingExtraError, RejectedKernel
from verilocc_bench.ir import print_function

_OLD_ABI_VERSION = 7
_ABI_VERSION_BYTE = 8
_NEW_IDENTIFICATION = bytes((65, 8))
_SECTION = re.compile(r"^//-+ \.text\.(\S+) +-+$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GatedFunction:
    """A kernel past the first step of the gate, and NVIDIA's life ranges of it.

    Of a kernel with subroutines the life ranges are those of `context_code`.
    """

    function: SassFunction
    ranges: LifeRanges

    def normalized(self, register_limit: int) -> tuple[NormalizedSass, AllocationProblem]:
        """The kernel as an allocation problem, past the last step of the gate.

        `register_limit` is as in normalize_sass. Raises RejectedKernel if the code cannot
        be analysed, or if the normalized text contradicts it or the life ranges.
        """
        normalized = normalize_sass(self.function, register_limit)
        text, label = print_function(normalized.function), normalized.assignment
        checked = check_text(text, label, self.function, self.ranges, register_limit)
        return replace(normalized, function=checked), AllocationProblem(checked, text)


def disassembled_function(data: bytes, source: str | Path, name: str | None = None) -> SassFunction:
    """The only kernel of a cubin for a known architecture, or the one of that name.

    Raises InputError if the data is not a whole cubin for a known architecture or lacks that
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

    Raises InputError if the data is not a whole cubin for a known architecture.
    """
    cubin = _read_cubin(data, source)
    code = _sections(disassemble(_with_new_header(data), source))
    for kernel in cubin.kernels:
        yield kernel, _parsed(code, kernel, source)


def _parsed(code: Mapping[str, str], kernel: CubinKernel, source: str | Path) -> SassFunction | str:
    try:
        return _parse_code(code.get(kernel.name, ""), kernel, source)
    except RejectedKernel as rejection:
        return rejection.reason
    except InputError as error:
        return error.message


def load_kernel(
    data: bytes, source: str | Path, name: str | None = None
) -> tuple[CubinKernel, GatedFunction]:
    """The only kernel of a cubin, or the one of that name.

    Raises the errors of disassembled_function, and RejectedKernel if NVIDIA's own
    life ranges contradict our definitions and uses.
    """
    cubin = _read_cubin(data, source)
    kernel = cubin.kernel(name, source)
    data, selection = _with_new_header(data), _selection(cubin, [kernel])
    code, text = _listings(data, source, [kernel], selection)
    function = _parse_code(code, kernel, source)
    jumping = _with_jumps(data, kernel, function)
    if text is None or jumping != data:
        text = life_ranges(jumping, source, selection)
    return kernel, _Gate(data, source, cubin).gated(kernel, function, text)


def load_kernels(
    data: bytes, source: str | Path
) -> Iterator[tuple[CubinKernel, GatedFunction | str]]:
    """Each kernel of a cubin, or the reason why it cannot be read.

    nvdisasm runs once, and again for a cubin with jumps that are calls, or if it fails. Raises
    InputError if the data is not a whole cubin for a known architecture, and MissingExtraError
    without nvdisasm.
    """
    cubin = _read_cubin(data, source)
    yield from _load_group(_with_new_header(data), source, cubin, cubin.kernels)


def _load_group(
    data: bytes, source: str | Path, cubin: Cubin, kernels: Sequence[CubinKernel]
) -> Iterator[tuple[CubinKernel, GatedFunction | str]]:
    selection = _selection(cubin, kernels)
    try:
        listing, text = _listings(data, source, kernels, selection)
        code = _sections(listing)
        functions = [_parsed(code, kernel, source) for kernel in kernels]
        jumping = data
        for kernel, function in zip(kernels, functions, strict=True):
            if not isinstance(function, str):
                jumping = _with_jumps(jumping, kernel, function)
        if text is None or jumping != data:
            text = life_ranges(jumping, source, selection)
        ranges = _sections(text)
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
    gate = _Gate(data, source, cubin)
    for kernel, function in zip(kernels, functions, strict=True):
        if isinstance(function, str):
            yield kernel, function
            continue
        try:
            yield kernel, gate.gated(kernel, function, ranges.get(kernel.name, ""))
        except RejectedKernel as rejection:
            yield kernel, rejection.reason
        except InputError as error:
            yield kernel, error.message


def _listings(
    data: bytes, source: str | Path, kernels: Sequence[CubinKernel], selection: Sequence[int]
) -> tuple[str, str | None]:
    """What nvdisasm prints with encodings, and with life ranges: None if that must be asked for."""
    code = {each.name: data[each.code_offset :][: each.code_size] for each in kernels}
    try:
        both = parted(code_and_life_ranges(data, source, selection), code)
    except InputError:  # perhaps it is the life ranges alone that fail
        both = None
    return both or (disassemble(data, source, selection), None)


def _with_jumps(data: bytes, kernel: CubinKernel, function: SassFunction) -> bytes:
    """The cubin with each CALL that is a jump made a BRA, unless the kernel has subroutines."""
    try:
        blocks = control_flow(function)
    except RejectedKernel:
        return data  # the gate will say so
    return data if len(copies_of(blocks)) > 1 else with_contexts(data, kernel, function, blocks)


@dataclass(frozen=True, slots=True)
class _Gate:
    """The gate's first step, for the kernels of a cubin."""

    data: bytes
    source: str | Path
    cubin: Cubin

    def gated(self, kernel: CubinKernel, function: SassFunction, text: str) -> GatedFunction:
        """`text` is the output of nvdisasm with life ranges."""
        ranges = self._ranges(function, text)
        disagreement = check_marks(function, ranges)
        if disagreement is not None:
            raise RejectedKernel("life-ranges", f"{function.name}: {disagreement}")
        blocks = control_flow(function)
        if len(copies_of(blocks)) > 1:
            data = with_contexts(self.data, kernel, function, blocks)
            selection = _selection(self.cubin, [kernel])
            ranges = self._ranges(function, life_ranges(data, self.source, selection))
        return GatedFunction(function, ranges)

    def _ranges(self, function: SassFunction, text: str) -> LifeRanges:
        ranges = parse_life_ranges(text, f"{self.source}, its life ranges").get(function.name)
        if ranges is None:
            reason = f"nvdisasm shows no life ranges of {function.name!r}"
            raise RejectedKernel("life-ranges", reason)
        return ranges


def _read_cubin(data: bytes, source: str | Path) -> Cubin:
    cubin = read_cubin(data, source)
    architecture_named(cubin.architecture, source)
    return cubin


def _parse_code(text: str, kernel: CubinKernel, source: str | Path) -> SassFunction:
    for function in parse_sass(text, f"{source}, disassembled"):
        if function.name == kernel.name:
            return replace(function, register_count=kernel.register_count)
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
    flags = architecture_named(read_cubin(data).architecture).flags.to_bytes(4, "little")
    return data[:7] + _NEW_IDENTIFICATION + data[9:0x30] + flags + data[0x34:]
