"""The judges that `verify --judge` knows, asked about one answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.edits import AnyAnswer, SplitAnswer, edit_function
from verilocc_bench.errors import InputError
from verilocc_bench.findings import OF_VALUES
from verilocc_bench.verify import FastVerifier, IndependentVerifier, Verdict, Verifier
from verilocc_bench.verify.executor import Executor, Miscompile

__all__ = ["FINDINGS", "JUDGES", "Word", "ask_judge", "ask_judges"]

JUDGES = ("fast", "independent", "smt", "executor")

FINDINGS = 1_000
"""So many findings are told, the others are counted: nobody reads more."""

PATHS = 200
STEPS_PER_INSTRUCTION = 3
STEPS = 10_000_000
"""All paths together may have so many steps; functions of 16,000 instructions get fewer paths."""


@dataclass(frozen=True, slots=True)
class Word:
    """What one judge says: a verdict; of the executor what it has shown, if anything."""

    judge: str
    verdict: Verdict | None = None
    shown: Miscompile | None = None
    note: str | None = None
    paths: int = 0
    asked: bool = True

    @property
    def accepts(self) -> bool:
        """True if the judge was asked, ran and found nothing wrong with the answer."""
        if self.note is not None or self.shown is not None:
            return False
        return self.verdict is None or self.verdict.valid

    def __str__(self) -> str:
        """What the executor says."""
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


def ask_judges(choice: str, problem: AllocationProblem, answer: AnyAnswer) -> list[Word]:
    """The words of the judge of that name; of `all`, those of all that judge such an answer.

    Of all, one that is not installed, or for which the function is too large,
    has only a note of that. Raises InputError where the one that is named, or
    none of all, can judge.
    """
    if choice != "all":
        return [ask_judge(choice, problem, answer)]
    edited = isinstance(answer, SplitAnswer)
    words: list[Word] = []
    for name in JUDGES:
        if not edited or name not in ("fast", "smt"):
            try:
                words.append(ask_judge(name, problem, answer))
            except InputError as error:
                words.append(Word(name, note=f"is not asked: {error.message}", asked=False))
    if not any(word.asked for word in words):
        raise InputError("; ".join(f"{word.judge} {word.note}" for word in words))
    return words


def ask_judge(name: str, problem: AllocationProblem, answer: AnyAnswer) -> Word:
    """What a judge says. Raises InputError where it does not judge such an answer."""
    if name == "executor":
        return _execute(problem, answer)
    if name == "independent":
        return Word(name, IndependentVerifier(problem).verify(answer, FINDINGS))
    if isinstance(answer, SplitAnswer):
        raise InputError(f"the judge {name!r} does not judge answers with edits")
    if name == "fast":
        return Word(name, FastVerifier(problem).verify(answer, FINDINGS))
    from verilocc_bench.verify.smt import SMTVerifier

    return Word(name, SMTVerifier(problem).verify(answer))


def _execute(problem: AllocationProblem, answer: AnyAnswer) -> Word:
    """Runs an answer along random paths, where every register is there and allowed."""
    verdict = Verifier(problem).verify(answer, FINDINGS)
    told = [(finding.kind, finding.message) for finding in verdict.findings]
    for kind, why in [*told, *((kind, kind.value) for kind in verdict.untold)]:
        if kind not in OF_VALUES:
            return Word("executor", note=f"not run, for it is no matter of values: {why}")
    edited, registers = None, dict(enumerate(problem.function.virtual_registers))
    assignment = answer
    if isinstance(answer, SplitAnswer):
        edited, _ = edit_function(problem.function, problem.target, answer.edits)
        registers, assignment = dict(edited.registers), answer.assignment
    assert not isinstance(assignment, SplitAnswer)
    bases: dict[int, tuple[str, int]] = {}
    for number in registers:
        base = parse_register_name(problem.target, assignment[f"%{number}"])
        assert base is not None
        bases[number] = base.file, base.index
    executor = Executor(problem.function, problem.target, bases, edited)
    steps = 40 + STEPS_PER_INSTRUCTION * problem.function.instruction_count
    paths = max(1, min(PATHS, STEPS // steps))
    for seed in range(paths):
        shown = executor.run(seed, steps)
        if shown is not None:
            return Word("executor", shown=shown)
    return Word("executor", paths=paths)
