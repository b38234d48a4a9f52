"""All judges on all answers to one function.

The answers put every virtual register at every unit of its file and at one unit
beyond the budget. They include all answers of legal bases and many with illegal
ones. The fast check, the independent checker and the brute-force judge judge
each answer. Z3's verdict depends only on the constraints of the SMT check, and
many functions have the same ones, so Z3 is asked about all answers once for each
set of constraints. The value walk runs the answers that some judge accepts, and
those that are rejected for their values alone; these must show on some path.

Cost: about 200 microseconds for an answer and 1 ms for a function.
"""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits.findings import OF_VALUES, Finding, FindingKind
from verilocc_bench.ir import Function, Instruction, Operand, parse_function, print_function
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.oracle import Oracle
from verilocc_bench.selftest.oracle_program import lanes_of
from verilocc_bench.settings.judges import FAST, INDEPENDENT, SMT, VALUE_WALK
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.judges import value_walk_of
from verilocc_bench.verification.smt_constraints import all_constraints
from verilocc_bench.verification.symbolic import SymbolicChecker
from verilocc_bench.verification.value_walk import Miscompile, ValueWalk

ORACLE = "oracle"

NOT_SHOWN = f"{VALUE_WALK} shows nothing wrong with what all others reject"

PATHS = 2000
"""The number of random paths of a rejected answer before it counts as not shown."""

PATHS_OF_ACCEPTED = 4
STEPS = 40
"""The length of a path: a loop of three instructions goes round eight times."""

TOLD_OF_A_KIND = 3

MAXIMUM_PAIRS = 100
"""The limit of the SMT check on colliding pairs; no function here reaches it."""


@dataclass(slots=True)
class JudgingOutcome:
    """The judgements of some functions.

    `counts` are the numbers of functions, of answers, and of kinds of answers:
    `valid`; `illegal`, with an illegal base; `tied`, with only legal bases and a
    broken tie; `wrong values`, with nothing but wrong values; `executed`, run by
    the value walk; `shown`, shown to be wrong by it; `idle`, wrong only because an
    instruction that never acts writes two lanes to one unit. `accepted` counts
    the answers that each judge accepts. `questions` are the sets of constraints
    that Z3 was asked about. `told` has the first disagreements of each kind, as
    (kind, text).
    """

    counts: Counter[str] = field(default_factory=Counter)
    accepted: Counter[str] = field(default_factory=Counter)
    disagreements: Counter[str] = field(default_factory=Counter)
    questions: set[str] = field(default_factory=set)
    told: list[tuple[str, str]] = field(default_factory=list)

    def __add__(self, other: JudgingOutcome) -> JudgingOutcome:
        """The sum of both; the disagreements of this one come first."""
        told = list(self.told)
        for kind, text in other.told:
            if sum(kind == each for each, _ in told) < TOLD_OF_A_KIND:
                told.append((kind, text))
        return JudgingOutcome(
            self.counts + other.counts,
            self.accepted + other.accepted,
            self.disagreements + other.disagreements,
            self.questions | other.questions,
            told,
        )


class FunctionJudge:
    """Asks all judges about functions; keeps Z3's verdicts on each set of constraints."""

    def __init__(self, smt: bool) -> None:
        self.smt = smt
        self.outcome = JudgingOutcome()
        self._by_smt: dict[str, tuple[bool, ...]] = {}

    def judge(self, function: Function) -> None:
        """Judges all answers to one function."""
        text = print_function(function)
        parsed = parse_function(text)
        assert parsed == function, f"the text is read as another function:\n{text}"
        counts, accepted = self.outcome.counts, self.outcome.accepted
        problem = AllocationProblem(parsed, text)
        fast, independent = FastVerifier(problem), SymbolicChecker(parsed)
        oracle = Oracle(parsed)
        answers = list(_answers(parsed))
        by_smt = self._smt_verdicts(problem, answers) if self.smt else ()
        counts["functions"] += 1
        counts["answers"] += len(answers)
        for number, answer in enumerate(answers):
            verdict = fast.verify(answer)
            findings = {FAST: verdict.findings, INDEPENDENT: independent.check(answer)}
            accepts = {judge: not found for judge, found in findings.items()}
            assert verdict.valid == accepts[FAST], f"a verdict without reason:\n{text}{answer}"
            accepts[ORACLE] = oracle.judge(answer)
            if by_smt:
                accepts[SMT] = by_smt[number]
            for judge, accepting in accepts.items():
                accepted[judge] += accepting
            kind = _kind(findings) if not all(accepts.values()) else "valid"
            counts[kind] += 1
            agreed = len(set(accepts.values())) == 1
            shown = None
            if kind in ("valid", "wrong values") or not agreed:
                counts["executed"] += 1
                shown = self._execute(value_walk_of(problem, answer), parsed, kind)
                counts["shown"] += shown is not None
            idle = kind == "wrong values" and shown is None and _is_idle(parsed, answer)
            counts["idle"] += idle
            if not agreed or (shown is not None or idle) != (kind == "wrong values"):
                self._tell(Case(parsed, answer), accepts, findings, shown)

    def _execute(self, walk: ValueWalk, function: Function, kind: str) -> Miscompile | None:
        """The first difference on random paths, or on the only path of the function."""
        paths = PATHS if kind == "wrong values" else PATHS_OF_ACCEPTED
        if not any(
            len(block.successors) > 1 or any(i.guard for i in block.instructions)
            for block in function.blocks
        ):
            paths = 1
        for seed in range(paths):
            shown = walk.run(seed, STEPS)
            if shown is not None:
                return shown
        return None

    def _tell(
        self,
        case: Case,
        accepts: Mapping[str, bool],
        findings: Mapping[str, tuple[Finding, ...]],
        shown: Miscompile | None,
    ) -> None:
        """Notes the disagreements of the judges."""
        rejecting = [judge for judge, accepting in accepts.items() if not accepting]
        if shown is not None:
            rejecting.append(VALUE_WALK)
        kinds = [
            f"{judge} accepts what {other} rejects"
            for judge, accepting in accepts.items()
            if accepting
            for other in rejecting
        ]
        for kind in kinds or [NOT_SHOWN]:
            self.outcome.disagreements[kind] += 1
            if self.outcome.disagreements[kind] <= TOLD_OF_A_KIND:
                lines = [f"{kind}:", str(case)]
                for judge, found in findings.items():
                    lines += [f"{judge}: {f.kind.value}: {f.message}" for f in found]
                if shown is not None:
                    lines.append(f"{VALUE_WALK}: {shown}")
                self.outcome.told.append((kind, "\n".join(lines)))

    def _smt_verdicts(
        self, problem: AllocationProblem, answers: list[dict[str, str]]
    ) -> tuple[bool, ...]:
        """Z3's verdict on each answer; asks once for equal constraints."""
        from verilocc_bench.verification.smt import SMTVerifier

        function = problem.function
        constraints = list(all_constraints(problem, MAXIMUM_PAIRS))
        # Everything that the verdicts of the SMT check depend on.
        parts = [repr(function.files), repr(function.virtual_registers)]
        parts += [constraint.formula for constraint in constraints]
        key = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
        if key not in self._by_smt:
            verifier = SMTVerifier(problem)
            self._by_smt[key] = tuple(verifier.verify(answer).valid for answer in answers)
        self.outcome.questions.add(key)
        return self._by_smt[key]


def _answers(function: Function) -> Iterator[dict[str, str]]:
    bases = []
    for register_class in function.virtual_registers:
        (file,) = register_class.files
        bases.append([f"{file}{unit}" for unit in range(function.file(file).count + 1)])
    for chosen in itertools.product(*bases):
        yield {f"%{number}": base for number, base in enumerate(chosen)}


def _is_idle(function: Function, answer: Mapping[str, str]) -> bool:
    """True if the only mistakes are guarded instructions that write two lanes to one unit.

    Such an answer is wrong even if the guard never holds. The answer without the
    operands of these instructions is right if they never act.
    """

    def unit(lane: tuple[int | str, int]) -> tuple[str, int]:
        name, number = lane
        if isinstance(name, str):
            return name, number
        base = answer[f"%{name}"]
        file = base.rstrip("0123456789")
        return file, int(base.removeprefix(file)) + number

    def clashes(instruction: Instruction) -> bool:
        operands = [*instruction.definitions, *map(Operand, instruction.destroys)]
        lanes = {lane for operand in operands for lane in lanes_of(operand)}
        return len({unit(lane) for lane in lanes}) < len(lanes)

    blocks = tuple(
        replace(
            block,
            instructions=tuple(
                replace(i, definitions=(), uses=(), destroys=()) if i.guard and clashes(i) else i
                for i in block.instructions
            ),
        )
        for block in function.blocks
    )
    return blocks != function.blocks and Oracle(replace(function, blocks=blocks)).judge(answer)


def _kind(findings: Mapping[str, tuple[Finding, ...]]) -> str:
    """The kind of an answer by its worst finding."""
    kinds = {finding.kind for found in findings.values() for finding in found}
    if kinds - OF_VALUES - {FindingKind.TIED_MISMATCH}:
        return "illegal"
    return "tied" if FindingKind.TIED_MISMATCH in kinds else "wrong values"
