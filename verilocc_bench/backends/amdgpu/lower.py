"""Writes an answer to a file: as machine IR, or as llc's output from it.

llc's own answer to LLVM IR is what llc compiles itself: code that went through printed
machine IR differs from it in places, because the text does not keep the order in which a
block's predecessors were joined.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from verilocc_bench.analysis.resolved_answer import resolve_answer
from verilocc_bench.backends.amdgpu.dynamic_memory import llc_output
from verilocc_bench.backends.amdgpu.kernel import MachineKernel, check_work_group
from verilocc_bench.backends.amdgpu.kernel_definition import (
    UNKNOWN_ARGUMENTS,
    lacks_definition,
    with_definitions,
)
from verilocc_bench.backends.amdgpu.label import LlcInput, compiler_answer, own_input
from verilocc_bench.backends.amdgpu.linking import check_linker, linked
from verilocc_bench.backends.amdgpu.tools import (
    LLC_OPTIONS,
    find_llc,
    llc_version,
    machine_code_counts,
    run_llc,
)
from verilocc_bench.backends.amdgpu.write_back import LoweredMir, write_assignment
from verilocc_bench.backends.kernel import LoweredCode
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.files import is_stream
from verilocc_bench.machine.disassembly import find_objdump, refuse_undecodable

_CODE_OBJECTS = (".co", ".hsaco")
_KINDS = {".s": "asm", ".o": "obj", ".mir": None, **dict.fromkeys(_CODE_OBJECTS, "obj")}
"""llc's name for each kind of file; machine IR needs no llc, a code object is linked."""


def check_output(output: Path) -> None:
    """Raises InputError for an unknown kind of file, or for missing tools that it needs."""
    if _kind(output) is not None:
        find_llc()
        find_objdump()
    if output.suffix in _CODE_OBJECTS:
        check_linker()


def lower(kernel: MachineKernel, answer: Answer, output: Path) -> LoweredCode:
    """Machine IR, assembly, an object file or a code object with a verified answer in it.

    The code is assembled and disassembled, whatever is written: bytes that the target does
    not have are an error.

    The name of `output` decides the kind: `.mir`, `.s`, `.o`, `.co` or `.hsaco`; a stream gets
    assembly. Raises InputError if the answer cannot be lowered or llc refuses it.
    """
    kind = _kind(output)
    lowered = write_answer(kernel, answer)
    data: str | bytes = lowered.text
    counts: dict[str, int] | None = None
    options: list[str] | None = None
    if kind is not None:
        code = code_input(kernel, answer, lowered)
        options = list(code.options)
        assembly = run_llc_on(kernel, code, "asm")
        object_file = run_llc_on(kernel, code, "obj")
        try:
            refuse_undecodable(object_file, kernel.problem.target.name)
        except InputError as error:
            raise error.located(kernel.source) from None
        data = assembly if kind == "asm" else object_file
        if output.suffix in _CODE_OBJECTS:
            data = linked(object_file)
        counts = machine_code_counts(assembly.decode(), lowered.function)
    document = {
        "function": lowered.function,
        "arch": kernel.problem.target.name,
        "instructions": lowered.instructions,
        "identity_copies": lowered.identity_copies,
        "inserted": lowered.inserted,
        "registers": dict(lowered.registers),
        "output": str(output),
        "machine_code": counts,
        "llc_version": llc_version() if kind is not None else None,
        "llc_options": options,
        "missing": UNKNOWN_ARGUMENTS if lacks_definition(kernel.code) else None,
    }
    return LoweredCode(data, document, _lines(document))


def write_answer(kernel: MachineKernel, answer: Answer) -> LoweredMir:
    """The machine IR with a verified answer in it. Raises InputError if it cannot be lowered."""
    check_work_group(kernel)
    resolved = resolve_answer(kernel.problem, answer)
    lowered = write_assignment(
        kernel.code.text,
        kernel.code.machine,
        kernel.code.normalized,
        resolved.registers,
        edited=resolved.edited,
        source=kernel.source,
    )
    if lacks_definition(kernel.code):
        return replace(lowered, text=with_definitions(lowered.text))
    return lowered


def code_input(kernel: MachineKernel, answer: Answer, lowered: LoweredMir) -> LlcInput:
    """What llc makes the code of an answer from: `lowered`, or for its own answer the LLVM IR."""
    if kernel.code.llvm_ir is not None and not answer.has_edits:
        try:
            own, _ = compiler_answer(kernel)
        except InputError:
            own = {}
        if own == answer.assignment:
            return own_input(kernel)
    return lowered_input(lowered)


def lowered_input(lowered: LoweredMir) -> LlcInput:
    """What llc makes the code of an answer from that is written into machine IR."""
    return LlcInput(lowered.text, "kernel.mir", (*LLC_OPTIONS, *lowered.llc_options))


def run_llc_on(kernel: MachineKernel, code: LlcInput, kind: str) -> bytes:
    """llc's output for a text of the kernel. `kind` is asm or obj. Errors name the kernel."""
    arch = kernel.problem.target.name

    def run(chosen: str) -> bytes:
        return run_llc(code.text, arch, chosen, code.options, input_name=code.file_name)

    try:
        if code.file_name.endswith(".ll"):
            return run(kind)
        return llc_output(code.text, arch, kind, run)
    except InputError as error:
        raise error.located(kernel.source) from None


def _kind(output: Path) -> str | None:
    suffix = output.suffix
    if suffix not in _KINDS and is_stream(output):
        suffix = ".s"
    if suffix not in _KINDS:
        raise InputError(
            "expected a name that ends in .s (assembly), .o (object file), .co or .hsaco (code "
            "object), or .mir (machine IR)",
            source=output,
        )
    return _KINDS[suffix]


def _lines(document: dict[str, Any]) -> tuple[str, ...]:
    registers = ", ".join(f"{file} {count}" for file, count in document["registers"].items())
    lines = [
        f"{document['function']}: {document['instructions']} instructions of machine IR, "
        f"{_counted(document['identity_copies'], 'identity copy', 'identity copies')} went away, "
        f"{_counted(document['inserted'], 'edit', 'edits')}; registers {registers}"
    ]
    if document["llc_version"] is not None:
        verified = "-verify-machineinstrs" in document["llc_options"]
        said = "and its machine verifier accept it" if verified else "gives these registers itself"
        lines.append(f"llc {document['llc_version']} {said}")
    if document["machine_code"]:
        found = ", ".join(f"{name} {count}" for name, count in document["machine_code"].items())
        lines.append(f"the machine code says: {found}")
    if document["missing"] is not None:
        lines.append(document["missing"])
    return tuple(lines)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
