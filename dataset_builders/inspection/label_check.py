"""Every assignment of a row judged again, by two checkers that share no analysis."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dataset_builders.compilers.built_kernel import canonical_json
from dataset_builders.inspection.findings import CheckKind
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.verify import FastVerifier, IndependentVerifier, Verdict

__all__ = ["label_problems", "split_track_problems"]

_Problem = tuple[CheckKind, str]


class _Judges:
    """Both checkers of one function; what each valid answer uses is kept in `used`."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.judges: dict[str, FastVerifier | IndependentVerifier] = {
            "fast check": FastVerifier(problem),
            "independent checker": IndependentVerifier(problem),
        }
        self.used: dict[str, dict[str, int]] = {}

    def problems(self, kind: CheckKind, what: str, answer: Any) -> Iterator[_Problem]:
        """What the checkers have against an answer; `what` names it."""
        if not isinstance(answer, dict) or not all(isinstance(v, str) for v in answer.values()):
            yield CheckKind.JSON, f"{what} must map virtual registers to names of registers"
            return
        verdicts: list[Verdict] = []
        for name, judge in self.judges.items():
            try:
                verdict = judge.verify(answer)
            except InputError as error:
                yield kind, f"{what} cannot be judged by the {name}: {error.message}"
                continue
            verdicts.append(verdict)
            if not verdict.valid:
                first = verdict.findings[0]
                yield (
                    kind,
                    f"{what} is wrong to the {name}: {len(verdict.findings)} findings, "
                    f"first {first.kind.value}: {first.message}",
                )
        if len({verdict.valid for verdict in verdicts}) > 1:
            yield kind, f"the checkers disagree about {what}"
        if verdicts and all(verdict.valid for verdict in verdicts):
            uses = [dict(v.registers_used) for v in verdicts if v.registers_used is not None]
            self.used[what] = uses[0]
            if any(use != uses[0] for use in uses):
                yield kind, f"the checkers count other registers of {what}: {uses}"


def label_problems(
    row: Row, problem: AllocationProblem, documents: Mapping[str, dict[str, Any]]
) -> Iterator[_Problem]:
    """What is wrong with a row's label, its alternatives and its best assignment."""
    judges = _Judges(problem)
    if "assignment" in documents:
        label = "the column 'assignment'"
        yield from judges.problems(CheckKind.LABEL, label, documents["assignment"])
        if label in judges.used:
            yield from _use_problems(row, judges.used[label], problem)
    for source, answer in documents.get("alternatives", {}).items():
        what = f"the alternative {source!r}"
        yield from judges.problems(CheckKind.ALTERNATIVE, what, answer)
    if "best_assignment" in documents:
        best = "the column 'best_assignment'"
        yield from judges.problems(CheckKind.BEST, best, documents["best_assignment"])
        yield from _best_problems(row, judges.used.get(best))
    bound = row.best_lower_bound
    for what, used in judges.used.items():
        if bound is not None and used[VECTOR] < bound:
            yield (
                CheckKind.BEST,
                f"the column 'best_lower_bound' is {bound}, yet {what} uses {used[VECTOR]}",
            )


def _use_problems(row: Row, used: dict[str, int], problem: AllocationProblem) -> Iterator[_Problem]:
    expected = canonical_json(used)
    if row.registers_used is not None and row.registers_used != expected:
        yield (
            CheckKind.REGISTERS,
            f"the column 'registers_used' is {row.registers_used}, the label uses {expected}",
        )
    occupancy = problem.target.occupancy(used)
    if row.occupancy is not None and row.occupancy != occupancy:
        yield (
            CheckKind.REGISTERS,
            f"the column 'occupancy' is {row.occupancy}, the label's is {occupancy}",
        )
    best = row.best_registers_used
    if best is not None and best >= used[VECTOR]:
        yield (
            CheckKind.BEST,
            f"the column 'best_registers_used' is {best}, no fewer than the label's {used[VECTOR]}",
        )


def _best_problems(row: Row, used: dict[str, int] | None) -> Iterator[_Problem]:
    claimed, bound = row.best_registers_used, row.best_lower_bound
    if claimed is None or bound is None:
        return
    if used is not None and used[VECTOR] != claimed:
        yield (
            CheckKind.BEST,
            f"the column 'best_registers_used' is {claimed}, the assignment uses {used[VECTOR]}",
        )
    if bound > claimed:
        yield CheckKind.BEST, f"'best_lower_bound' {bound} is above 'best_registers_used' {claimed}"
    if row.best_is_optimal is not None and row.best_is_optimal != (bound == claimed):
        said = "optimal" if row.best_is_optimal else "not optimal"
        yield (
            CheckKind.BEST,
            f"the best assignment is said to be {said}, with {claimed} registers and a lower "
            f"bound of {bound}",
        )


def split_track_problems(
    row: Row, problem: AllocationProblem, documents: Mapping[str, dict[str, Any]]
) -> Iterator[_Problem]:
    """What is wrong with the use of registers of a row that has no label."""
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
    if row.occupancy is not None and row.occupancy != target.occupancy(used):
        yield (
            CheckKind.REGISTERS,
            f"the column 'occupancy' is {row.occupancy}, its registers make "
            f"{target.occupancy(used)}",
        )
