"""Judges every assignment of a row again, by two checkers that share no analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dataset_builders.compilers.built_kernel import canonical_json
from dataset_builders.inspection.best_check import JudgedRow, best_problems, certificate_problems
from dataset_builders.inspection.findings import CheckKind
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.settings.judges import FAST, INDEPENDENT
from verilocc_bench.verification.judges import Judges

_Problem = tuple[CheckKind, str]

_LABEL = "the column 'assignment'"
_BEST = "the column 'best_assignment'"
_NAMES = {FAST: "fast check", INDEPENDENT: "independent checker"}


class _RowJudges:
    """Both checkers of one function; `valid` keeps the valid answers."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.judges = Judges(problem, tuple(_NAMES))
        self.valid: dict[str, JudgedRow] = {}

    def problems(self, kind: CheckKind, what: str, answer: Any) -> Iterator[_Problem]:
        """The faults that the checkers find in an answer; `what` names it."""
        if not isinstance(answer, dict) or not all(isinstance(v, str) for v in answer.values()):
            yield CheckKind.JSON, f"{what} must map virtual registers to names of registers"
            return
        try:
            opinion = self.judges.ask(answer)
        except InputError as error:
            yield kind, f"{what} cannot be judged: {error.message}"
            return
        for word in opinion.words:
            if word.verdict is None:
                yield kind, f"{what} cannot be judged by the {_NAMES[word.judge]}: {word.note}"
            elif not word.accepts:
                first = word.verdict.findings[0]
                yield (
                    kind,
                    f"{what} is wrong to the {_NAMES[word.judge]}: "
                    f"{len(word.verdict.findings)} findings, "
                    f"first {first.kind.value}: {first.message}",
                )
        for disagreement in opinion.disagreements():
            yield kind, f"the checkers disagree about {what}: {disagreement}"
        uses = [word.verdict.registers_used for word in opinion.words if word.verdict is not None]
        if not opinion.wrong and uses and uses[0] is not None:
            self.valid[what] = JudgedRow(answer, dict(uses[0]))


def label_problems(
    row: Row, problem: AllocationProblem, documents: Mapping[str, dict[str, Any]]
) -> Iterator[_Problem]:
    """The faults of a row's label, its alternatives, its best assignment and its bound.

    Raises MissingExtraError if a bound or a cost needs a package that is not
    installed.
    """
    judges = _RowJudges(problem)
    if "assignment" in documents:
        yield from judges.problems(CheckKind.LABEL, _LABEL, documents["assignment"])
        if _LABEL in judges.valid:
            yield from _use_problems(row, judges.valid[_LABEL].used, problem)
    for source, answer in documents.get("alternatives", {}).items():
        what = f"the alternative {source!r}"
        yield from judges.problems(CheckKind.ALTERNATIVE, what, answer)
    if "best_assignment" in documents:
        yield from judges.problems(CheckKind.BEST, _BEST, documents["best_assignment"])
    yield from best_problems(row, problem, judges.valid.get(_LABEL), judges.valid.get(_BEST))
    if "best_certificate" in documents:
        yield from certificate_problems(row, problem, documents["best_certificate"])
    bound = row.best_lower_bound
    for what, judged in judges.valid.items():
        if bound is not None and judged.used[VECTOR] < bound:
            yield (
                CheckKind.BEST,
                f"the column 'best_lower_bound' is {bound}, yet {what} uses {judged.used[VECTOR]}",
            )


def _use_problems(
    row: Row, used: Mapping[str, int], problem: AllocationProblem
) -> Iterator[_Problem]:
    expected = canonical_json(dict(used))
    if row.registers_used is not None and row.registers_used != expected:
        yield (
            CheckKind.REGISTERS,
            f"the column 'registers_used' is {row.registers_used}, the label uses {expected}",
        )
    occupancy = problem.occupancy(used)
    if row.occupancy is not None and row.occupancy != occupancy:
        yield (
            CheckKind.REGISTERS,
            f"the column 'occupancy' is {row.occupancy}, the label's is {occupancy}",
        )


def split_track_problems(
    row: Row, problem: AllocationProblem, documents: Mapping[str, dict[str, Any]]
) -> Iterator[_Problem]:
    """The faults in the registers of a row that has no label."""
    if documents.get("alternatives"):
        yield CheckKind.ALTERNATIVE, "the split track has alternatives: expected none"
    used = documents.get("registers_used")
    if used is None:
        return
    target = problem.target
    names = {VECTOR, *(file.name for file in target.files)}
    if used.keys() != names or not all(type(count) is int for count in used.values()):
        yield (
            CheckKind.REGISTERS,
            f"the column 'registers_used' must have a number for {', '.join(sorted(names))}",
        )
        return
    if used[VECTOR] != target.vector_use(used):
        yield (
            CheckKind.REGISTERS,
            f"the column 'registers_used' has {used[VECTOR]} vector registers, its files make "
            f"{target.vector_use(used)}",
        )
    if row.occupancy is not None and row.occupancy != problem.occupancy(used):
        yield (
            CheckKind.REGISTERS,
            f"the column 'occupancy' is {row.occupancy}, its registers make "
            f"{problem.occupancy(used)}",
        )
