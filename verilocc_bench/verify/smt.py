"""A check of an assignment by Z3, an SMT solver: slow, and independent of the fast check.

Every virtual register has one integer variable, the number of the unit that
it starts at (units are numbered through all files, as in
analysis.placement). Over these variables the function is a set of
constraints, each under a literal of its own:

- *legal*: the base lies in one of the ranges of its class, and the tuple
  covers no reserved unit;
- *apart*: for a pair of virtual registers, the distances between their bases
  at which two colliding lanes would be in one unit do not occur; and likewise
  for a virtual register and a unit that the function names itself;
- *tied*: tied operands start in the same unit.

Two lanes collide when one is defined at a point where the other is live
(analysis.liveness). Whole live ranges would be too much to keep apart: dead
and unwritten lanes of tuples are filled by compilers. Pairs of classes that
have no file in common are left out, for legal bases never meet there.

An answer is a further set of literals, one for the value of each variable.
All literals are assumed at once; if that cannot be, the solver names some
that contradict each other, its unsat core. A core is minimized by deletion,
and the constraint that is left in it becomes a finding.

Cost: linear in the pairs. About 70 microseconds a pair to build, 20 for each
answer (the first takes twice that or more) and for each core, 10 kB of
memory: a function of 5,000 pairs takes half a second, the largest of the
embedded dataset (190,000 pairs) 15 s, then 4 s an answer, and 1.7 GB. Integers
are chosen over bit-vectors, which are no faster on small functions, and on
large ones take twice the memory and sometimes minutes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from verilocc_bench.analysis import VECTOR, AllocationProblem, parse_register_name
from verilocc_bench.edits import AnswerLike, assignment_alone
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.findings import Finding, FindingKind, Verdict
from verilocc_bench.ir import RegisterClass
from verilocc_bench.verify.collisions import Collision, CollisionFinder
from verilocc_bench.verify.explain import Explainer
from verilocc_bench.verify.misplacement import misplacement
from verilocc_bench.verify.smt_constraints import (
    Constraint,
    all_constraints,
    first_unit,
    named_registers,
)
from verilocc_bench.verify.ties import tied_operands

__all__ = ["MAXIMUM_PAIRS", "SMTVerifier"]

MAXIMUM_PAIRS = 200_000
"""Up to so many pairs of virtual registers that may collide a function is checked."""

_LOGIC = "QF_LIA"


class SMTVerifier:
    """Judges answers for one problem by Z3; valid are the same as for the fast check.

    A rejected answer has the findings of entries that are no integers (a
    register that is missing, unknown, or of another width), and of unsat
    cores over the others. A core need not name everything that is wrong: it
    is minimal, and as all variables it speaks of have values, that is one
    constraint with the entries that break it, hence one finding. `cores` says
    how many to look for, each without the constraints of those before.

    `maximum_pairs` bounds the pairs of virtual registers that may collide:
    beyond it there is an InputError. `resource_limit` bounds the work on each
    question, in Z3's own deterministic steps (its option `rlimit`; 0 is no
    limit): beyond it `verify` raises InputError. Raises MissingExtraError
    without the package.
    """

    def __init__(
        self,
        problem: AllocationProblem,
        *,
        maximum_pairs: int = MAXIMUM_PAIRS,
        resource_limit: int = 0,
        cores: int = 1,
    ) -> None:
        self._z3 = _import_z3()
        self.problem = problem
        self._cores = cores
        self._constraints = list(all_constraints(problem, maximum_pairs))
        # In a context of its own nothing that ran before can change what the solver does.
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
        """The verdict on an answer without edits; raises ValueError for one with edits."""
        answer = assignment_alone(answer)
        problem = self.problem
        units, findings = _read_answer(problem, answer)
        explainer = Explainer(problem, tied_operands(problem.function))
        findings += [_finding(explainer, broken, units, answer) for broken in self._broken(units)]
        used = _registers_used(problem, units)
        occupancy = None if used is None else problem.occupancy(used)
        ordered = tuple(sorted(findings, key=Finding.sort_key))
        return Verdict(problem.id, not findings, ordered, used, occupancy)

    def _broken(self, units: Mapping[int, int]) -> Iterator[Constraint]:
        """The constraint of one minimal core after the other."""
        # What speaks of a register without a value could be met or not: it says nothing here.
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
        """The constraints of an unsat core, or None where there is no contradiction."""
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
        """The one constraint that is left of a core when what it can spare is deleted.

        The entries of its registers are part of the core throughout. Without
        them constraints could contradict each other that the answer meets: a
        register of one legal base, and another that has this base.
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
        # Read as a text: built term by term it takes several times as long.
        solver.from_string("\n".join(script))
        return solver


def _import_z3() -> Any:
    try:
        import z3
    except ImportError:
        raise MissingExtraError("z3-solver", "exact", "the SMT check") from None
    return z3


# From an answer to integers, and from constraints to findings.


def _read_answer(
    problem: AllocationProblem, answer: Mapping[str, str]
) -> tuple[dict[int, int], list[Finding]]:
    """The first unit of each virtual register, and findings on those that have none."""
    classes = problem.function.virtual_registers
    keys = {f"%{number}" for number in range(len(classes))}
    findings = [
        Finding(
            FindingKind.UNKNOWN_VIRTUAL_REGISTER,
            f"{key[:40]} is no virtual register of the function, which has {len(keys)} of them",
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
    """The unit that a name means as a base; None where the hardware has no such tuple."""
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
    broken: Constraint,
    units: Mapping[int, int],
    answer: Mapping[str, str],
) -> Finding:
    """What it means that the answer does not meet a constraint; worded as by the fast check."""
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
    problem: AllocationProblem, broken: Constraint, units: Mapping[int, int]
) -> Collision:
    """The first point at which a lane of one register destroys one of the other."""
    fixed_from = problem.liveness.virtual_lane_count
    return next(
        found
        for found in CollisionFinder(problem).find({r: units[r] for r in broken.registers})[0]
        if broken.unit == (found.unit if max(found.destroyer, found.victim) >= fixed_from else None)
    )


def _registers_used(problem: AllocationProblem, units: Mapping[int, int]) -> dict[str, int] | None:
    """Highest index + 1 by file, and the scored number; None where a place is not legal."""
    placements, target = problem.placements, problem.target
    highest = dict.fromkeys((file.name for file in target.files), 0)
    for file_name, index in problem.liveness.fixed_lanes:
        highest[file_name] = max(highest[file_name], index + 1)
    for number, register_class in enumerate(problem.function.virtual_registers):
        if units.get(number) not in placements.legal[register_class]:
            return None
        last = placements.register(units[number] + register_class.width - 1)
        highest[last.file] = max(highest[last.file], last.index + 1)
    return {VECTOR: target.vector_use(highest), **highest}
