"""A check of an assignment by Z3, an SMT solver: slow, and independent of the fast check.

Every virtual register has one integer variable: the number of its first unit
(units are numbered across all files, as in analysis.placement). The function is
a set of constraints over these variables, each with a literal of its own:

- *legal*: the base lies in one of the ranges of its class, and the tuple
  covers no reserved unit;
- *apart*: the bases of two virtual registers do not have a distance at which
  two colliding lanes would share a unit. The same holds for a virtual register
  and a unit that the function names itself;
- *tied*: tied operands start in the same unit.

Two lanes collide when one is defined at a point where the other is live
(analysis.liveness). To keep whole live ranges apart would be too strict:
compilers use the dead and unwritten lanes of tuples. Pairs of classes without a
common file need no constraint, since their legal bases never meet.

An answer is a further set of literals, one for the value of each variable. The
solver assumes all literals at once. If they contradict each other, it names some
that do, its unsat core. A core is minimized by deletion, and the constraint that
is left in it becomes a finding.

Cost: linear in the pairs. A pair takes about 70 microseconds to build, 20 for
each answer (at least twice that for the first) and for each core, and 10 kB of
memory. A function of 5,000 pairs takes half a second. The largest one of the
embedded dataset (190,000 pairs) takes 15 s, then 4 s for each answer, and
1.7 GB. Bit-vectors are not faster than integers on small functions; on large
ones they take twice the memory and sometimes minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from verilocc_bench.analysis import VECTOR, AllocationProblem, parse_register_name
from verilocc_bench.analysis.ties import tied_operands
from verilocc_bench.edits import AnswerLike, assignment_alone
from verilocc_bench.edits.findings import Finding, FindingKind, Verdict
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.ir import RegisterClass
from verilocc_bench.verification.collisions import Collision, CollisionFinder
from verilocc_bench.verification.explain import Explainer
from verilocc_bench.verification.misplacement import misplacement
from verilocc_bench.verification.smt_constraints import (
    SmtConstraint,
    all_constraints,
    first_unit,
    named_registers,
)

MAXIMUM_PAIRS = 200_000
"""The most pairs of virtual registers that may collide in a function that Z3 is asked about."""

_LOGIC = "QF_LIA"


class SMTVerifier:
    """Judges answers for one problem by Z3; it accepts the same answers as the fast check.

    A rejected answer has findings of two kinds: about entries that are not
    integers (a register that is missing, unknown, or of another width), and from
    unsat cores over the other entries. A core need not name every mistake. It is
    minimal and all its variables have values, so it consists of one constraint
    with the entries that break it, and gives one finding. `cores` is the number
    of cores to look for, each without the constraints of the cores before it.

    `maximum_pairs` bounds the pairs of virtual registers that may collide. The
    constructor raises InputError for a function with more. `resource_limit`
    bounds the work on each question, in Z3's own deterministic steps (its option
    `rlimit`; 0 means no limit); `verify` raises InputError beyond it. Raises
    MissingExtraError without the package.
    """

    def __init__(
        self,
        problem: AllocationProblem,
        *,
        maximum_pairs: int = MAXIMUM_PAIRS,
        resource_limit: int = 0,
        cores: int = 1,
    ) -> None:
        try:
            import z3
        except ImportError:
            raise MissingExtraError("z3-solver", "exact", "the SMT check") from None
        self._z3 = z3
        self.problem = problem
        self._cores = cores
        self._constraints = list(all_constraints(problem, maximum_pairs))
        # A fresh context makes the solver independent of everything that ran before.
        self._context = self._z3.Context()
        count = len(problem.function.virtual_registers)
        script = [f"(declare-const b{number} Int)" for number in range(count)]
        for number, constraint in enumerate(self._constraints):
            script.append(f"(declare-const c{number} Bool)")
            script.append(f"(assert (=> c{number} {constraint.formula}))")
        self._solver = self._new_solver(script)
        self._solver.set("rlimit", resource_limit)
        self._bases = [self._z3.Int(f"b{number}", self._context) for number in range(count)]
        self._entries = [self._z3.Bool(f"a{number}", self._context) for number in range(count)]
        self._tracked = [
            self._z3.Bool(f"c{number}", self._context) for number in range(len(self._constraints))
        ]

    def verify(self, answer: AnswerLike) -> Verdict:
        """The verdict on an answer without edits. Raises ValueError for an answer with edits."""
        answer = assignment_alone(answer)
        problem = self.problem
        units, findings = _read_answer(problem, answer)
        explainer = Explainer(problem, tied_operands(problem.function))
        findings += [_finding(explainer, broken, units, answer) for broken in self._broken(units)]
        used = _registers_used(problem, units)
        occupancy = None if used is None else problem.occupancy(used)
        ordered = tuple(sorted(findings, key=Finding.sort_key))
        return Verdict(problem.id, not findings, ordered, used, occupancy)

    def _broken(self, units: Mapping[int, int]) -> Iterator[SmtConstraint]:
        """The constraints of minimal cores, one after the other."""
        # A constraint on a register without a value may hold or not: it is left out.
        left = {
            number
            for number, constraint in enumerate(self._constraints)
            if units.keys() >= set(constraint.registers)
        }
        self._solver.push()
        try:
            for register, unit in units.items():
                value = self._bases[register] == unit
                self._solver.add(self._z3.Implies(self._entries[register], value))
            entries = [self._entries[register] for register in units]
            for _ in range(self._cores):
                core = self._core([*(self._tracked[number] for number in sorted(left)), *entries])
                if core is None:
                    return
                number = self._minimal(core, units)
                yield self._constraints[number]
                left.discard(number)
        finally:
            self._solver.pop()

    def _core(self, literals: list[Any]) -> list[int] | None:
        """The constraints of an unsat core, or None without a contradiction."""
        result = self._solver.check(*literals)
        if result == self._z3.sat:
            return None
        if result != self._z3.unsat:
            reason = self._solver.reason_unknown()
            raise InputError(
                f"function {self.problem.id}: the SMT check gave up without a verdict ({reason})"
            )
        names = [literal.decl().name() for literal in self._solver.unsat_core()]
        return sorted(int(name[1:]) for name in names if name.startswith("c"))

    def _minimal(self, core: list[int], units: Mapping[int, int]) -> int:
        """The one constraint that is left of a core once all others are deleted.

        The entries of its registers stay in the core throughout. Without them,
        constraints that the answer meets could contradict each other, such as
        the constraints of two registers that have the same single legal base.
        """
        while len(core) > 1:
            half = core[: len(core) // 2]
            core = half if self._contradicts(half, units) else core[len(half) :]
        return core[0]

    def _contradicts(self, numbers: Iterable[int], units: Mapping[int, int]) -> bool:
        constraints = [self._constraints[number] for number in numbers]
        script: list[str] = []
        for register in sorted({r for constraint in constraints for r in constraint.registers}):
            script.append(f"(declare-const b{register} Int)")
            script.append(f"(assert (= b{register} {units[register]}))")
        script += [f"(assert {constraint.formula})" for constraint in constraints]
        return bool(self._new_solver(script).check() == self._z3.unsat)

    def _new_solver(self, script: Iterable[str]) -> Any:
        solver = self._z3.SolverFor(_LOGIC, ctx=self._context)
        solver.set("random_seed", 0)
        solver.set("threads", 1)
        # Reading a text is several times faster than building it term by term.
        solver.from_string("\n".join(script))
        return solver


# From an answer to integers, and from constraints to findings.


def _read_answer(
    problem: AllocationProblem, answer: Mapping[str, str]
) -> tuple[dict[int, int], list[Finding]]:
    """The first unit of each virtual register, and findings for those that have none."""
    classes = problem.function.virtual_registers
    keys = {f"%{number}" for number in range(len(classes))}
    findings = [
        Finding(
            FindingKind.UNKNOWN_VIRTUAL_REGISTER,
            f"{key[:40]} is not a virtual register: the function has {len(keys)} of them",
            registers=(key[:40],),
        )
        for key in answer
        if key not in keys
    ]
    units: dict[int, int] = {}
    for number, register_class in enumerate(classes):
        name = answer.get(f"%{number}")
        unit = None if name is None else _unit(problem, register_class, name)
        if unit is None:
            findings.append(misplacement(problem, number, register_class, name)[0])
        else:
            units[number] = unit
    return units, findings


def _unit(problem: AllocationProblem, register_class: RegisterClass, name: str) -> int | None:
    """The unit that a name means as a base; None if the hardware has no such tuple."""
    base = parse_register_name(problem.target, name)
    if base is None:
        return None
    file = problem.target.file(base.file)
    exists = base.index + register_class.width <= file.count
    whole_file = bool(file.unit_names) and name == file.name
    if not exists or (whole_file and register_class.width != file.count):
        return None
    return problem.placements.unit(base)


def _finding(
    explainer: Explainer,
    broken: SmtConstraint,
    units: Mapping[int, int],
    answer: Mapping[str, str],
) -> Finding:
    """The finding for a constraint that the answer breaks, in the words of the fast check."""
    problem = explainer.problem
    if broken.tie is not None:
        left, right = (
            first_unit(problem, operand) + sum(units[r] for r in named_registers(operand))
            for operand in (broken.tie.definition, broken.tie.use)
        )
        return explainer.mismatch(broken.tie, left, right)
    if broken.unit is not None or len(broken.registers) == 2:
        return explainer.collision(_collision(problem, broken, units))
    (number,) = broken.registers
    register_class = problem.function.virtual_registers[number]
    return misplacement(problem, number, register_class, answer[f"%{number}"])[0]


def _collision(
    problem: AllocationProblem, broken: SmtConstraint, units: Mapping[int, int]
) -> Collision:
    """The first point at which a lane of one register destroys a lane of the other."""
    fixed_from = problem.liveness.virtual_lane_count
    return next(
        found
        for found in CollisionFinder(problem).find({r: units[r] for r in broken.registers})[0]
        if broken.unit == (found.unit if max(found.destroyer, found.victim) >= fixed_from else None)
    )


def _registers_used(problem: AllocationProblem, units: Mapping[int, int]) -> dict[str, int] | None:
    """Highest index + 1 by file, and the scored number; None if a base is not legal."""
    placements, target = problem.placements, problem.target
    highest = dict.fromkeys((file.name for file in target.files), 0)
    for file_name, index in problem.liveness.named_units:
        highest[file_name] = max(highest[file_name], index + 1)
    for number, register_class in enumerate(problem.function.virtual_registers):
        if units.get(number) not in placements.legal[register_class]:
            return None
        last = placements.register(units[number] + register_class.width - 1)
        highest[last.file] = max(highest[last.file], last.index + 1)
    return {VECTOR: target.vector_use(highest), **highest}
