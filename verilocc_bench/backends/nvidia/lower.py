"""Writes an answer into a cubin, and describes the result."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from verilocc_bench.analysis.resolved_answer import resolve_answer
from verilocc_bench.backends.kernel import LoweredCode
from verilocc_bench.backends.nvidia.hazards import Hazard
from verilocc_bench.backends.nvidia.kernel import SassKernel
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.write_back import LoweredCubin, write_assignment
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.targets.nvidia import COMPILER_REGISTERS

_HAZARDS_SHOWN = 20
_OTHER_SUFFIXES = {".s", ".o", ".mir"}


def check_output(output: Path) -> None:
    """Raises InputError for a name that asks for another kind of file than a cubin."""
    if output.suffix in _OTHER_SUFFIXES:
        raise InputError(
            "expected a name such as kernel.cubin: code of NVIDIA is lowered to a cubin",
            source=output,
        )


def check_answer(answer: Answer, source: str | Path) -> None:
    """Raises InputError for an answer with edits."""
    if answer.has_edits:
        raise InputError(
            "answers with edits are lowered on gfx90a and gfx942 only: "
            "a cubin has no room for new instructions",
            source=source,
        )


def lower(kernel: SassKernel, answer: Answer, _output: Path) -> LoweredCode:
    """The cubin with a verified answer in it. Raises InputError if it cannot be lowered."""
    lowered = write_answer(kernel, answer)
    return LoweredCode(lowered.data, describe(lowered), _lines(lowered))


def write_answer(kernel: SassKernel, answer: Answer) -> LoweredCubin:
    """The patched and proven cubin. Raises InputError if the answer cannot be lowered."""
    check_answer(answer, kernel.source)
    registers = resolve_answer(kernel.problem, answer).registers
    try:
        return write_assignment(kernel.code, registers, kernel.source)
    except RejectedKernel as rejection:
        raise InputError(rejection.reason, source=kernel.source) from None


def describe(lowered: LoweredCubin) -> dict[str, Any]:
    """The changes to the cubin, and true if it is taken to run, as JSON."""
    instructions = lowered.function.instructions
    return {
        "function": lowered.function.name,
        "instructions": len(instructions),
        "changed_instructions": lowered.changed_instructions,
        "cleared_reuse_marks": lowered.cleared_reuse_marks,
        "register_count": lowered.register_count,
        "verdict": lowered.verdict.value,
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
                "cycles": hazard.cycles,
                "least_cycles": hazard.least,
            }
            for hazard in lowered.hazards
        ],
    }


def _lines(lowered: LoweredCubin) -> tuple[str, ...]:
    lines = [
        f"{lowered.function.name}: {len(lowered.function.instructions)} instructions, "
        f"{lowered.changed_instructions} changed; {lowered.cleared_reuse_marks} reuse marks "
        f"cleared; register count {lowered.register_count}, of which ptxas keeps "
        f"{COMPILER_REGISTERS} back",
        ": ".join((lowered.verdict.value, *filter(None, ["; ".join(lowered.reasons)]))),
    ]
    if lowered.hazards_before:
        lines.append(
            f"  {lowered.hazards_before} more pairs look like hazards under the compiler's own "
            "registers already, and are left out"
        )
    shown = lowered.hazards[:_HAZARDS_SHOWN]
    lines += [f"  {_describe_hazard(lowered.function, hazard)}" for hazard in shown]
    if len(lowered.hazards) > len(shown):
        lines.append(f"  and {len(lowered.hazards) - len(shown)} more; --json has them all")
    return tuple(lines)


def _describe_hazard(function: SassFunction, hazard: Hazard) -> str:
    earlier, later = (
        f"{instruction.opcode} at {instruction.address:#06x}"
        for instruction in (
            function.instructions[hazard.earlier],
            function.instructions[hazard.later],
        )
    )
    distance = ""
    if hazard.cycles is not None:
        distance = f"; {hazard.cycles} cycles, where ptxas has {hazard.least} or more"
    registers = ", ".join(hazard.registers)
    return f"{hazard.kind.value}: {registers}: {later}, after {earlier}{distance}"
