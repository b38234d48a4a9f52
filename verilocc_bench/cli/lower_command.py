"""`verilocc-bench lower`."""

from __future__ import annotations

import argparse
import base64
import binascii
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.allocators import Answer
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli.instance import load_instance, read_answer_for
from verilocc_bench.dataset import load_raw_row
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import read_data, write_atomically
from verilocc_bench.ir import Assignment
from verilocc_bench.lower import Hazard, LoweredCubin, lower_sass
from verilocc_bench.parse.cubin import is_cubin, read_cubin
from verilocc_bench.parse.sass.load import load_cubin_function
from verilocc_bench.parse.sass.normalize import NormalizedSass, normalize_sass
from verilocc_bench.parse.sass.records import SassFunction
from verilocc_bench.targets.nvidia_budget import register_limit
from verilocc_bench.targets.sm_80 import COMPILER_REGISTERS, SM_80
from verilocc_bench.verify import FastVerifier

__all__ = ["run"]

_HAZARDS_SHOWN = 20
_ONLY = f"lowering is there for {SM_80.name} only"


@dataclass(frozen=True, slots=True)
class _Kernel:
    """What an answer is written into; `source` names it in errors."""

    cubin: bytes
    function: SassFunction
    normalized: NormalizedSass
    problem: AllocationProblem
    source: str


def run(options: argparse.Namespace) -> int:
    """Writes the cubin and prints a summary; the status is 1, and nothing written, for a wrong
    answer."""
    try:
        kernel = _load(options)
        answer = read_answer_for(kernel.problem, options.answer)
        verdict = FastVerifier(kernel.problem).verify(answer)
        if not verdict.valid:
            if options.json:
                print(json.dumps(verdict.to_json(), indent=2))
            first = verdict.findings[0]
            print(
                f"verilocc-bench lower: {options.answer}: a wrong answer for {options.instance}, "
                f"{len(verdict.findings)} findings, "
                f"first: {first.kind.value}: {first.message}",
                file=sys.stderr,
            )
            return 1
        assignment = _assignment(kernel.problem, answer)
        lowered = lower_sass(
            kernel.cubin, kernel.function, kernel.normalized, assignment, kernel.source
        )
    except RejectedKernel as rejected:
        raise InputError(rejected.reason, source=options.instance) from None
    write_atomically(options.output, lowered.data)
    if options.json:
        print(json.dumps(_to_json(lowered), indent=2))
    else:
        print("\n".join(_summary(lowered)))
    return 0


def _load(options: argparse.Namespace) -> _Kernel:
    path = Path(options.instance)
    if path.is_file():
        return _from_file(path, options)
    instance = load_instance(options)
    if instance.problem.target.name != SM_80.name:
        raise InputError(
            f"{_ONLY}, this is for {instance.problem.target.name}", source=options.instance
        )
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


def _from_file(path: Path, options: argparse.Namespace) -> _Kernel:
    if options.arch not in {None, SM_80.name}:
        raise InputError(f"{_ONLY}, not for {options.arch[:40]!r}", source=path)
    data = read_data(path)
    if not is_cubin(data):
        raise InputError(f"expected a cubin, this is no ELF file; {_ONLY}", source=path)
    kernel = read_cubin(data, path).kernel(options.function, path)
    threads = options.max_threads or kernel.launch_bounds.threads
    limit = register_limit(threads, kernel.launch_bounds.maximum_registers)
    return _kernel(data, kernel.name, limit, str(path))


def _kernel(cubin: bytes, name: str, limit: int, source: str) -> _Kernel:
    function = load_cubin_function(cubin, source, name)
    normalized = normalize_sass(function, limit)
    return _Kernel(cubin, function, normalized, AllocationProblem(normalized.function), source)


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


def _to_json(lowered: LoweredCubin) -> dict[str, Any]:
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
