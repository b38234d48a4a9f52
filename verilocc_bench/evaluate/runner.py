"""Asks an allocator about every row, and judges every answer."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from verilocc_bench.allocators import BUILT_IN, Allocator, LabelReplay, Request
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.edits import (
    GUARD,
    Answer,
    AnyAnswer,
    SplitAnswer,
    edit_function,
    edits_to_json,
    parse_edits,
    replaced_function,
)
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.evaluate.metrics import (
    BankConflicts,
    count_bank_conflicts,
    count_identity_copies,
)
from verilocc_bench.evaluate.models import resolve_model
from verilocc_bench.verify import Verdict, Verifier

__all__ = ["Outcome", "RowResult", "Sample", "ask", "evaluate_row", "evaluate_rows"]

MESSAGE_LENGTH = 300

FINDINGS_KEPT = 100
"""An answer that puts everything into one register has a hundred thousand."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One answer, judged; or the allocator's failure to give one.

    Of the `findings_count` findings, which are of `finding_kinds`, the verdict
    keeps the first.
    """

    index: int
    verdict: Verdict | None
    failure: str | None
    message: str | None
    allocate_seconds: float
    verify_seconds: float
    findings_count: int = 0
    finding_kinds: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether there is an answer and it is right."""
        return self.verdict is not None and self.verdict.valid

    def to_json(self, row: Row) -> dict[str, Any]:
        """One line of samples.jsonl."""
        return {
            "id": row.id,
            "task": f"{row.arch}/{row.family}",
            "sample": self.index,
            "valid": self.valid,
            "failure": self.failure,
            "message": self.message,
            "verdict": None if self.verdict is None else self.verdict.to_json(),
            "findings_count": self.findings_count,
            "allocate_seconds": self.allocate_seconds,
            "verify_seconds": self.verify_seconds,
        }


@dataclass(frozen=True, slots=True)
class Outcome:
    """The quality of the first valid answer for a function.

    `label_registers` and `label_occupancy` are None without a label.
    """

    registers: int
    label_registers: int | None
    bound: int
    occupancy: int
    label_occupancy: int | None
    identity_copies: int
    bank_conflicts: BankConflicts


@dataclass(frozen=True, slots=True)
class RowResult:
    """All samples of one function, and the quality of the first valid one."""

    row_id: str
    task: str
    samples: tuple[Sample, ...]
    outcome: Outcome | None


def evaluate_rows(
    rows: Sequence[Row], model: str, *, samples: int, seed: int, jobs: int
) -> Iterator[tuple[Row, RowResult]]:
    """Results in the order of the rows, as they come; `jobs` processes share the work."""
    if jobs <= 1 or len(rows) <= 1:
        allocator = resolve_model(model)
        for row in rows:
            yield row, evaluate_row(row, allocator, samples, seed)
        return
    resolve_model(model)  # a wrong name is found here, not in a process
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(rows)), context, _start, (model,)) as pool:
        tasks = [pool.submit(_evaluate_in_process, row, samples, seed) for row in rows]
        try:
            for row, task in zip(rows, tasks, strict=True):
                yield row, task.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_allocator: Allocator | None = None


def _start(model: str) -> None:
    global _allocator  # noqa: PLW0603  one allocator a process, made once
    _allocator = resolve_model(model)


def _evaluate_in_process(row: Row, samples: int, seed: int) -> RowResult:
    assert _allocator is not None
    return evaluate_row(row, _allocator, samples, seed)


def sample_seed(seed: int, row_id: str, index: int) -> int:
    """The seed of one sample: the same whatever else runs, and in whatever order."""
    digest = hashlib.sha256(f"{seed} {row_id} {index}".encode()).digest()
    return int.from_bytes(digest[:8], "big")


def evaluate_row(row: Row, allocator: Allocator, samples: int, seed: int) -> RowResult:
    """All samples of one row, judged. A deterministic allocator is asked once."""
    problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
    if problem.id != row.id:
        raise InputError(f"row {row.id}: the id is not the hash of the normalized text")
    verifier = Verifier(problem)
    label = None if row.label is None else verifier.verify(row.label)
    if label is not None and not label.valid:
        raise InputError(f"row {row.id}: the label is wrong: {label.findings[0].message}")
    # Foreign code gets a problem of its own: what it does to it changes no verdict.
    own = allocator.name in BUILT_IN
    asked = problem if own else AllocationProblem.from_text(row.normalized)
    judged: list[Sample] = []
    outcome: Outcome | None = None
    for index in range(samples):
        if index and allocator.deterministic:
            again = replace(judged[0], index=index, allocate_seconds=0.0, verify_seconds=0.0)
            judged.append(again)
            continue
        request = Request(asked, index, sample_seed(seed, row.id, index))
        if isinstance(allocator, LabelReplay):
            request = replace(request, label=row.label, alternatives=row.other_labels)
        sample, answer = ask(allocator, request, verifier)
        judged.append(sample)
        if outcome is None and sample.verdict is not None and sample.valid:
            assert answer is not None
            outcome = _outcome(problem, answer, sample.verdict, label)
    return RowResult(row.id, f"{row.arch}/{row.family}", tuple(judged), outcome)


def ask(
    allocator: Allocator, request: Request, verifier: Verifier
) -> tuple[Sample, AnyAnswer | None]:
    """An allocator's answer, judged; whatever it raises or returns is a counted failure.

    What it prints goes to standard error: standard output is for results.
    """
    failure, message, answer = None, None, None
    started = time.perf_counter()
    try:
        with contextlib.redirect_stdout(sys.stderr):
            answer = allocator.allocate(request)
    except AllocationFailed as error:
        failure, message = "no_answer", str(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001  foreign code may raise anything
        failure, message = "crashed", f"{type(error).__name__}: {error}"
    allocated = time.perf_counter()
    if failure is None and not _is_answer(answer):
        failure, message = "unparsable", "expected a mapping of names to names"
        answer = None
    verdict = None
    if failure is None:
        assert answer is not None
        try:
            verdict = verifier.verify(answer)
        except InputError as error:  # its moves and guards are beyond the checker's bounds
            failure, message = "beyond_analysis", str(error)
    judged = time.perf_counter()
    findings = () if verdict is None else verdict.findings
    if verdict is not None and len(findings) > FINDINGS_KEPT:
        verdict = replace(verdict, findings=findings[:FINDINGS_KEPT])
    sample = Sample(
        request.sample,
        verdict,
        failure,
        None if message is None else " ".join(message.split())[:MESSAGE_LENGTH],
        allocated - started,
        judged - allocated,
        len(findings),
        tuple(sorted({finding.kind.value for finding in findings})),
    )
    return sample, answer


def _is_answer(answer: object) -> bool:
    if isinstance(answer, SplitAnswer):
        try:
            # Foreign code can put anything into these records; what JSON can say is looked at.
            if parse_edits(edits_to_json(answer.edits)) != answer.edits:
                return False
        except Exception:  # noqa: BLE001  whatever is in there
            return False
        answer = answer.assignment
    return isinstance(answer, Mapping) and all(
        isinstance(key, str) and isinstance(value, str) for key, value in answer.items()
    )


def _as_executed(problem: AllocationProblem, answer: AnyAnswer) -> tuple[AllocationProblem, Answer]:
    """The function with its operands replaced as the answer says, and registers for it."""
    if not isinstance(answer, SplitAnswer):
        return problem, answer
    edited, _ = edit_function(problem.function, problem.target, answer.edits)
    # Guards play no part in what is measured, and may lie in lanes of wider registers.
    operands = {key: lanes for key, lanes in edited.replaced.items() if key[2] != GUARD}
    function, numbers = replaced_function(replace(edited, replaced=operands))
    assignment = {f"%{new}": answer.assignment[f"%{old}"] for old, new in numbers.items()}
    return AllocationProblem(function), assignment


def _outcome(
    problem: AllocationProblem,
    answer: AnyAnswer,
    verdict: Verdict,
    label: Verdict | None,
) -> Outcome:
    assert verdict.registers_used is not None
    assert verdict.occupancy is not None
    label_used = None if label is None else label.registers_used
    rewritten, assignment = _as_executed(problem, answer)
    return Outcome(
        registers=verdict.registers_used[VECTOR],
        label_registers=None if label_used is None else label_used[VECTOR],
        bound=problem.pressure.maximum[VECTOR],
        occupancy=verdict.occupancy,
        label_occupancy=None if label is None else label.occupancy,
        identity_copies=count_identity_copies(rewritten, assignment),
        bank_conflicts=count_bank_conflicts(rewritten, assignment),
    )
