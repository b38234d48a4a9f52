"""Compares two answers of one kernel by the cubins with them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from verilocc_bench import __version__
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts, count_identity_copies
from verilocc_bench.backends.kernel import CodeComparison, ComparedAllocation
from verilocc_bench.backends.nvidia.kernel import SassKernel
from verilocc_bench.backends.nvidia.lower import describe, write_answer
from verilocc_bench.backends.nvidia.write_back import LoweredCubin
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError
from verilocc_bench.verification import Verifier

_SIDES = ("answer", "other")


def compare(
    kernel: SassKernel, sides: Sequence[ComparedAllocation], *, with_files: bool
) -> CodeComparison:
    """The comparison of two verified answers.

    Raises InputError if an answer is missing or has edits.
    """
    described: dict[str, Any] = {}
    words: list[str] = []
    files: dict[str, str | bytes] = {}
    for folder, side in zip(_SIDES, sides, strict=True):
        if side.answer is None:
            raise InputError("it has no label: name a second answer", source=kernel.source)
        answer = side.answer
        lowered = write_answer(kernel, answer)
        described[folder] = {
            "name": side.name,
            "metrics": _metrics(kernel, answer, lowered),
            "cubin": describe(lowered),
        }
        words.append(
            f"{side.name}: runnable"
            if lowered.runnable
            else f"{side.name}: not runnable: {'; '.join(lowered.reasons)}; "
            "--json lists its hazards"
        )
        if with_files:
            files[f"{folder}/kernel.cubin"] = lowered.data
            text = json.dumps(answer_to_json(kernel.problem.id, answer))
            files[f"{folder}/answer.json"] = text + "\n"
    document = {
        "id": kernel.problem.id,
        "arch": kernel.problem.target.name,
        "function": kernel.name,
        **described,
        "words": words,
        "versions": {"verilocc-bench": __version__},
    }
    return CodeComparison(document, files)


def _metrics(kernel: SassKernel, answer: Answer, lowered: LoweredCubin) -> dict[str, float | None]:
    problem = kernel.problem
    verdict = Verifier(problem).verify(answer)
    assert verdict.registers_used is not None
    conflicts = count_bank_conflicts(problem, answer.assignment)
    return {
        "vector_registers": verdict.registers_used["vector"],
        "occupancy": verdict.occupancy,
        "bank_conflicts": conflicts.any,
        "bank_conflicts_all": conflicts.all,
        "identity_copies": count_identity_copies(problem, answer.assignment),
        "instructions": len(lowered.function.instructions),
        "changed_instructions": lowered.changed_instructions,
        "cleared_reuse_marks": lowered.cleared_reuse_marks,
        "register_count": lowered.register_count,
        "hazards": len(lowered.hazards),
        "runnable": lowered.runnable,
    }
