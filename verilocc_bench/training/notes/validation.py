"""What a network does on whole functions that it was not trained on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from verilocc_bench.allocators import Request
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.model.notes.notes_allocator import NotesAllocator
from verilocc_bench.model.notes.notes_network import NotesNetwork
from verilocc_bench.settings.language_model import LocalModelSettings
from verilocc_bench.verification.fast import FastVerifier


def validate(network: NotesNetwork, rows: Sequence[Row]) -> dict[str, Any] | None:
    """Free decoding of whole functions: how many are valid, and their registers.

    None where there are no rows. `registers_ratio` is the geometric mean of vector registers
    over the label's, of those that are valid.
    """
    if not rows:
        return None
    problems = [AllocationProblem.from_text(row.normalized) for row in rows]
    allocator = NotesAllocator.of_network("validation", network, LocalModelSettings())
    ratios: list[float] = []
    for place, response in allocator.respond([Request(problem) for problem in problems]):
        if response.answer is None:
            continue
        verifier = FastVerifier(problems[place])
        verdict = verifier.verify(response.answer, 1)
        label = verifier.verify(rows[place].label or {}, 1).registers_used
        if verdict.valid and verdict.registers_used and label:
            ratios.append(math.log(verdict.registers_used[VECTOR] / max(1, label[VECTOR])))
    return {
        "functions": len(rows),
        "valid": len(ratios),
        "registers_ratio": math.exp(sum(ratios) / len(ratios)) if ratios else None,
    }
