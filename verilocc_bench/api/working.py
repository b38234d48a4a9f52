"""What can be done with one problem: allocate, verify, bound, lower, show."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from verilocc_bench.allocators import (
    Allocator,
    LabelUse,
    NamedAssignment,
    answer_from_assignment,
    graph_coloring,
    linear_scan,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import LowerBound, check_certificate, lower_bound
from verilocc_bench.analysis.lower_bounds.infeasibility import check_against_answer
from verilocc_bench.api.answers import AnyAnswer, answer_of
from verilocc_bench.api.models import AnyModel, allocator_of, settings_of
from verilocc_bench.api.problems import Problem, load_problem
from verilocc_bench.backends import LoweredCode, backend_of
from verilocc_bench.edits import Answer, assignment_alone
from verilocc_bench.errors import AllocationFailed, ContradictionError, InputError
from verilocc_bench.evaluation import PreparedProblem, settled_samples
from verilocc_bench.files import write_output
from verilocc_bench.report.drawing import checked_format, drawing_of
from verilocc_bench.report.occupation import occupation_of
from verilocc_bench.settings.judges import ALL, JUDGES, JUDGES_OF_EDITS, judge_named
from verilocc_bench.verification import FastVerifier, Verdict, Verifier
from verilocc_bench.verification.judges import Effort, Judges, Opinion

FINDINGS = 1_000
"""A verdict describes its first findings, at most this many, and counts the others."""

AnyProblem = AllocationProblem | str | Path
"""A problem, or what `load_problem` takes: an id of the dataset `mini`, or a file."""


def verify(problem: AnyProblem, answer: AnyAnswer, *, judge: str | None = None) -> Verdict:
    """The verdict on an answer: valid or not, with what is wrong where.

    Without `judge` the verdict is the one that scores come from. `judge` asks
    another: `fast`, `independent` or `smt`. With `all`, every judge that can
    judge such an answer is asked. Raises ContradictionError if two of them
    disagree, and InputError if `judge` is unknown, or cannot judge the answer.
    """
    problem = problem_of(problem)
    resolved = answer_of(problem, answer)
    if judge is None:
        return problem.prepared(Verifier).verify(resolved, FINDINGS)
    if judge != ALL:
        verdict = opinion(problem, resolved, judge).words[0].verdict
        if verdict is None:
            raise InputError(f"the judge {judge!r} gives no verdict: see `opinion`")
        return verdict
    found = opinion(problem, resolved)
    for disagreement in found.disagreements():
        raise ContradictionError(f"function {problem.id}: {disagreement}")
    return next(word.verdict for word in found.words if word.verdict is not None)


def opinion(problem: AnyProblem, answer: AnyAnswer, judge: str = ALL) -> Opinion:
    """What judges say of an answer, word by word; `all` are those that can judge its edits.

    Raises InputError if `judge` is unknown, and if no judge can judge the answer.
    """
    problem = problem_of(problem)
    resolved = answer_of(problem, answer)
    judge = judge_named(judge)
    if judge != ALL and judge not in JUDGES:
        raise InputError(f"unknown judge {judge!r}; known are {', '.join(JUDGES)}, {ALL}")
    every = JUDGES_OF_EDITS if resolved.has_edits else JUDGES
    judges = every if judge == ALL else (judge,)
    return Judges(problem, judges, Effort(findings=FINDINGS)).ask(resolved)


def allocate(
    problem: AnyProblem, model: AnyModel = "best", *, seed: int = 0, **settings: Any
) -> Answer:
    """The answer of an allocator, which nobody has judged: `verify` does.

    `model` is a value of `--model`, a function `(problem, seed) -> {"%0": "v0",
    …}`, or an object with `allocate(request)`. `settings` are the settings of its kind,
    by their names on the command line (`decoding="guided"`, `compiled=16`), but for
    `strategy`, `maximum_tokens`, `time_limit_seconds` and `memory_limit_mib`. Raises
    AllocationFailed if it has no answer, and InputError for an unknown model or setting.
    """
    problem = problem_of(problem)
    allocator = allocator_of(model, settings_of(model, settings))
    prepared = prepared_for(problem, allocator)
    try:
        ((_, judged),) = settled_samples([(prepared, 0)], allocator, seed)
    finally:
        allocator.close()
    if judged.answer is None:
        sample = judged.sample
        told = sample.traceback or sample.message
        raise AllocationFailed(f"{allocator.name}: {sample.failure}: {told}")
    return judged.answer


def prepared_for(problem: AllocationProblem, allocator: Allocator) -> PreparedProblem:
    """The problem ready to be asked, with the compilers' answers if the allocator uses them.

    Raises InputError with the reason if it can only replay an answer that there is not.
    """
    kernel = problem.kernel if isinstance(problem, Problem) else None
    if allocator.label_use is LabelUse.NONE:
        return PreparedProblem(problem, kernel=kernel)
    label, alternatives = answers_known(problem)
    absence = problem.label_absence if isinstance(problem, Problem) else None
    if label is None and absence is not None and allocator.label_use is LabelUse.REPLAY:
        raise InputError(f"there is no answer of the compiler: {absence}")
    return PreparedProblem(problem, label, alternatives, kernel=kernel)


def bound(problem: AnyProblem, *, solver: bool = True) -> LowerBound:
    """A lower bound on the registers of any valid assignment, with its proof, checked.

    Without `solver` it takes milliseconds, and no package of the extra `exact`.
    Raises ContradictionError if a known valid answer uses fewer registers.
    """
    problem = problem_of(problem)
    found = lower_bound(problem, solver=solver)
    check_bound(problem, found)
    return found


def check_bound(problem: AllocationProblem, found: LowerBound) -> None:
    """Checks a bound's proof, and looks for answers that contradict it.

    Looks at the answers of the compilers and of the fast allocators. Raises
    ContradictionError if a valid one uses fewer registers, and InputError if the
    proof does not hold.
    """
    check_certificate(problem, found)
    verifier = FastVerifier(problem)
    for name, answer in _fast_answers(problem):
        verdict = verifier.verify(answer)
        if verdict.valid and verdict.registers_used is not None:
            used = verdict.registers_used[found.group]
            check_against_answer(problem, found.value, used, f"the answer of {name}")


def lower(problem: AnyProblem, answer: AnyAnswer, output: str | Path) -> LoweredCode:
    """Writes a kernel's machine code with an answer in it; says what it is.

    The suffix of `output` chooses the form: `.mir`, `.s` or `.o` for AMD (llc of
    LLVM 22 makes the last two), `.cubin` for NVIDIA. Raises InputError if the
    problem has no code, if the answer is wrong, and for another suffix; nothing
    is written then.
    """
    output = Path(output)
    problem = problem_of(problem)
    backend = backend_of(problem.target)
    backend.check_output(output)
    if not isinstance(problem, Problem):
        raise InputError("expected a problem with its code, as load_problem gives it")
    kernel = problem.kernel()
    resolved = answer_of(problem, answer)
    backend.check_answer(resolved, str(output))
    verdict = problem.prepared(Verifier).verify(resolved, FINDINGS)
    if not verdict.valid:
        raise InputError(f"a wrong answer cannot be lowered: {verdict}")
    lowered = backend.lower(kernel, resolved, output)
    write_output(output, lowered.data)
    return lowered


@dataclass(frozen=True, slots=True)
class Picture:
    """An assignment drawn in the format `suffix`; notebooks show PNG and SVG."""

    data: bytes = field(repr=False)
    suffix: str = ".png"

    def save(self, path: str | Path) -> None:
        """Writes the picture. Raises InputError if the suffix says another format."""
        path = Path(path)
        if path.suffix != self.suffix:
            raise InputError(f"expected a file name ending in {self.suffix}", source=path)
        write_output(path, self.data)

    def _repr_png_(self) -> bytes | None:
        return self.data if self.suffix == ".png" else None

    def _repr_svg_(self) -> str | None:
        return self.data.decode() if self.suffix == ".svg" else None


def show(
    problem: AnyProblem, answer: AnyAnswer | None = None, output: str | Path | None = None
) -> Picture:
    """Draws which register holds what, and writes it to `output` if there is one.

    Without an answer it draws the compiler's own, or linear scan's if that is
    missing or wrong. The suffix of `output` says the format: .png, .svg, .pdf, or .html for
    a page to look around in. A wrong answer is drawn with its collisions marked.
    Raises InputError for an answer with edits, and MissingExtraError without matplotlib.
    """
    problem = problem_of(problem)
    suffix = ".png" if output is None else checked_format(Path(output))
    if answer is None:
        source, assignment = usual_assignment(problem)
    else:
        resolved = answer_of(problem, answer)
        if resolved.has_edits:
            raise InputError("answers with edits cannot be drawn")
        source, assignment = "the answer", assignment_alone(resolved)
    title = problem.title if isinstance(problem, Problem) else problem.id
    occupation = occupation_of(problem, assignment, source)
    data = drawing_of(problem, [occupation], f"{title}, registers by {source}", suffix)
    picture = Picture(data, suffix)
    if output is not None:
        picture.save(output)
    return picture


def usual_assignment(problem: AllocationProblem) -> tuple[str, NamedAssignment]:
    """A valid assignment and its source: the compiler's, or linear scan's.

    Raises InputError if neither is there.
    """
    label, _ = answers_known(problem)
    if label is not None and FastVerifier(problem).verify(label).valid:
        assert isinstance(problem, Problem)
        return problem.label_source, label
    try:
        return "linear-scan", answer_from_assignment(problem, linear_scan(problem))
    except AllocationFailed as error:
        raise InputError(
            f"there is no valid label, and linear-scan has no answer: {error}"
        ) from None


def problem_of(problem: AnyProblem) -> AllocationProblem:
    """The problem itself, or the one that an id of `mini` or a path names."""
    return problem if isinstance(problem, AllocationProblem) else load_problem(problem)


def answers_known(
    problem: AllocationProblem,
) -> tuple[NamedAssignment | None, dict[str, NamedAssignment]]:
    """The compiler's own answer and the alternatives, as far as the problem has them."""
    if isinstance(problem, Problem):
        return problem.label, problem.alternatives
    return None, {}


def _fast_answers(problem: AllocationProblem) -> Iterator[tuple[str, NamedAssignment]]:
    label, alternatives = answers_known(problem)
    if label is not None:
        assert isinstance(problem, Problem)
        yield problem.label_source, label
    yield from alternatives.items()
    for name, allocator in (("linear-scan", linear_scan), ("graph-coloring", graph_coloring)):
        with contextlib.suppress(AllocationFailed):
            yield name, answer_from_assignment(problem, allocator(problem))
