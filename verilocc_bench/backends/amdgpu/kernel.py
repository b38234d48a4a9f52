"""Kernels of machine IR as allocation problems, from files and from raw rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu.machine import MachineFunction, MachineModule
from verilocc_bench.backends.amdgpu.mir_gate import normalized_problem
from verilocc_bench.backends.amdgpu.normalize import (
    NormalizedMachineFunction,
    normalize_machine_function,
)
from verilocc_bench.backends.amdgpu.read import MirFile
from verilocc_bench.backends.amdgpu.recovery.gates import check_encoding, check_virtual_registers
from verilocc_bench.backends.amdgpu.recovery.recover import recover_kernel
from verilocc_bench.backends.amdgpu.tools import SELECTION_OPTIONS, LlcFailed, run_llc
from verilocc_bench.backends.kernel import Kernel, ReadOptions
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import decode_text
from verilocc_bench.machine.code_object import KernelCode, is_code_object, load_code_object
from verilocc_bench.targets import Target, get_target
from verilocc_bench.verification import FastVerifier

_LLVM_IR = re.compile(r"^define\s.*\{\s*$", re.MULTILINE)
_TARGET_CPU = re.compile(r'"target-cpu"="(gfx\w+)"')
_VENDOR = "amd"


@dataclass(frozen=True, slots=True)
class MachineCode:
    """The text of a file, its module, one machine function, and that function normalized.

    `max_threads` is the work-group size that the user gave instead of the code's. `llvm_ir`
    is what llc made the text of, if the file holds LLVM IR.
    """

    text: str
    machine: MachineFunction
    module: MachineModule
    normalized: NormalizedMachineFunction
    max_threads: int | None
    llvm_ir: str | None = None


MachineKernel = Kernel[MachineCode]


def read_kernel(data: bytes, source: Path, options: ReadOptions) -> MachineKernel:
    """The function that the options name, or the only one of the file.

    Raises InputError with the line if the file is not machine IR of the target, or
    if this package does not support the function.
    """
    if not is_code_object(data):
        return _kernel(_open(data, source, options), options.function, options.max_threads)
    try:
        code = load_code_object(data).kernel(options.function)
        _check_architecture(code.arch, options, source)
        return recovered_kernel(data, code, str(source), options.max_threads)[0]
    except RejectedKernel as rejection:
        raise InputError(rejection.reason, source=source) from None
    except InputError as error:
        raise error.located(source) from None


def read_kernels(
    data: bytes, source: Path, options: ReadOptions
) -> Iterator[tuple[str, MachineKernel | str]]:
    """Each function of the file by its name, or the reason why it cannot be read."""
    if is_code_object(data):
        yield from _read_code_objects(data, source, options)
        return
    opened = _open(data, source, options)
    for name in opened.file.names:
        try:
            yield name, _kernel(opened, name, options.max_threads)
        except InputError as error:
            yield name, f"line {error.line}: {error.message}" if error.line else error.message


def read_raw_kernel(content: str, problem: AllocationProblem, source: str) -> MachineKernel:
    """The first function of a raw row's text. Raises InputError if it is not `problem`."""
    file = MirFile(content, source)
    kernel = _kernel(_OpenedFile(content, file, problem.target), file.names[0], None)
    if kernel.problem.id != problem.id:
        raise InputError(
            f"the machine IR is of another function, {kernel.problem.id}", source=source
        )
    return kernel


def recovered_kernel(
    data: bytes, code: KernelCode, source: str, max_threads: int | None = None
) -> tuple[MachineKernel, int]:
    """A kernel of a code object, with its registers as the label.

    The second value counts the instructions that llc encodes in another way. Raises
    RejectedKernel if the code cannot be recovered or does not pass a gate
    (`recovery.gates`), and InputError without LLVM's tools.
    """
    recovered = recover_kernel(data, code)
    check_virtual_registers(recovered)
    file = MirFile(recovered.text, source)
    try:
        opened = _OpenedFile(recovered.text, file, get_target(code.arch))
        kernel = _kernel(opened, None, max_threads)
    except InputError as error:
        raise RejectedKernel("machine-ir", error.message) from None
    label = {
        number: recovered.bases[int(name[1:])] for number, name in enumerate(kernel.original_names)
    }
    answer = answer_from_assignment(kernel.problem, label)
    verdict = FastVerifier(kernel.problem).verify(answer)
    if not verdict.valid:
        raise RejectedKernel("label-contradicts-text", verdict.findings[0].message)
    parts = kernel.code
    others = check_encoding(recovered, parts.machine, parts.normalized, label)
    return replace(kernel, name=code.name, label=answer), others


def _read_code_objects(
    data: bytes, source: Path, options: ReadOptions
) -> Iterator[tuple[str, MachineKernel | str]]:
    try:
        code_object = load_code_object(data)
    except InputError as error:
        raise error.located(source) from None
    _check_architecture(code_object.arch, options, source)
    for name, code in code_object.kernels.items():
        try:
            yield name, recovered_kernel(data, code, str(source), options.max_threads)[0]
        except RejectedKernel as rejection:
            yield name, rejection.reason


def _check_architecture(arch: str, options: ReadOptions, source: Path) -> None:
    if options.arch is not None and get_target(options.arch).name != arch:
        raise InputError(f"expected code for {options.arch}, this is for {arch}", source=source)


def check_work_group(kernel: MachineKernel) -> None:
    """Raises InputError if `--max-threads` gave the kernel more registers than its code allows.

    The code keeps its own work-group size. The kernel could not be launched with
    more registers than that size allows.
    """
    code = kernel.code
    if code.max_threads is None:
        return
    own = normalize_machine_function(
        code.machine, code.module, kernel.problem.target, source=kernel.source
    )
    for file, asked in zip(own.function.files, kernel.problem.function.files, strict=True):
        if asked.count > file.count:
            raise InputError(
                f"--max-threads leaves {asked.count} registers in {file.name!r}, but the code's "
                f"own work-group size only {file.count}",
                source=kernel.source,
            )


@dataclass(frozen=True, slots=True)
class _OpenedFile:
    """A file of machine IR, as text and cut into functions; `llvm_ir` as in MachineCode."""

    text: str
    file: MirFile
    target: Target
    llvm_ir: str | None = None


def _open(data: bytes, source: Path, options: ReadOptions) -> _OpenedFile:
    text = decode_text(data, source)
    llvm_ir = text if is_llvm_ir(text) else None
    arch = options.arch
    if arch is None and llvm_ir is not None and (named := _TARGET_CPU.search(text)):
        arch = named[1]
    if arch is None:
        raise InputError(
            "expected a cubin, PTX, or machine IR or LLVM IR with --arch; other files hold no "
            "machine code",
            source=source,
        )
    target = get_target(arch)
    if target.vendor != _VENDOR:
        raise InputError(f"expected a cubin for {target.name}, this is text", source=source)
    if llvm_ir is not None:
        try:
            made = run_llc(llvm_ir, target.name, "asm", SELECTION_OPTIONS, input_name="kernel.ll")
        except LlcFailed as failure:
            raise InputError(failure.message, source=source) from None
        text = made.decode()
    with _lines_of_llc(llvm_ir, source):
        return _OpenedFile(text, MirFile(text, str(source)), target, llvm_ir)


@contextmanager
def _lines_of_llc(llvm_ir: str | None, source: str | Path) -> Iterator[None]:
    """A file of LLVM IR does not have the lines of the machine IR that llc makes of it."""
    try:
        yield
    except InputError as error:
        if llvm_ir is None or error.line is None:
            raise
        place = f"line {error.line} of the machine IR that llc makes of it"
        raise InputError(f"{error.message}, in {place}", source=source) from None


def is_llvm_ir(text: str) -> bool:
    """True for the text of LLVM IR; machine IR has such text only inside a YAML document."""
    return not text.lstrip().startswith("---") and _LLVM_IR.search(text) is not None


def _kernel(opened: _OpenedFile, name: str | None, max_threads: int | None) -> MachineKernel:
    file, target = opened.file, opened.target
    with _lines_of_llc(opened.llvm_ir, file.source):
        machine = file.function(name)
        normalized, problem = normalized_problem(
            opened.text, machine, file.module, target, max_threads=max_threads, source=file.source
        )
    code = MachineCode(opened.text, machine, file.module, normalized, max_threads, opened.llvm_ir)
    return Kernel(
        name=normalized.name,
        problem=problem,
        original_names=normalized.original_names,
        label=None,
        source=file.source,
        code=code,
    )
