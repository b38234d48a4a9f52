"""Checks the columns about the best known answer: is it better, and is its bound proved?

analysis.lower_bounds checks the certificate; for bounds that a solver found it
asks the solver again. Answers with equal registers are compared by the same
costs as in the release. Both need packages of the extra `exact`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dataset_builders.inspection.findings import CheckKind
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.analysis.lower_bounds import check_certificate
from verilocc_bench.analysis.lower_bounds.json_form import from_json, to_json
from verilocc_bench.dataset import Row
from verilocc_bench.edits import NamedAssignment
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.settings.search import Objective

_Problem = tuple[CheckKind, str]


@dataclass(frozen=True, slots=True)
class JudgedRow:
    """A valid answer with the registers that it uses, by file."""

    answer: NamedAssignment
    used: Mapping[str, int]


def best_problems(
    row: Row, problem: AllocationProblem, label: JudgedRow | None, better: JudgedRow | None
) -> Iterator[_Problem]:
    """The faults of the columns about a row's best answer.

    `label` is None if the label is invalid, `better` if there is no valid
    `best_assignment`. Raises MissingExtraError if costs must be compared and
    numba is not installed.
    """
    if label is not None and better is not None:
        yield from _comparison(problem, label, better)
    if label is not None:
        yield from _conflicts("bank_conflicts", row.bank_conflicts, problem, label)
    best = label if row.best_assignment is None else better
    if best is not None:
        yield from _conflicts("best_bank_conflicts", row.best_bank_conflicts, problem, best)
    yield from _count_problems(row, best)


def _comparison(
    problem: AllocationProblem, label: JudgedRow, better: JudgedRow
) -> Iterator[_Problem]:
    used, own = better.used[VECTOR], label.used[VECTOR]
    waves, own_waves = (problem.occupancy(each.used) for each in (better, label))
    if used > own:
        yield CheckKind.BEST, f"the best assignment uses {used} registers, the label {own}"
    if waves < own_waves:
        yield CheckKind.BEST, f"the best assignment's occupancy is {waves}, the label's {own_waves}"
    if (used, waves) == (own, own_waves):
        # It needs numba, and nothing else here does.
        from verilocc_bench.allocators.search.answer_comparison import answer_cost

        costs = [
            answer_cost(problem, each.answer, Objective.REGISTERS)[-1] for each in (better, label)
        ]
        if costs[0] >= costs[1]:
            yield (
                CheckKind.BEST,
                f"the best assignment uses as many registers as the label, and its combined cost "
                f"is {costs[0]}, the label's {costs[1]}: expected less",
            )


def _conflicts(
    column: str, claimed: int | None, problem: AllocationProblem, judged: JudgedRow
) -> Iterator[_Problem]:
    expected = count_bank_conflicts(problem, judged.answer).any
    if claimed is not None and claimed != expected:
        yield (
            CheckKind.BANK_CONFLICTS,
            f"the column {column!r} is {claimed}, the assignment has {expected}",
        )


def _count_problems(row: Row, best: JudgedRow | None) -> Iterator[_Problem]:
    claimed, bound = row.best_registers_used, row.best_lower_bound
    if claimed is None or bound is None:
        return
    if best is not None and best.used[VECTOR] != claimed:
        yield (
            CheckKind.BEST,
            f"the column 'best_registers_used' is {claimed}, the assignment uses "
            f"{best.used[VECTOR]}",
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


def certificate_problems(
    row: Row, problem: AllocationProblem, document: dict[str, Any]
) -> Iterator[_Problem]:
    """The faults of a certificate.

    Raises MissingExtraError if a solver found it that is not installed.
    """
    kind, column = CheckKind.CERTIFICATE, "the column 'best_certificate'"
    try:
        bound = from_json(document, problem)
        if (bound.group, bound.value) != (VECTOR, row.best_lower_bound):
            yield (
                kind,
                f"{column} is about {bound.value} registers of {bound.group!r}, the column "
                f"'best_lower_bound' is {row.best_lower_bound}",
            )
        if to_json(bound) != document:
            yield kind, f"{column} has more than a bound, or its parts in another order"
        check_certificate(problem, bound)
    except MissingExtraError:
        raise
    except InputError as error:
        yield kind, f"{column} proves nothing: {error.message}"
