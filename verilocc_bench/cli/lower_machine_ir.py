"""`verilocc-bench lower` for gfx90a and gfx942: an answer written into the machine IR of its
kernel, and llc on it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.cli.instance import Instance, normalize_data, read_answer_for
from verilocc_bench.cli.lower_answer import is_wrong
from verilocc_bench.cli.output_stream import summary_stream
from verilocc_bench.dataset import load_raw_row
from verilocc_bench.edits import AnyAnswer, EditedFunction, SplitAnswer, edit_function
from verilocc_bench.errors import InputError
from verilocc_bench.files import STANDARD_OUTPUT, decode_text, is_stream, read_data, write_output
from verilocc_bench.ir import Assignment
from verilocc_bench.lower import (
    LLC_OPTIONS,
    LoweredMir,
    find_llc,
    llc_version,
    lower_amdgpu,
    machine_code_counts,
    run_llc,
)
from verilocc_bench.parse.machine import MachineFunction, MachineModule
from verilocc_bench.parse.mir import parse_mir
from verilocc_bench.parse.normalize import NormalizedFunction, normalize_function
from verilocc_bench.targets import Target, get_target

__all__ = ["MachineKernel", "load_machine_kernel", "lower_machine_ir", "run_llc_on", "write_answer"]

_KINDS = {".s": "asm", ".o": "obj", ".mir": None}
"""What llc calls each kind of file; machine IR needs no llc."""


@dataclass(frozen=True, slots=True)
class MachineKernel:
    """What an answer is written into; `source` names it in errors."""

    text: str
    machine: MachineFunction
    normalized: NormalizedFunction
    problem: AllocationProblem
    source: str


def lower_machine_ir(options: argparse.Namespace, instance: Instance | None) -> int:
    """Writes assembly, an object file or machine IR, and prints a summary.

    The status is 1, and nothing written, for a wrong answer. `instance` is the
    row of the dataset that the options name, where they name one.
    """
    stream = summary_stream(options.output, json=options.json)
    suffix = options.output.suffix
    if suffix not in _KINDS and is_stream(options.output):
        suffix = ".s"
    if suffix not in _KINDS:
        raise InputError(
            "expected a name that ends in .s (assembly), .o (object file) or .mir (machine IR)",
            source=options.output,
        )
    kind = _KINDS[suffix]
    kernel = load_machine_kernel(options, instance)
    answer = read_answer_for(kernel.problem, options.answer)
    if kind is not None:
        find_llc()  # said before any work is done
    if is_wrong(kernel.problem, answer, options):
        return 1
    lowered = write_answer(kernel, answer)
    summary = _to_json(lowered, kernel.problem.target, options.output, kind)
    data: str | bytes = lowered.text
    if kind is not None:
        llc_options = (*LLC_OPTIONS, *lowered.llc_options)
        assembly = data = run_llc_on(kernel, lowered.text, "asm", llc_options)
        if kind != "asm":
            data = run_llc_on(kernel, lowered.text, kind, llc_options)
        summary["machine_code"] = machine_code_counts(assembly.decode(), lowered.function)
    write_output(options.output, data)
    print(json.dumps(summary, indent=2) if options.json else _text(summary), file=stream)
    return 0


def load_machine_kernel(options: argparse.Namespace, instance: Instance | None) -> MachineKernel:
    """The machine IR of the row `instance`, or of the file that the options name.

    Raises InputError where there is none, or it is of another function.
    """
    return _from_file(options) if instance is None else _from_row(instance, options)


def write_answer(kernel: MachineKernel, answer: AnyAnswer) -> LoweredMir:
    """The machine IR with a verified answer in it. Raises InputError for what is not lowered."""
    assignment, edited = _assignment(kernel.problem, answer)
    return lower_amdgpu(
        kernel.text,
        kernel.machine,
        kernel.normalized,
        assignment,
        edited=edited,
        source=kernel.source,
    )


def run_llc_on(kernel: MachineKernel, text: str, kind: str, options: Sequence[str]) -> bytes:
    """What llc makes of a text of the kernel; errors name the kernel. `kind` is asm or obj."""
    try:
        return run_llc(text, kernel.problem.target.name, kind, options)
    except InputError as error:
        raise error.located(kernel.source) from None


def _from_row(instance: Instance, options: argparse.Namespace) -> MachineKernel:
    raw = load_raw_row(
        options.dataset, instance.problem.id, split=options.split, revision=options.revision
    )
    source = f"row {raw.id}"
    if raw.format != "mir":
        raise InputError(f"expected machine IR, the dataset has {raw.format[:40]!r}", source=source)
    module = parse_mir(raw.content, source)
    machine = module.functions[0]
    normalized = normalize_function(machine, module, instance.problem.target, source=source)
    problem = AllocationProblem(normalized.function)
    if problem.id != instance.problem.id:
        raise InputError(f"the machine IR is of another function, {problem.id}", source=source)
    return MachineKernel(raw.content, machine, normalized, problem, source)


def _from_file(options: argparse.Namespace) -> MachineKernel:
    path = Path(options.instance)
    data = read_data(path)
    text = decode_text(data, path)
    if options.arch is None:
        raise InputError(
            "expected a cubin, or machine IR with --arch; other files hold no machine code",
            source=path,
        )
    normalized = normalize_data(path, data, options)
    assert isinstance(normalized, NormalizedFunction)
    module = parse_mir(text, str(path), normalized.name)
    machine = module.functions[0]
    if options.max_threads is not None:
        _check_budget(normalized, machine, module, get_target(options.arch), path)
    return MachineKernel(
        text, machine, normalized, AllocationProblem(normalized.function), str(path)
    )


def _check_budget(
    normalized: NormalizedFunction,
    machine: MachineFunction,
    module: MachineModule,
    target: Target,
    path: Path,
) -> None:
    """Raises InputError where the code itself says of more threads, and so of fewer registers."""
    own = normalize_function(machine, module, target, source=str(path)).function.files
    for file, asked in zip(own, normalized.function.files, strict=True):
        if asked.count > file.count:
            raise InputError(
                f"--max-threads leaves {asked.count} registers in {file.name!r}, but the code's "
                f"own work-group size only {file.count}",
                source=path,
            )


def _assignment(
    problem: AllocationProblem, answer: AnyAnswer
) -> tuple[Assignment, EditedFunction | None]:
    """The registers that a verified answer names, and the function as it edits it."""
    edited: EditedFunction | None = None
    if isinstance(answer, SplitAnswer):
        names = answer.assignment
        edited, findings = edit_function(problem.function, problem.target, answer.edits)
        assert not findings
    else:
        names = answer
    assignment: Assignment = {}
    for number in edited.registers if edited else range(len(problem.function.virtual_registers)):
        base = parse_register_name(problem.target, names[f"%{number}"])
        assert base is not None
        assignment[number] = base
    return assignment, edited


def _to_json(lowered: LoweredMir, target: Target, output: Path, kind: str | None) -> dict[str, Any]:
    options = (*LLC_OPTIONS, *lowered.llc_options)
    return {
        "function": lowered.function,
        "arch": target.name,
        "instructions": lowered.instructions,
        "identity_copies": lowered.identity_copies,
        "inserted": lowered.inserted,
        "registers": dict(lowered.registers),
        "output": str(output),
        "machine_code": None,
        "llc_version": llc_version() if kind is not None else None,
        "llc_options": list(options) if kind is not None else None,
    }


def _text(summary: dict[str, Any]) -> str:
    registers = ", ".join(f"{file} {count}" for file, count in summary["registers"].items())
    lines = [
        f"{summary['function']}: {summary['instructions']} instructions of machine IR, "
        f"{_counted(summary['identity_copies'], 'identity copy', 'identity copies')} went away, "
        f"{_counted(summary['inserted'], 'edit', 'edits')}; registers {registers}"
    ]
    if summary["llc_version"] is not None:
        lines.append(f"llc {summary['llc_version']} and its machine verifier accept it")
    if summary["machine_code"]:
        found = ", ".join(f"{name} {count}" for name, count in summary["machine_code"].items())
        lines.append(f"the machine code says: {found}")
    if summary["output"] != str(STANDARD_OUTPUT):
        lines.append(f"wrote {summary['output']}")
    return "\n".join(lines)


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"
