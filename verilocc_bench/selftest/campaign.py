"""Judges mutated answers by every judge, counts, and shrinks what they disagree about.

A disagreement is an answer that one judge accepts and another rejects; the
executor rejects what it shows to be wrong and accepts nothing, a lower bound
rejects a valid answer that uses fewer registers. The allocators are asked about
some functions besides: what they break of the law of bounds (selftest.law) is a
disagreement too. Where a number of mutants is given, the outcome follows from the
seed alone.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.judges import BoundedJudges
from verilocc_bench.selftest.law import breaches
from verilocc_bench.selftest.shrink import EVALUATIONS, shrink
from verilocc_bench.selftest.sources import Cases, CaseSource
from verilocc_bench.verify import FastVerifier
from verilocc_bench.verify.judges import BOUND, EXECUTOR, Opinion

__all__ = ["Campaign", "CampaignOutcome", "Disagreement", "Tally"]

SHRUNK_OF_A_KIND = 3
LAW_EVALUATIONS = 200
"""Candidates for which all allocators are asked take longer to judge."""
ALLOCATORS = "(allocators)"
"""What stands for the operator where allocators were asked."""
LARGE = 300
"""Functions of more instructions take longer to judge: fewer smaller ones are tried."""


@dataclass(slots=True)
class Tally:
    """The counts of one operator.

    `legality`: rejected because a register is not there or not allowed, so
    that nothing runs. `killed[judge]`: rejected by it; `killed_shown[judge]`:
    those of them that the executor shows, of `shown_to[judge]` that it judged.
    """

    mutants: int = 0
    wrong: int = 0
    legality: int = 0
    shown: int = 0
    not_shown: int = 0
    killed: Counter[str] = field(default_factory=Counter)
    killed_shown: Counter[str] = field(default_factory=Counter)
    shown_to: Counter[str] = field(default_factory=Counter)

    @property
    def valid(self) -> int:
        """Those that no judge rejects."""
        return self.mutants - self.wrong

    def add(self, opinion: Opinion) -> None:
        """Counts one mutant."""
        self.mutants += 1
        self.wrong += opinion.wrong
        shown = opinion.shown is not None
        self.shown += shown
        if opinion.wrong and not shown:
            self.legality += not opinion.executed
            self.not_shown += opinion.executed
        for judge, findings in opinion.findings.items():
            self.killed[judge] += bool(findings)
            self.shown_to[judge] += shown
            self.killed_shown[judge] += shown and bool(findings)

    def merge(self, other: Tally) -> None:
        """Adds the counts of another."""
        for name in ("mutants", "wrong", "legality", "shown", "not_shown"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.killed.update(other.killed)
        self.killed_shown.update(other.killed_shown)
        self.shown_to.update(other.shown_to)

    def to_json(self) -> dict[str, Any]:
        """The counts as one JSON object."""
        return {
            "mutants": self.mutants,
            "wrong": self.wrong,
            "legality": self.legality,
            "shown": self.shown,
            "not_shown": self.not_shown,
            "valid": self.valid,
            "killed": dict(self.killed),
            "shown_to": dict(self.shown_to),
            "killed_shown": dict(self.killed_shown),
        }


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Judges that disagree about a case, here shrunk, and what they say of it."""

    kind: str
    operator: str
    case: Case
    opinion: Opinion

    def to_json(self) -> dict[str, Any]:
        """The disagreement as one JSON object."""
        shown = self.opinion.shown
        return {
            "kind": self.kind,
            "operator": self.operator,
            "normalized": str(self.case).rpartition("\n")[0] + "\n",
            "answer": self.case.answer_json(),
            "findings": {
                judge: [finding.to_json() for finding in findings]
                for judge, findings in self.opinion.findings.items()
            },
            "executor": None if shown is None else shown.to_json(),
            "proved": self.opinion.proved,
        }

    def __str__(self) -> str:
        lines = [f"{self.kind} (by {self.operator})", str(self.case)]
        for judge, findings in self.opinion.findings.items():
            lines.append(f"{judge}: {'rejects' if findings else 'accepts'}")
            lines += [f"  {finding.kind.value}: {finding.message}" for finding in findings]
        if self.opinion.shown is not None:
            lines.append(f"{EXECUTOR}: {self.opinion.shown}")
        if self.opinion.proved is not None:
            lines.append(f"{BOUND}: {self.opinion.proved}")
        return "\n".join(lines)


@dataclass(slots=True)
class CampaignOutcome:
    """What a campaign has found so far.

    `asked` counts the functions that allocators were asked about, `answered` their answers.
    """

    tallies: dict[str, Tally] = field(default_factory=dict)
    functions: int = 0
    kernels: int = 0
    asked: int = 0
    answered: int = 0
    beyond_analysis: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    interrupted: bool = False

    @property
    def mutants(self) -> int:
        """All that were judged."""
        return sum(tally.mutants for tally in self.tallies.values())

    @property
    def total(self) -> Tally:
        """All operators together."""
        total = Tally()
        for tally in self.tallies.values():
            total.merge(tally)
        return total


class Campaign:
    """One run over the cases of a seed, until a number of them or a time."""

    def __init__(
        self,
        seed: int,
        rows: tuple[Row, ...] = (),
        *,
        mutants: int | None = None,
        seconds: float | None = None,
        smt: bool = False,
    ) -> None:
        self.seed, self.rows, self.smt = seed, rows, smt
        self.mutants, self.seconds = mutants, seconds
        self.outcome = CampaignOutcome()

    def run(self, progress: Callable[[CampaignOutcome], None] = lambda _: None) -> CampaignOutcome:
        """Runs to the end, or until it is interrupted; either way the outcome so far."""
        start = time.monotonic()
        outcome = self.outcome
        try:
            for found in CaseSource(self.seed, self.rows, self.smt):
                outcome.kernels += found.kernel
                outcome.functions += not found.kernel
                for name, case in found.cases:
                    if self.is_over(start):
                        return outcome
                    self.judge(name, case, found.judges)
                    outcome.seconds = time.monotonic() - start
                    progress(outcome)
                if found.asked and not self.is_over(start):
                    self.ask_allocators(found)
                    outcome.seconds = time.monotonic() - start
        except KeyboardInterrupt:
            outcome.interrupted = True
        return outcome

    def is_over(self, start: float) -> bool:
        """Whether as many as asked were judged, or for as long."""
        if self.mutants is not None and self.outcome.mutants >= self.mutants:
            return True
        return self.seconds is not None and time.monotonic() - start >= self.seconds

    def judge(self, name: str, case: Case, judges: BoundedJudges) -> None:
        """One case by all judges."""
        try:
            opinion = judges.judge(case)
        except InputError:
            self.outcome.beyond_analysis += 1
            return
        except Exception as error:
            error.add_note(f"on this function and answer (by {name}):\n{case}")
            raise
        self.outcome.tallies.setdefault(name, Tally()).add(opinion)
        for kind in opinion.disagreements():
            self.outcome.kinds[kind] += 1
            if self.outcome.kinds[kind] <= SHRUNK_OF_A_KIND:
                self.outcome.disagreements.append(self.shrunk(kind, name, case, judges))

    def ask_allocators(self, found: Cases) -> None:
        """Asks the allocators about a function, and keeps what they contradict."""
        problem = found.judges.problem
        broken, answers = breaches(problem, found.answer)
        self.outcome.asked += 1
        self.outcome.answered += answers
        for breach in broken:
            self.outcome.kinds[breach.kind] += 1
            if self.outcome.kinds[breach.kind] <= SHRUNK_OF_A_KIND:
                case = Case(problem.function, breach.answer or {})
                small = shrink(case, partial(_breaks, breach.kind), LAW_EVALUATIONS)
                opinion = Opinion((), breach.message)
                self.outcome.disagreements.append(
                    Disagreement(breach.kind, ALLOCATORS, small, opinion)
                )

    def shrunk(self, kind: str, name: str, case: Case, judges: BoundedJudges) -> Disagreement:
        """A disagreement as small as can be found."""
        solver, held = judges.bounds.solver, BOUND in kind

        def judged(candidate: Case) -> Opinion:
            problem = AllocationProblem(candidate.function)
            return BoundedJudges(problem, self.smt, solver).judge(candidate, held=held)

        count = EVALUATIONS if case.function.instruction_count < LARGE else EVALUATIONS // 10
        small = shrink(case, lambda c: kind in judged(c).disagreements(), count)
        return Disagreement(kind, name, small, judged(small))


def _breaks(kind: str, case: Case) -> bool:
    """Whether the allocators break a law about a function, as they do with a valid answer known."""
    problem = AllocationProblem(case.function)
    valid = FastVerifier(problem).verify(case.assignment).valid
    broken, _ = breaches(problem, case.assignment if valid else None)
    return any(breach.kind == kind for breach in broken)
