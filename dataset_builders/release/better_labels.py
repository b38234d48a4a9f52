"""Better labels than the compiler's, how good they are proved to be, and bank conflicts.

Answers come from the row's alternatives and from the allocator `best`. It
starts with the label, and also finds a lower bound and its proof. An answer is
better than another by `answer_cost` for the objective `registers`: fewer vector
registers, then higher occupancy, then less combined cost (bank conflicts,
copies and long encodings, weighted by loop depth). Answers with a lower
occupancy than the compiler's are not taken.

Many processes work through a whole dataset. A journal of its own keeps their
results, so that an interrupted release goes on. A row takes seconds, nearly all
of them in the search.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dataset_builders.execution.tasks import Execution, Lost, run_tasks
from dataset_builders.journal.journal import Journal
from verilocc_bench import __version__
from verilocc_bench.allocators import NamedAssignment
from verilocc_bench.allocators.protocol import answer_from_assignment
from verilocc_bench.allocators.search.options import SearchOptions
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.analysis.lower_bounds import LowerBound, lower_bound
from verilocc_bench.analysis.lower_bounds.infeasibility import check_against_answer
from verilocc_bench.analysis.lower_bounds.json_form import to_json
from verilocc_bench.dataset import Row
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.verification import FastVerifier, Verdict

ALLOCATORS = ("best",)
"""The allocators that are asked besides the row's alternatives."""

MOST_INSTRUCTIONS = 8_000
"""Of a function that is searched for a better answer if the search is brief."""

OPTIONS = SearchOptions()
"""The options of the search."""


def better_labels(
    rows: Mapping[str, Callable[[], Row]],
    folder: Path,
    execution: Execution,
    *,
    brief: bool = False,
    progress: bool = True,
) -> dict[str, dict[str, Any]]:
    """The results of `better_label` by id; a row is loaded when its turn comes.

    `folder` keeps finished results. `brief`: large functions are searched for less
    long. Raises InputError for a row that exceeds its
    time limit or ends its process twice: its label could not be judged either.
    """
    options = replace(OPTIONS, brief=brief)
    with open_journal(folder, options) as journal:
        pending = [identifier for identifier in rows if not journal.has(identifier)]
        loaded = (rows[identifier]() for identifier in pending)
        search = partial(better_label, options=options)
        bar = tqdm(
            total=len(rows),
            initial=len(rows) - len(pending),
            desc="better labels",
            unit="row",
            disable=None if progress else True,
        )
        with bar, closing(run_tasks(search, loaded, execution)) as outcomes:
            for row, outcome in outcomes:
                if isinstance(outcome, Lost):
                    message = f"looking for a better label, the process {outcome.reason}"
                    raise InputError(message, source=f"row {row.id}")
                journal.store(row.id, outcome)
                bar.update()
        return {identifier: journal.load_document(identifier) for identifier in rows}


def open_journal(folder: Path, options: SearchOptions = OPTIONS) -> Journal:
    """The journal of finished results, by id; results of other settings or versions are dropped."""
    decisive = {
        "allocators": list(ALLOCATORS),
        "objective": options.objective.value,
        "effort": options.effort,
        "seed": options.seed,
        **({"brief": True} if options.brief else {}),
        "version": __version__,
        **{package: version(package) for package in ("numba", "ortools")},
    }
    return Journal(folder, decisive)


def better_label(row: Row, options: SearchOptions = OPTIONS) -> dict[str, Any]:
    """The `best_` columns and `bank_conflicts` of a row that has a label.

    Raises MissingExtraError without the extra `exact` or `build`, and
    ContradictionError for an answer below the bound that the search proved.
    """
    assert row.label is not None
    problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
    verifier = FastVerifier(problem)
    searched: dict[str, NamedAssignment] = {}
    if options.brief and row.n_instructions > MOST_INSTRUCTIONS:
        bound = lower_bound(problem, solver=False)
    else:
        searched, bound = _search(problem, row.label, options)
    source, best = _best_answer(row, problem, verifier, searched)
    verdict = verifier.verify(best)
    assert verdict.registers_used is not None
    registers = verdict.registers_used[VECTOR]
    check_against_answer(problem, bound.value, registers, source or row.label_source)
    return {
        "best_assignment": None if source is None else _compact(best),
        "best_source": source,
        "best_registers_used": registers,
        "best_lower_bound": bound.value,
        "best_is_optimal": registers == bound.value,
        "best_certificate": _compact(to_json(bound)),
        "best_bank_conflicts": count_bank_conflicts(problem, best).any,
        "bank_conflicts": count_bank_conflicts(problem, row.label).any,
    }


def _search(
    problem: AllocationProblem, label: NamedAssignment, options: SearchOptions
) -> tuple[dict[str, NamedAssignment], LowerBound]:
    """Answers by the name of their allocator, and the bound that was proved."""
    # numba and ortools take longer to import than all the rest of a build.
    from verilocc_bench.allocators.search.answer_comparison import assignment_of
    from verilocc_bench.allocators.search.portfolio import Search

    search = Search(problem, options, start=assignment_of(problem, label))
    try:
        found = search.run()
    except AllocationFailed:
        return {}, search.bound
    return {ALLOCATORS[0]: answer_from_assignment(problem, found.assignment)}, found.bound


def _best_answer(
    row: Row,
    problem: AllocationProblem,
    verifier: FastVerifier,
    searched: Mapping[str, NamedAssignment],
) -> tuple[str | None, NamedAssignment]:
    """The best answer with its source; the label with None if no answer is better."""
    from verilocc_bench.allocators.search.answer_comparison import answer_cost

    assert row.label is not None
    own = verifier.verify(row.label)
    assert own.valid, f"row {row.id} has a wrong label"
    source: str | None = None
    best: NamedAssignment = row.label
    least = answer_cost(problem, best, OPTIONS.objective)
    for name, answer in {**row.other_labels, **searched}.items():
        verdict = verifier.verify(answer)
        if verdict.valid and _occupancy(verdict) >= _occupancy(own):
            cost = answer_cost(problem, answer, OPTIONS.objective)
            if cost < least:
                source, best, least = name, answer, cost
    return source, best


def _occupancy(verdict: Verdict) -> int:
    assert verdict.occupancy is not None
    return verdict.occupancy


def _compact(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))
