"""`verilocc-bench lower` for sm_80: an answer written into the cubin of its kernel."""

from __future__ import annotations

import argparse
import base64
import binascii
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.allocators import Answer
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli.instance import Instance, read_answer_for
from verilocc_bench.cli.lower_answer import MACHINE_IR_TARGETS, is_wrong
from verilocc_bench.cli.output_stream import summary_stream
from verilocc_bench.dataset import load_raw_row
from verilocc_bench.edits import SplitAnswer
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import STANDARD_OUTPUT, read_data, write_output
from verilocc_bench.ir import Assignment
from verilocc_bench.lower import Hazard, LoweredCubin, lower_sass
from verilocc_bench.parse.cubin import read_cubin
from verilocc_bench.parse.sass.load import load_cubin_function
from verilocc_bench.parse.sass.normalize import NormalizedSass, normalize_sass
from verilocc_bench.parse.sass.records import SassFunction
from verilocc_bench.targets.nvidia_budget import register_limit
from verilocc_bench.targets.sm_80 import COMPILER_REGISTERS, SM_80

__all__ = ["describe_cubin", "load_cubin_kernel", "lower_cubin", "write_into_cubin"]

_HAZARDS_SHOWN = 20


@dataclass(frozen=True, slots=True)
class LoadedCubin:
    """What an answer is written into; `source` names it in errors."""

    cubin: bytes
    function: SassFunction
    normalized: NormalizedSass
    problem: AllocationProblem
    source: str


def lower_cubin(options: argparse.Namespace, instance: Instance | None) -> int:
    """Writes the cubin and prints a summary; the status is 1, and nothing written, for a wrong
    answer. `instance` is the row of the dataset that the options name, where they name one."""
    stream = summary_stream(options.output, json=options.json)
    if options.output.suffix in {".s", ".o", ".mir"}:
        raise InputError(
            f"expected a name such as kernel.cubin: {SM_80.name} is lowered to a cubin",
            source=options.output,
        )
    try:
        kernel = load_cubin_kernel(options, instance)
        answer = read_answer_for(kernel.problem, options.answer)
        if isinstance(answer, SplitAnswer):
            raise InputError(
                f"answers with edits are lowered on {MACHINE_IR_TARGETS} only",
                source=options.answer,
            )
        if is_wrong(kernel.problem, answer, options):
            return 1
        lowered = write_into_cubin(kernel, answer)
    except RejectedKernel as rejected:
        raise InputError(rejected.reason, source=options.instance) from None
    write_output(options.output, lowered.data)
    if options.json:
        print(json.dumps(describe_cubin(lowered), indent=2))
    else:
        wrote = [] if options.output == STANDARD_OUTPUT else [f"wrote {options.output}"]
        print("\n".join([*_summary(lowered), *wrote]), file=stream)
    return 0


def load_cubin_kernel(options: argparse.Namespace, instance: Instance | None) -> LoadedCubin:
    """The cubin of the row `instance`, or of the file that the options name.

    Raises InputError where there is none or it is of another function, and
    RejectedKernel for code that is not modelled.
    """
    return _from_file(options) if instance is None else _from_row(instance, options)


def write_into_cubin(kernel: LoadedCubin, answer: Answer) -> LoweredCubin:
    """The cubin with a verified answer in it. Raises InputError for what is not lowered."""
    assignment = _assignment(kernel.problem, answer)
    return lower_sass(kernel.cubin, kernel.function, kernel.normalized, assignment, kernel.source)


def _from_row(instance: Instance, options: argparse.Namespace) -> LoadedCubin:
    raw = load_raw_row(
        options.dataset, instance.problem.id, split=options.split, revision=options.revision
    )
    source = f"row {raw.id}"
    if raw.format != "cubin":
        raise InputError(f"expected a cubin, the dataset has {raw.format[:40]!r}", source=source)
    try:
        cubin = base64.b64decode(raw.content, validate=True)
    except binascii.Error:
        raise InputError("expected the cubin in base64", source=source) from None
    # The row's budget says what limit it was made with.
    budget = next(file.count for file in instance.problem.function.files if file.name == "R")
    name = read_cubin(cubin, source).kernel(None, source).name
    kernel = _kernel(cubin, name, budget + COMPILER_REGISTERS, source)
    if kernel.problem.id != instance.problem.id:
        raise InputError(f"the cubin is of another function, {kernel.problem.id}", source=source)
    return kernel


def _from_file(options: argparse.Namespace) -> LoadedCubin:
    path = Path(options.instance)
    if options.arch not in {None, SM_80.name}:
        raise InputError(f"this is a cubin, not for {options.arch[:40]!r}", source=path)
    data = read_data(path)
    kernel = read_cubin(data, path).kernel(options.function, path)
    threads = options.max_threads or kernel.launch_bounds.threads
    limit = register_limit(threads, kernel.launch_bounds.maximum_registers)
    return _kernel(data, kernel.name, limit, str(path))


def _kernel(cubin: bytes, name: str, limit: int, source: str) -> LoadedCubin:
    function = load_cubin_function(cubin, source, name)
    normalized = normalize_sass(function, limit)
    return LoadedCubin(cubin, function, normalized, AllocationProblem(normalized.function), source)


def _assignment(problem: AllocationProblem, answer: Answer) -> Assignment:
    """The registers that a verified answer names."""
    placements = problem.placements
    return {
        number: placements.register(placements.by_name[register_class][answer[f"%{number}"]])
        for number, register_class in enumerate(problem.function.virtual_registers)
    }


def _place(function: SassFunction, index: int) -> str:
    instruction = function.instructions[index]
    return f"{instruction.opcode} at {instruction.address:#06x}"


def _describe(function: SassFunction, hazard: Hazard) -> str:
    earlier, later = (_place(function, index) for index in (hazard.earlier, hazard.later))
    return f"{hazard.kind.value}: {', '.join(hazard.registers)}: {later}, after {earlier}"


def _summary(lowered: LoweredCubin) -> list[str]:
    lines = [
        f"{lowered.function.name}: {len(lowered.function.instructions)} instructions, "
        f"{lowered.changed_instructions} changed; {lowered.cleared_reuse_marks} reuse marks "
        f"cleared; register count {lowered.register_count}, of which ptxas keeps "
        f"{COMPILER_REGISTERS} back",
        "runnable" if lowered.runnable else f"not runnable: {'; '.join(lowered.reasons)}",
    ]
    if lowered.hazards_before:
        lines.append(
            f"  {lowered.hazards_before} more pairs look like hazards under the compiler's own "
            "registers already, and are left out"
        )
    shown = lowered.hazards[:_HAZARDS_SHOWN]
    lines += [f"  {_describe(lowered.function, hazard)}" for hazard in shown]
    if len(lowered.hazards) > len(shown):
        lines.append(f"  and {len(lowered.hazards) - len(shown)} more; --json has them all")
    return lines


def describe_cubin(lowered: LoweredCubin) -> dict[str, Any]:
    """What `lower --json` says of a cubin: what was changed, and whether it can be run."""
    instructions = lowered.function.instructions
    return {
        "function": lowered.function.name,
        "instructions": len(instructions),
        "changed_instructions": lowered.changed_instructions,
        "cleared_reuse_marks": lowered.cleared_reuse_marks,
        "register_count": lowered.register_count,
        "runnable": lowered.runnable,
        "reasons": list(lowered.reasons),
        "hazards_before": lowered.hazards_before,
        "hazards": [
            {
                "kind": hazard.kind.value,
                "registers": list(hazard.registers),
                "address": instructions[hazard.later].address,
                "opcode": instructions[hazard.later].opcode,
                "after_address": instructions[hazard.earlier].address,
                "after_opcode": instructions[hazard.earlier].opcode,
            }
            for hazard in lowered.hazards
        ],
    }
