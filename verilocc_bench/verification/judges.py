"""The judges of answers: asked one by one or together, and compared.

There are four. `fast` is the check that verdicts come from; `independent`
shares no analysis with it; `smt` asks Z3 (the extra `smt`); `value-walk` runs
an answer along random paths and looks for a wrong value. A judge may be
unable to judge an answer: it knows no edits, the function is too large for
it, or its package is not installed.

To add one, name it in `settings.judges`, and write a Judge for _REGISTRY.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.resolved_answer import resolve_answer
from verilocc_bench.edits import Answer, AnswerLike
from verilocc_bench.edits.findings import OF_VALUES, Finding, Verdict
from verilocc_bench.errors import InputError
from verilocc_bench.settings.judges import (
    FAST,
    INDEPENDENT,
    JUDGES,
    JUDGES_OF_EDITS,
    SMT,
    VALUE_WALK,
)
from verilocc_bench.verification.fast import FastVerifier
from verilocc_bench.verification.value_walk import Miscompile, ValueWalk
from verilocc_bench.verification.verifier import IndependentVerifier, Verifier

PATHS = 200
BOUND = "lower bound"


@dataclass(frozen=True, slots=True)
class Effort:
    """How hard the judges try.

    The value walk takes `paths` random paths of an answer that another judge
    rejects, and `paths_of_accepted` of an answer that all accept. It walks fewer
    if they would have more than `steps` instructions together. A verdict
    describes its first `findings` (None: all) and counts the others.
    """

    paths: int = PATHS
    paths_of_accepted: int = PATHS
    steps: int = 10_000_000
    findings: int | None = None


@dataclass(frozen=True, slots=True)
class Word:
    """The judgement of one judge about an answer.

    `verdict` is set by the judges that give verdicts. `shown` is a wrong value
    that the value walk found on one of `paths` random paths. `note` says why the
    judge did not run. `asked` is False if it cannot judge such an answer at all.
    """

    judge: str
    verdict: Verdict | None = None
    shown: Miscompile | None = None
    note: str | None = None
    paths: int = 0
    asked: bool = True
    seconds: float = field(default=0.0, compare=False)

    @property
    def accepts(self) -> bool:
        """True if the judge was asked, ran and found nothing wrong with the answer."""
        if self.note is not None or self.shown is not None:
            return False
        return self.verdict is None or self.verdict.valid

    @property
    def rejects(self) -> bool:
        """True if the judge found something wrong with the answer."""
        return self.shown is not None or (self.verdict is not None and not self.verdict.valid)

    def __str__(self) -> str:
        """The judgement of the value walk in words."""
        if self.shown is not None:
            return f"miscompile\n{self.shown}"
        return self.note or f"no difference on {self.paths} random paths"

    def to_json(self) -> dict[str, Any]:
        """The word as one JSON object; `accepts` is null where the judge could not be asked."""
        return {
            "judge": self.judge,
            "accepts": self.accepts if self.asked else None,
            "note": self.note,
            "verdict": None if self.verdict is None else self.verdict.to_json(),
            "miscompile": None if self.shown is None else self.shown.to_json(),
        }


@dataclass(frozen=True, slots=True)
class Opinion:
    """The words of several judges about one answer.

    `proved` says in words that a lower bound contradicts an answer that all
    judges accept.
    """

    words: tuple[Word, ...]
    proved: str | None = None

    @property
    def findings(self) -> dict[str, tuple[Finding, ...]]:
        """The findings of each judge with a verdict, by its name."""
        return {w.judge: w.verdict.findings for w in self.words if w.verdict is not None}

    @property
    def shown(self) -> Miscompile | None:
        """The wrong value that the value walk found."""
        return next((word.shown for word in self.words if word.shown is not None), None)

    @property
    def executed(self) -> bool:
        """True if the value walk ran the answer."""
        return any(word.judge == VALUE_WALK and word.paths > 0 for word in self.words)

    @property
    def wrong(self) -> bool:
        """True if any judge rejects the answer."""
        return any(word.rejects for word in self.words)

    def disagreements(self) -> tuple[str, ...]:
        """Every pair of judges that contradict each other, in words.

        Two judges contradict each other if only one accepts the answer, or if
        both accept and count different registers. A value walk that finds no
        wrong value contradicts no other judge.
        """
        accepting = [word.judge for word in self.words if word.accepts and word.verdict is not None]
        rejecting = [word.judge for word in self.words if word.rejects]
        if self.proved is not None:
            rejecting.append(BOUND)
        found = [
            f"{judge} accepts what {other} rejects" for judge in accepting for other in rejecting
        ]
        verdicts = [word for word in self.words if word.verdict is not None and word.accepts]
        for first, second in itertools.pairwise(verdicts):
            assert first.verdict is not None
            assert second.verdict is not None
            uses = first.verdict.registers_used, second.verdict.registers_used
            if None not in uses and uses[0] != uses[1]:
                found.append(f"{first.judge} counts other registers than {second.judge}: {uses}")
        return tuple(found)


class Judge(Protocol):
    """A judge of one function's answers."""

    def ask(self, answer: Answer, before: Sequence[Word]) -> Word:
        """The judgement of the answer; `before` holds the words of the judges before it.

        Raises InputError for an answer that it cannot judge.
        """
        ...


class Judges:
    """Judges of one function, asked together about any number of answers."""

    def __init__(
        self,
        problem: AllocationProblem,
        names: Sequence[str] = JUDGES,
        effort: Effort = Effort(),
    ) -> None:
        self.problem, self.names, self.effort = problem, names, effort
        self._judges: dict[str, Judge] = {}

    def ask(self, answer: AnswerLike) -> Opinion:
        """The opinion of all judges.

        A judge that cannot judge the answer gives only a note with the reason.
        Raises InputError if no judge can.
        """
        answer = Answer.of(answer)
        words: list[Word] = []
        for name in self.names:
            try:
                words.append(self.word(name, answer, words))
            except InputError as error:
                words.append(Word(name, note=f"is not asked: {error.message}", asked=False))
        if not any(word.asked for word in words):
            raise InputError("; ".join(f"{word.judge} {word.note}" for word in words))
        return Opinion(tuple(words))

    def word(self, name: str, answer: AnswerLike, before: Sequence[Word] = ()) -> Word:
        """The judgement of one judge. Raises InputError if it cannot judge such an answer."""
        if name not in self._judges:
            self._judges[name] = _REGISTRY[name](self.problem, self.effort)
        started = time.perf_counter()
        word = self._judges[name].ask(Answer.of(answer), before)
        return replace(word, seconds=time.perf_counter() - started)


class _Fast:
    def __init__(self, problem: AllocationProblem, effort: Effort) -> None:
        self.verifier, self.findings = FastVerifier(problem), effort.findings

    def ask(self, answer: Answer, _before: Sequence[Word]) -> Word:
        _refuse_edits(FAST, answer)
        return Word(FAST, self.verifier.verify(answer, self.findings))


class _Independent:
    def __init__(self, problem: AllocationProblem, effort: Effort) -> None:
        self.verifier, self.findings = IndependentVerifier(problem), effort.findings

    def ask(self, answer: Answer, _before: Sequence[Word]) -> Word:
        return Word(INDEPENDENT, self.verifier.verify(answer, self.findings))


class _Smt:
    def __init__(self, problem: AllocationProblem, _effort: Effort) -> None:
        self.problem = problem

    def ask(self, answer: Answer, _before: Sequence[Word]) -> Word:
        _refuse_edits(SMT, answer)
        from verilocc_bench.verification.smt import SMTVerifier

        return Word(SMT, SMTVerifier(self.problem).verify(answer))


class _ValueWalk:
    """Runs answers in which every virtual register has an existing, legal register.

    Other answers are wrong whatever the values are. Half of the paths go toward
    the blocks of the findings.
    """

    def __init__(self, problem: AllocationProblem, effort: Effort) -> None:
        self.problem, self.effort = problem, effort

    def ask(self, answer: Answer, before: Sequence[Word]) -> Word:
        problem, verdicts = self.problem, [word.verdict for word in before if word.verdict]
        if not verdicts:
            verdicts = [Verifier(problem).verify(answer, self.effort.findings)]
        if all(not verdict.valid for verdict in verdicts):
            for verdict in verdicts:
                told = [(finding.kind, finding.message) for finding in verdict.findings]
                for kind, why in [*told, *((kind, kind.value) for kind in verdict.untold)]:
                    if kind not in OF_VALUES:
                        note = f"not run, because it judges values alone: {why}"
                        return Word(VALUE_WALK, note=note)
        try:
            walk = value_walk_of(problem, answer)
        except ValueError as error:
            return Word(VALUE_WALK, note=f"not run: {error}")
        steps = 40 + 3 * problem.function.instruction_count
        paths = self.effort.paths
        if all(verdict.valid for verdict in verdicts):
            paths = min(paths, self.effort.paths_of_accepted)
        paths = max(1, min(paths, self.effort.steps // steps))
        blocks = {f.block for verdict in verdicts for f in verdict.findings if f.block}
        toward = itertools.cycle([*sorted(blocks), None])
        for seed, block in zip(range(paths), toward, strict=False):
            shown = walk.run(seed, steps, block)
            if shown is not None:
                return Word(VALUE_WALK, shown=shown, paths=seed + 1)
        return Word(VALUE_WALK, paths=paths)


def value_walk_of(problem: AllocationProblem, answer: AnswerLike) -> ValueWalk:
    """The value walk of an answer. Raises ValueError if a register does not exist."""
    resolved = resolve_answer(problem, answer)
    bases = {number: (base.file, base.index) for number, base in resolved.registers.items()}
    return ValueWalk(problem.function, problem.target, bases, resolved.edited)


def _refuse_edits(name: str, answer: Answer) -> None:
    if answer.has_edits and name not in JUDGES_OF_EDITS:
        raise InputError(f"the judge {name!r} does not judge answers with edits")


_REGISTRY: dict[str, Callable[[AllocationProblem, Effort], Judge]] = {
    FAST: _Fast,
    INDEPENDENT: _Independent,
    SMT: _Smt,
    VALUE_WALK: _ValueWalk,
}
