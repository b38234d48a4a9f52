"""`verilocc-bench compare` for sm_80: both assignments written into the cubin."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from typing import Any

from verilocc_bench import __version__
from verilocc_bench.allocators import Answer
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts, count_identity_copies
from verilocc_bench.answers import answer_to_json
from verilocc_bench.cli.comparison_document import Comparison
from verilocc_bench.cli.instance import Instance, read_answer_for
from verilocc_bench.cli.lower_answer import MACHINE_IR_TARGETS, is_wrong
from verilocc_bench.cli.lower_cubin import (
    LoadedCubin,
    describe_cubin,
    load_cubin_kernel,
    write_into_cubin,
)
from verilocc_bench.edits import AnyAnswer, SplitAnswer
from verilocc_bench.errors import InputError
from verilocc_bench.lower import LoweredCubin
from verilocc_bench.verify import Verifier

__all__ = ["compare_cubins"]


@dataclass(frozen=True, slots=True)
class _Side:
    name: str
    answer: Answer
    lowered: LoweredCubin
    metrics: dict[str, float | None]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "metrics": self.metrics,
            "cubin": describe_cubin(self.lowered),
        }


def compare_cubins(
    options: argparse.Namespace, instance: Instance, row: Instance | None
) -> Comparison | None:
    """The comparison; None, and that is said, where an answer is wrong.

    `row` is the instance where it is one of a dataset, None where a file.
    """
    kernel = load_cubin_kernel(options, row)
    answer = _plain(read_answer_for(kernel.problem, options.answer), options.answer)
    name = instance.label_source
    other = instance.label
    if options.other is not None:
        name = options.other.name
        other = _plain(read_answer_for(kernel.problem, options.other), options.other)
    if other is None:
        raise InputError("it has no label: name a second answer", source=options.instance)
    if is_wrong(kernel.problem, answer, options):
        return None
    if is_wrong(kernel.problem, other, options, name):
        return None
    sides = {
        "answer": _side("answer", answer, kernel),
        "other": _side(name, other, kernel),
    }
    document = {
        "id": kernel.problem.id,
        "arch": kernel.problem.target.name,
        "function": kernel.function.name,
        **{key: side.to_json() for key, side in sides.items()},
        "words": [word for side in sides.values() for word in _words(side)],
        "versions": {"verilocc-bench": __version__},
    }
    files: dict[str, str | bytes] = {}
    for folder, side in sides.items():
        files[f"{folder}/kernel.cubin"] = side.lowered.data
        text = json.dumps(answer_to_json(kernel.problem.id, side.answer))
        files[f"{folder}/answer.json"] = text + "\n"
    return Comparison(document, files)


def _plain(answer: AnyAnswer, source: object) -> Answer:
    if isinstance(answer, SplitAnswer):
        raise InputError(
            f"answers with edits are lowered on {MACHINE_IR_TARGETS} only", source=str(source)
        )
    return answer


def _side(name: str, answer: Answer, kernel: LoadedCubin) -> _Side:
    problem = kernel.problem
    verdict = Verifier(problem).verify(answer)
    assert verdict.registers_used is not None
    conflicts = count_bank_conflicts(problem, answer)
    lowered = write_into_cubin(kernel, answer)
    metrics: dict[str, float | None] = {
        "vector_registers": verdict.registers_used["vector"],
        "occupancy": verdict.occupancy,
        "bank_conflicts": conflicts.any,
        "bank_conflicts_all": conflicts.all,
        "identity_copies": count_identity_copies(problem, answer),
        "instructions": len(lowered.function.instructions),
        "changed_instructions": lowered.changed_instructions,
        "cleared_reuse_marks": lowered.cleared_reuse_marks,
        "register_count": lowered.register_count,
        "hazards": len(lowered.hazards),
        "runnable": lowered.runnable,
    }
    return _Side(name, answer, lowered, metrics)


def _words(side: _Side) -> list[str]:
    if side.lowered.runnable:
        return [f"{side.name}: runnable"]
    reasons = "; ".join(side.lowered.reasons)
    return [f"{side.name}: not runnable: {reasons}; --json lists its hazards"]
