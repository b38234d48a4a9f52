"""Which of many cases of one kind `make test` takes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from verilocc_bench.dataset import Row


def some_of(cases: Iterable[object], one_in: int = 3) -> list[object]:
    """The cases as parameters of a test; only every `one_in`th of them is for `make test`.

    The others have the mark `exhaustive`: `make test-exhaustive` takes them.
    """
    return [
        case if number % one_in == 0 else pytest.param(case, marks=pytest.mark.exhaustive)
        for number, case in enumerate(cases)
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
