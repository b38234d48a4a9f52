"""The law of bounds: a proof and an answer never contradict each other.

- The certificate of a bound passes the independent check.
- A valid answer uses at least as many registers as the bound of each file, the
  bound of the vector files together, and the lanes that are live at once.
- If a bound proves that no valid answer exists, no judge accepts one.
- The answer of an allocator is valid. If an allocator claims a proof that no
  answer exists, no other allocator has one.
- If any allocator has an answer, `best` has one that uses no more registers.

Every answer that the judges accept is checked against the first three. For the
others, allocators are asked about some functions.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from verilocc_bench.allocators import BUILT_IN, NamedAssignment, Request
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import LowerBound, check_certificate, lower_bound
from verilocc_bench.errors import (
    AllocationFailed,
    ContradictionError,
    InputError,
    MissingExtraError,
)
from verilocc_bench.verification import FastVerifier

HAS_SOLVER = importlib.util.find_spec("ortools") is not None

BEST = "best"
ASKED = (
    "linear-scan",
    "graph-coloring",
    "first-fit-orders",
    "annealed-orders",
    "tabu-search",
    "cp-sat",
    BEST,
)
"""The allocators that answer without edits."""


LARGE = 100
"""A function with more instructions gets only the bound of the vector files: bounds are slow."""


class Bounds:
    """The lower bounds of one function, each made and checked at first use."""

    def __init__(self, problem: AllocationProblem, solver: bool = False) -> None:
        self.problem, self.solver = problem, solver and HAS_SOLVER

    @cached_property
    def every(self) -> tuple[LowerBound, ...]:
        """The bound of the vector files together; for small functions also of each file."""
        groups = [VECTOR]
        if self.problem.function.instruction_count <= LARGE:
            groups += [file.name for file in self.problem.target.files]
        return tuple(lower_bound(self.problem, group, solver=self.solver) for group in groups)

    @cached_property
    def refused(self) -> str | None:
        """The objection of the independent check to a certificate, or None."""
        for bound in self.every:
            try:
                check_certificate(self.problem, bound)
            except InputError as error:
                return f"the certificate of {bound.value} {bound.group} is refused: {error.message}"
        return None

    def contradiction(self, registers_used: Mapping[str, int]) -> str | None:
        """How these registers of a valid answer contradict a bound, in words, or None."""
        if self.refused is not None:
            return self.refused
        for bound in self.every:
            used = registers_used[bound.group]
            if used < bound.value:
                kind = bound.kind.value
                return f"{used} registers of {bound.group} do, {bound.value} are proved ({kind})"
        lanes = self.problem.pressure.maximum[VECTOR]
        if registers_used[VECTOR] < lanes:
            return f"{registers_used[VECTOR]} registers do, {lanes} lanes are live at once"
        return None


@dataclass(frozen=True, slots=True)
class Breach:
    """A law that allocators break about a function, and the answer that shows it, if any."""

    kind: str
    message: str
    answer: NamedAssignment | None = None


def breaches(
    problem: AllocationProblem, known: NamedAssignment | None = None
) -> tuple[list[Breach], int]:
    """The laws that the allocators' answers to a function break, and the number of answers.

    `known` is a valid answer. Allocators whose packages are not installed are not
    asked.
    """
    verifier = FastVerifier(problem)
    found: list[Breach] = []
    used: dict[str, tuple[int, NamedAssignment]] = {}
    claims: dict[str, str] = {}
    if known is not None:
        verdict = verifier.verify(known)
        if verdict.registers_used is not None:
            used["a random answer"] = verdict.registers_used[VECTOR], known
    asked = set()
    for name in ASKED:
        try:
            answer = BUILT_IN[name].allocate(Request(problem)).assignment
        except MissingExtraError:
            continue
        except AllocationFailed as error:
            asked.add(name)
            if error.message.startswith("proved"):
                claims[name] = error.message
            continue
        except ContradictionError as error:
            found.append(Breach(f"{name} contradicts itself", str(error)))
            continue
        asked.add(name)
        verdict = verifier.verify(answer)
        if verdict.valid and verdict.registers_used is not None:
            used[name] = verdict.registers_used[VECTOR], answer
        else:
            message = verdict.findings[0].message
            found.append(Breach(f"{name} gives a wrong answer", message, answer))
    for name, claim in claims.items():
        for other, (_, answer) in used.items():
            found.append(Breach(f"{name} proves infeasible what {other} answers", claim, answer))
    if BEST in asked:
        found += _worse_than_others(used)
    return found, len(used)


def _worse_than_others(used: Mapping[str, tuple[int, NamedAssignment]]) -> Iterator[Breach]:
    own = used.get(BEST)
    for name, (registers, answer) in used.items():
        if own is None:
            yield Breach(f"{BEST} finds nothing where {name} answers", "no answer", answer)
        elif registers < own[0]:
            message = f"{own[0]} registers, {registers} do"
            yield Breach(f"{BEST} is worse than {name}", message, answer)
