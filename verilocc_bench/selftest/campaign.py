"""Asks every judge about mutated answers, counts, and shrinks the disagreements.

A disagreement is an answer that one judge accepts and another rejects. The
value walk rejects the answers that it shows to be wrong, and accepts none. A lower
bound rejects a valid answer that uses fewer registers. The allocators answer
some of the functions; an answer that breaks the law of bounds
(selftest.bound_law) is a disagreement, too. With a fixed number of mutants the
outcome depends on the seed alone.
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
from verilocc_bench.selftest.asked_judges import BoundedJudges
from verilocc_bench.selftest.bound_law import breaches
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.executed_cases import ExecutedCases
from verilocc_bench.selftest.shrink import EVALUATIONS, shrink
from verilocc_bench.selftest.sources import Cases, CaseSource
from verilocc_bench.settings.judges import VALUE_WALK
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.judges import BOUND, Opinion

SHRUNK_OF_A_KIND = 3
LAW_EVALUATIONS = 200
"""The most evaluations for shrinking a case by asking all allocators: each takes longer."""
ALLOCATORS = "(allocators)"
"""The name of the operator for cases in which allocators were asked."""
LARGE = 300
"""A function with more instructions takes longer to judge, so fewer candidates are tried."""


@dataclass(slots=True)
class Tally:
    """The counts of one operator.

    `legality` counts mutants rejected because a register does not exist or is not
    allowed; the value walk does not run them. `killed[judge]` counts the mutants
    that a judge rejects. Of these, the value walk judged `shown_to[judge]` and
    showed `killed_shown[judge]` to be wrong.
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
        """The number of mutants that no judge rejects."""
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
        """Adds the counts of another tally."""
        for name in ("mutants", "wrong", "legality", "shown", "not_shown"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.killed.update(other.killed)
        self.killed_shown.update(other.killed_shown)
        self.shown_to.update(other.shown_to)

    @classmethod
    def from_json(cls, counts: dict[str, Any]) -> Tally:
        """The tally of such a JSON object."""
        return cls(
            **{name: counts[name] for name in ("mutants", "wrong", "legality", "shown")},
            not_shown=counts["not_shown"],
            killed=Counter(counts["killed"]),
            killed_shown=Counter(counts["killed_shown"]),
            shown_to=Counter(counts["shown_to"]),
        )

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
    """A shrunk case about which judges disagree, and their opinion."""

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
            VALUE_WALK: None if shown is None else shown.to_json(),
            "proved": self.opinion.proved,
        }

    def __str__(self) -> str:
        lines = [f"{self.kind} (by {self.operator})", str(self.case)]
        for judge, findings in self.opinion.findings.items():
            lines.append(f"{judge}: {'rejects' if findings else 'accepts'}")
            lines += [f"  {finding.kind.value}: {finding.message}" for finding in findings]
        if self.opinion.shown is not None:
            lines.append(f"{VALUE_WALK}: {self.opinion.shown}")
        if self.opinion.proved is not None:
            lines.append(f"{BOUND}: {self.opinion.proved}")
        return "\n".join(lines)


@dataclass(slots=True)
class CampaignOutcome:
    """The findings of a campaign so far.

    `findings[kind][judge]` counts the answers in which a judge finds such a mistake. For
    the value walk these are the answers that it shows to be wrong. Answers with edits count
    under `JUDGE (edits)`. `kinds` counts the disagreements. `asked` counts the functions
    that allocators were asked about; `answered` counts the allocators' answers, `executed`
    those whose machine code ran.
    """

    tallies: dict[str, Tally] = field(default_factory=dict)
    findings: dict[str, Counter[str]] = field(default_factory=dict)
    functions: int = 0
    kernels: int = 0
    asked: int = 0
    answered: int = 0
    executed: int = 0
    beyond_analysis: int = 0
    seconds: float = 0.0
    kinds: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    interrupted: bool = False

    @property
    def mutants(self) -> int:
        """The number of judged mutants."""
        return sum(tally.mutants for tally in self.tallies.values())

    @property
    def total(self) -> Tally:
        """The counts of all operators together."""
        total = Tally()
        for tally in self.tallies.values():
            total.merge(tally)
        return total

    def add(self, name: str, case: Case, opinion: Opinion) -> None:
        """Counts one case of an operator, and the kinds of its findings."""
        self.tallies.setdefault(name, Tally()).add(opinion)
        suffix = "" if case.edits is None else " (edits)"
        kinds = {
            judge: {finding.kind.value for finding in findings}
            for judge, findings in opinion.findings.items()
        }
        if opinion.shown is not None:
            kinds[VALUE_WALK] = set().union(*kinds.values())
        for judge, found in kinds.items():
            for kind in found:
                self.findings.setdefault(kind, Counter())[judge + suffix] += 1


class Campaign:
    """One run over the cases of a seed, up to a number of cases or a time."""

    def __init__(
        self,
        seed: int,
        rows: tuple[Row, ...] = (),
        *,
        mutants: int | None = None,
        seconds: float | None = None,
        smt: bool = False,
        machine_code: ExecutedCases | None = None,
    ) -> None:
        self.seed, self.rows, self.smt = seed, rows, smt
        self.machine_code = machine_code
        self.mutants, self.seconds = mutants, seconds
        self.outcome = CampaignOutcome()

    def run(self, progress: Callable[[CampaignOutcome], None] = lambda _: None) -> CampaignOutcome:
        """Runs to the end or until it is interrupted. Returns the outcome so far."""
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
                    self.execute(name, case, found)
                    outcome.seconds = time.monotonic() - start
                    progress(outcome)
                if found.asked and not self.is_over(start):
                    self.ask_allocators(found)
                    outcome.seconds = time.monotonic() - start
        except KeyboardInterrupt:
            outcome.interrupted = True
        return outcome

    def is_over(self, start: float) -> bool:
        """True if the number of cases or the time is reached."""
        if self.mutants is not None and self.outcome.mutants >= self.mutants:
            return True
        return self.seconds is not None and time.monotonic() - start >= self.seconds

    def judge(self, name: str, case: Case, judges: BoundedJudges) -> None:
        """Asks all judges about one case."""
        try:
            opinion = judges.judge(case)
        except InputError:
            self.outcome.beyond_analysis += 1
            return
        except Exception as error:
            error.add_note(f"on this function and answer (by {name}):\n{case}")
            raise
        self.outcome.add(name, case, opinion)
        for kind in opinion.disagreements():
            self.outcome.kinds[kind] += 1
            if self.outcome.kinds[kind] <= SHRUNK_OF_A_KIND:
                self.outcome.disagreements.append(self.shrunk(kind, name, case, judges))

    def execute(self, name: str, case: Case, found: Cases) -> None:
        """Runs the machine code of an answer that the judges accept."""
        if self.machine_code is None or found.row is None:
            return
        kind = self.machine_code.breach(case, found.row, found.judges)
        self.outcome.executed = self.machine_code.executed
        if kind is not None:
            self.outcome.kinds[kind] += 1
            if self.outcome.kinds[kind] <= SHRUNK_OF_A_KIND:
                self.outcome.disagreements.append(Disagreement(kind, name, case, Opinion(())))

    def ask_allocators(self, found: Cases) -> None:
        """Asks the allocators about a function, and keeps the breaches of the law of bounds."""
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
        """The smallest case with the same disagreement that shrinking finds."""
        solver, held = judges.bounds.solver, BOUND in kind

        def judged(candidate: Case) -> Opinion:
            problem = AllocationProblem(candidate.function)
            return BoundedJudges(problem, self.smt, solver).judge(candidate, held=held)

        count = EVALUATIONS if case.function.instruction_count < LARGE else EVALUATIONS // 10
        small = shrink(case, lambda c: kind in judged(c).disagreements(), count)
        return Disagreement(kind, name, small, judged(small))


def _breaks(kind: str, case: Case) -> bool:
    """True if the allocators break that law about the function; the case's answer is valid."""
    problem = AllocationProblem(case.function)
    valid = FastVerifier(problem).verify(case.assignment).valid
    broken, _ = breaches(problem, case.assignment if valid else None)
    return any(breach.kind == kind for breach in broken)
