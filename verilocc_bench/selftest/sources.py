"""The cases of a campaign: generated functions and real kernels with mutated answers.

The same generator state gives the same cases. The judges of a function are made
once for all its cases; the judges of some kernels are kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.selftest.asked_judges import BoundedJudges
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.case_answers import random_answer
from verilocc_bench.selftest.edit_mutate import EDIT_OPERATORS, mutate_edits
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.selftest.mutate import OPERATORS, TARGETED, mutate_with
from verilocc_bench.selftest.random_edits import random_edits
from verilocc_bench.targets import PUBLISHED

_T = TypeVar("_T")

UNTOUCHED, UNTOUCHED_EDITS = "(answer)", "(edits)"
"""The names of the operator for answers that are judged unchanged."""

ANSWERS = 12
EDITED = 2
EDITED_ANSWERS = 8
FUNCTIONS_TO_A_KERNEL = 40
FUNCTIONS_TO_AN_ASKING = 4
"""The allocators are asked about one in this many generated functions, answerable or not."""
FUNCTIONS_TO_A_PROOF = 8
"""A solver helps to bound one in this many generated functions."""
KERNEL_ANSWERS = 3
KEPT_KERNELS = 6
TRIES = 4
"""The number of operators that are drawn until one applies."""

FAVOURED = frozenset(
    {
        "swap_in_class",
        "place_anywhere",
        "live_overlap",
        "fixed_register",
        "destroyed_register",
        "early_clobber",
        "one_unit_over",
        "tied_mismatch",
        "reserved",
        "wrong_constant",
        "swapped_spills",
        "sequential",
        "masked_place",
    }
)
"""Operators that are drawn more often: they apply rarely, or break values and not the form."""


@dataclass(frozen=True, slots=True)
class Cases:
    """The cases of one function, as (operator, case).

    `kernel` is True for a kernel of the dataset. `asked` is True if the
    allocators are to be asked about the function. `answer` is a known answer,
    `row` the kernel's row.
    """

    judges: BoundedJudges
    kernel: bool
    cases: Iterator[tuple[str, Case]]
    asked: bool = False
    answer: Mapping[str, str] | None = None
    row: Row | None = None


def operators() -> list[str]:
    """All names of operators, in the order of the table."""
    return [UNTOUCHED, *OPERATORS, *TARGETED, UNTOUCHED_EDITS, *EDIT_OPERATORS]


class CaseSource:
    """All cases of one seed."""

    def __init__(self, seed: int, rows: tuple[Row, ...], smt: bool) -> None:
        self.generator = random.Random(seed)  # noqa: S311
        self.rows = tuple(row for row in rows if row.label is not None)
        self.smt = smt
        self.kernels: dict[str, tuple[BoundedJudges, Mapping[str, str]]] = {}

    def __iter__(self) -> Iterator[Cases]:
        for number in range(1 << 62):
            if self.rows and number % FUNCTIONS_TO_A_KERNEL == 0:
                yield self.kernel()
            found = self.generated(number)
            if found is not None:
                yield found

    def generated(self, number: int) -> Cases | None:
        """The cases of a generated function, or None if there is nothing to ask about it.

        Half of the functions draw on a target's plain pool. Half of these and half of the
        others have instructions that destroy registers.
        """
        generator = self.generator
        round_of_targets = number // len(PUBLISHED)
        function = random_function(
            generator.randrange(1 << 40),
            target=PUBLISHED[number % len(PUBLISHED)],
            varied=round_of_targets % 2 == 1,
            calls=round_of_targets // 2 % 2 == 1,
        )
        problem = AllocationProblem(function)
        try:
            answer = random_answer(problem, generator)
        except InputError:  # the guards exceed the bounds of the analysis
            return None
        asked = number % FUNCTIONS_TO_AN_ASKING == 0
        if not answer and not asked:
            return None
        judges = BoundedJudges(problem, self.smt, number % FUNCTIONS_TO_A_PROOF == 0)
        cases = self.mutants(problem, answer, ANSWERS, EDITED_ANSWERS) if answer else iter(())
        return Cases(judges, False, cases, asked, answer)

    def kernel(self) -> Cases:
        """Some cases of a kernel of the dataset, with the compiler's answer."""
        row = self.generator.choice(self.rows)
        if row.id not in self.kernels:
            if len(self.kernels) >= KEPT_KERNELS:
                del self.kernels[next(iter(self.kernels))]
            problem = AllocationProblem.from_text(row.normalized)
            # Z3 takes minutes for the largest kernels.
            self.kernels[row.id] = BoundedJudges(problem), dict(row.label or {})
        judges, answer = self.kernels[row.id]
        count = KERNEL_ANSWERS
        mutants = self.mutants(judges.problem, answer, count, count)
        return Cases(judges, True, mutants, row=row)

    def mutants(
        self, problem: AllocationProblem, answer: Mapping[str, str], count: int, with_edits: int
    ) -> Iterator[tuple[str, Case]]:
        """An answer, corruptions of it, edits of it, and corruptions of these."""
        generator = self.generator
        yield UNTOUCHED, Case(problem.function, answer)
        for _ in range(count):
            name, mutant = self.mutant(
                _weighted([*OPERATORS, *TARGETED]),
                lambda name: mutate_with(name, problem, dict(answer), generator),
            )
            if mutant is not None:
                yield name, Case(problem.function, mutant)
        for _ in range(EDITED):
            edited = random_edits(problem, answer, generator, generator.randint(1, 3))
            if edited is not None:
                yield from self.edited_mutants(problem, edited, with_edits)

    def edited_mutants(
        self, problem: AllocationProblem, edited: Answer, count: int
    ) -> Iterator[tuple[str, Case]]:
        """An answer with edits, and corruptions of it."""
        function = problem.function
        yield UNTOUCHED_EDITS, Case(function, edited.assignment, edited.edits)
        for _ in range(count):
            name, mutant = self.mutant(
                _weighted(EDIT_OPERATORS),
                lambda name: mutate_edits(name, problem, edited, self.generator),
            )
            if mutant is not None:
                yield name, Case(function, mutant.assignment, mutant.edits)

    def mutant(self, names: list[str], apply: Callable[[str], _T | None]) -> tuple[str, _T | None]:
        """The name of an operator that applies, and its result."""
        name, mutant = "", None
        for _ in range(TRIES):
            name = self.generator.choice(names)
            mutant = apply(name)
            if mutant is not None:
                break
        return name, mutant


def _weighted(names: Iterable[str]) -> list[str]:
    return [name for each in names for name in [each] * (3 if each in FAVOURED else 1)]
