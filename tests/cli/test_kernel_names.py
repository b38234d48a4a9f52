"""A kernel's name in place of an id."""

from __future__ import annotations

import pytest

import verilocc_bench as vb
from verilocc_bench.api.problems import Problem
from verilocc_bench.dataset import Dataset, Row, load_rows


def only(row: Row, monkeypatch: pytest.MonkeyPatch, *more: Row) -> None:
    from verilocc_bench.api import problems

    def rows(name: str, **_: object) -> Dataset:
        return Dataset(name, None, "test", "assign", (row, *more))

    monkeypatch.setattr(problems, "load_rows", rows)


def test_the_only_row_of_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = load_rows("mini").rows
    other = next(row for row in others if row.kernel != first.kernel)
    only(first, monkeypatch, other)
    found = vb.load_problem(first.kernel)
    assert isinstance(found, Problem)
    assert found.id == first.id


def test_several_rows_of_a_kernel_are_named() -> None:
    rows = [row for row in load_rows("mini").rows if row.kernel == "gemm"]
    with pytest.raises(vb.InputError, match=f"rows are of the kernel 'gemm': {rows[0].id}"):
        vb.load_problem("gemm")
