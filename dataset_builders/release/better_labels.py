"""Labels better than the compiler's: other answers, with fewer vector registers.

They come from the row's alternatives and from deterministic allocators, each
asked once. Whole datasets are worked through by many processes into a journal
of their own, so that an interrupted release goes on. A bound that no allocation can
go below stands beside: where the two meet, the label is optimal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dataset_builders.building.execution import Execution, Lost, run_tasks
from dataset_builders.building.journal import Journal
from verilocc_bench import __version__
from verilocc_bench.allocators import BUILT_IN, Answer, Request
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.verify import FastVerifier, Verdict

__all__ = ["ALLOCATORS", "better_label", "better_labels"]

ALLOCATORS = ("linear-scan", "graph-coloring")
"""In the order in which they are asked; of equally good answers the first stays."""


def better_labels(
    rows: Mapping[str, Callable[[], Row]],
    folder: Path,
    execution: Execution,
    *,
    progress: bool = True,
) -> dict[str, dict[str, Any]]:
    """By id the `best_` columns of rows, which are loaded when their turn comes.

    `folder` keeps what is done. Raises InputError where a row is beyond its
    time limit or ends its process twice: its label could not be judged either.
    """
    fingerprint = {"allocators": list(ALLOCATORS), "version": __version__}
    with Journal(folder, fingerprint) as journal:
        journal.arrange(list(rows))
        pending = [identifier for identifier in rows if not journal.has(identifier)]
        loaded = (rows[identifier]() for identifier in pending)
        bar = tqdm(
            total=len(rows),
            initial=len(rows) - len(pending),
            desc="better labels",
            unit="row",
            disable=None if progress else True,
        )
        with bar, closing(run_tasks(better_label, loaded, execution)) as outcomes:
            for row, outcome in outcomes:
                if isinstance(outcome, Lost):
                    message = f"looking for a better label, the process {outcome.reason}"
                    raise InputError(message, source=f"row {row.id}")
                journal.store(row.id, outcome)
                bar.update()
        return {identifier: journal.load_document(identifier) for identifier in rows}


def better_label(row: Row) -> dict[str, Any]:
    """The `best_` columns of a row; nothing where none is better than the compiler's label.

    Better is: valid, with fewer vector registers, and with no lower occupancy.
    """
    if row.label is None:
        return {}
    problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
    verifier = FastVerifier(problem)
    best = verifier.verify(row.label)
    assert best.valid, f"row {row.id} has a wrong label"
    bound = problem.pressure.maximum[VECTOR]
    found: dict[str, Any] = {}
    for source, answer in _answers(row, problem):
        verdict = verifier.verify(answer)
        if verdict.valid and _is_better(verdict, best):
            best = verdict
            found = {
                "best_assignment": json.dumps(answer, separators=(",", ":")),
                "best_source": source,
                "best_registers_used": _vector_registers(best),
                "best_lower_bound": bound,
                "best_is_optimal": _vector_registers(best) == bound,
            }
        if _vector_registers(best) == bound:
            break
    return found


def _answers(row: Row, problem: AllocationProblem) -> Iterator[tuple[str, Answer]]:
    yield from row.other_labels.items()
    for name in ALLOCATORS:
        try:
            answer = BUILT_IN[name].allocate(Request(problem))
        except AllocationFailed:
            continue
        if isinstance(answer, dict):  # none of them answers with edits
            yield name, answer


def _is_better(verdict: Verdict, than: Verdict) -> bool:
    assert verdict.occupancy is not None
    assert than.occupancy is not None
    fewer = _vector_registers(verdict) < _vector_registers(than)
    return fewer and verdict.occupancy >= than.occupancy


def _vector_registers(verdict: Verdict) -> int:
    assert verdict.registers_used is not None
    return verdict.registers_used[VECTOR]
