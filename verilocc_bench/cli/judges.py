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

__all__ = ["JUDGES", "Word", "ask_judge", "judges_of"]

JUDGES = ("fast", "independent", "smt", "executor")

PATHS = 200
STEPS_PER_INSTRUCTION = 3


@dataclass(frozen=True, slots=True)
class Word:
    """What one judge says: a verdict; of the executor what it has shown, if anything."""

    judge: str
    verdict: Verdict | None = None
    shown: Miscompile | None = None
    note: str | None = None

    @property
    def accepts(self) -> bool:
        """Whether the judge has nothing against the answer; one that was not run, has."""
        if self.note is not None or self.shown is not None:
            return False
        return self.verdict is None or self.verdict.valid

    def __str__(self) -> str:
        """What the executor says."""
        if self.shown is not None:
            return f"miscompile\n{self.shown}"
        return self.note or f"no difference on {PATHS} random paths"

    def to_json(self) -> dict[str, Any]:
        """The word as one JSON object."""
        return {
            "judge": self.judge,
            "accepts": self.accepts,
            "note": self.note,
            "verdict": None if self.verdict is None else self.verdict.to_json(),
            "miscompile": None if self.shown is None else self.shown.to_json(),
        }


def judges_of(choice: str, answer: AnyAnswer) -> tuple[str, ...]:
    """The names that a choice stands for: itself, or all that judge such an answer."""
    if choice != "all":
        return (choice,)
    edited = isinstance(answer, SplitAnswer)
    return tuple(judge for judge in JUDGES if not edited or judge not in ("fast", "smt"))


def ask_judge(name: str, problem: AllocationProblem, answer: AnyAnswer) -> Word:
    """What a judge says. Raises InputError where it does not judge such an answer."""
    if name == "executor":
        return _execute(problem, answer)
    if name == "independent":
        return Word(name, IndependentVerifier(problem).verify(answer))
    if isinstance(answer, SplitAnswer):
        raise InputError(f"the judge {name!r} does not judge answers with edits")
    if name == "fast":
        return Word(name, FastVerifier(problem).verify(answer))
    from verilocc_bench.verify.smt import SMTVerifier

    return Word(name, SMTVerifier(problem).verify(answer))


def _execute(problem: AllocationProblem, answer: AnyAnswer) -> Word:
    """Runs an answer along random paths, where every register is there and allowed."""
    verdict = Verifier(problem).verify(answer)
    for finding in verdict.findings:
        if finding.kind not in OF_VALUES:
            return Word(
                "executor", note=f"not run, for it is no matter of values: {finding.message}"
            )
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
    for seed in range(PATHS):
        shown = executor.run(seed, steps)
        if shown is not None:
            return Word("executor", shown=shown)
    return Word("executor")
