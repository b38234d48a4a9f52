"""Which of many cases of one kind `make test` takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import pytest

from verilocc_bench.dataset import Row

ASKED_OF_MUTANTS = (
    "tests/allocators/test_minimizing.py",
    "tests/analysis",
    "tests/verification",
    "tests/backends",
    "tests/evaluation/test_comparison.py",
    "tests/evaluation/test_ledger.py",
    "tests/evaluation/test_metrics.py",
    "tests/evaluation/test_storing.py",
    "tests/leaderboard/test_judging.py",
)
"""The tests that `make mutants` asks, but for FURTHER."""

FURTHER = (
    # They ask of thousands of functions what test_small_functions asks of hundreds.
    r"test_mutation\.py",
    r"test_symbolic_paths\.py",
    r"huge_wrong_answer",
    # Kernels of the embedded dataset, and of LLVM's own tests.
    r"-[0-9a-f]{16}\]$",
    r"test_against_llvm\.py",
    r"test_value_walk\.py",
    r"test_llvm_kernels\.py",
)
"""Of these, the tests that take long and kill no mutant that the others do not: exhaustive."""

_FURTHER = re.compile("|".join(FURTHER))


def is_further(test: str) -> bool:
    """True for a test, by its id, that asks about more of what others ask about."""
    return test.startswith(ASKED_OF_MUTANTS) and _FURTHER.search(test) is not None


def some_of(cases: Iterable[object], one_in: int = 3) -> list[object]:
    """The cases as parameters of a test; only every `one_in`th of them is for `make test`.

    The others have the mark `exhaustive`: `make test-exhaustive` takes them.
    """
    return [
        case if number % one_in == 0 else pytest.param(case, marks=pytest.mark.exhaustive)
        for number, case in enumerate(cases)
    ]


def in_turns(cases: Iterable[object], kinds: Sequence[object]) -> list[object]:
    """Each case with each kind as parameters; for `make test` the kinds take turns."""
    return [
        (case, kind)
        if number % len(kinds) == place
        else pytest.param(case, kind, marks=pytest.mark.exhaustive)
        for number, case in enumerate(cases)
        for place, kind in enumerate(kinds)
    ]


def one_of_each_kernel(rows: Sequence[Row]) -> list[Row]:
    """The architectures take turns; the row is the kernel's shortest for that architecture."""
    archs = sorted({row.arch for row in rows})
    taken = set[str]()
    for number, kernel in enumerate(sorted({row.kernel for row in rows})):
        of_kernel = [row for row in rows if row.kernel == kernel]
        turn = archs[number % len(archs)]
        of_turn = [row for row in of_kernel if row.arch == turn] or of_kernel
        taken.add(min(of_turn, key=lambda row: row.n_instructions).id)
    return [row for row in rows if row.id in taken]


def some_rows(rows: Sequence[Row]) -> list[object]:
    """The rows as parameters of a test; one of each kernel is for `make test`.

    The others have the mark `exhaustive`.
    """
    return _marked(rows, {row.id for row in one_of_each_kernel(rows)})


def few_rows(rows: Sequence[Row]) -> list[object]:
    """Like `some_rows`, but the shortest row of each architecture alone is for `make test`.

    Tests that no mutant is asked about take these.
    """
    by_size = sorted(rows, key=lambda row: -row.n_instructions)
    return _marked(rows, set({row.arch: row.id for row in by_size}.values()))


def _marked(rows: Sequence[Row], taken: set[str]) -> list[object]:
    return [
        row if row.id in taken else pytest.param(row, marks=pytest.mark.exhaustive) for row in rows
    ]
