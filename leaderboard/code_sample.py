"""A sample of a submission's valid answers as machine code, counted beside the compiler's.

All entries of a board are counted on the same functions, so their figures compare. It
needs the dataset's raw code and llc; without them nothing is counted, and the document
says why. The figures are counts and estimates, not measurements.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leaderboard.examining import Answers
from leaderboard.executing import measured_answer
from leaderboard.judging import FunctionVerdict
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends import backend_of
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.code_source import CodeSource
from verilocc_bench.evaluation.machine_code import CountedCode, compare_code, summarise_machine_code
from verilocc_bench.targets import get_target


@dataclass(frozen=True, slots=True)
class CodeSample:
    """What became of the sample.

    `functions` is the number of functions drawn. `record` is what
    `summarise_machine_code` says of the valid answers among them. `why_not` is the reason
    if the sample ended early.
    """

    functions: int = 0
    record: Mapping[str, Any] = field(default_factory=dict)
    why_not: str | None = None


def count_code(
    answers: Answers,
    rows: Mapping[str, Row],
    verdicts: Mapping[str, FunctionVerdict],
    source: CodeSource,
    count: int,
) -> CodeSample:
    """Counts the code of the answers to `count` functions, drawn by a hash of their ids."""
    drawn = sorted(
        rows.values(), key=lambda row: hashlib.sha256(f"machine code {row.id}".encode()).digest()
    )[:count]
    found: list[CountedCode | None] = []
    why_not = None
    try:
        for row in drawn:
            if verdicts[row.id].outcome is None:
                found.append(None)
                continue
            backend_of(get_target(row.arch)).check_comparison()
            problem = AllocationProblem.from_text(row.normalized, row.id)
            answer = measured_answer(answers, row, verdicts[row.id])
            found.append(compare_code(problem, source, answer, row.label))
    except InputError as error:
        why_not = str(error)
    return CodeSample(len(drawn), summarise_machine_code(found), why_not)
