"""Two runs side by side, by hand-made results of which every figure is known."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import pytest

from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.comparison import PairedFunction, compare_runs
from verilocc_bench.evaluation.metrics import bootstrap_interval

FUNCTIONS = {
    ("test", "a"): ((4, 4, 32), (4, 4, 17)),
    ("test", "b"): ((4, 1, 20), (4, 2, 31)),
    ("test", "c"): ((4, 4, 50), (4, 4, 50)),
    ("test", "d"): ((4, 0, None), (4, 4, 12)),
    ("test", "e"): ((4, 2, 9), (4, 0, None)),
    ("test", "f"): ((4, 0, None), (4, 0, None)),
    ("test", "g"): ((4, 4, 64), (4, 3, 47)),
    ("test", "h"): ((4, 4, 10), (4, 4, 9)),
    # The same function of another split: neither run's `a` may stand for the other.
    ("train", "a"): ((4, 4, 8), (4, 4, 41)),
}
"""Samples, valid samples and registers of the first run and of the second."""


def document(run: int, kernels: dict[Any, Any], **config: str) -> dict[str, Any]:
    """A results document with what a comparison reads; the second run has another order."""
    records = [
        {"split": split, "id": name, "task": f"task of {name}",
         "samples": figures[run][0], "valid": figures[run][1], "registers": figures[run][2]}
        for (split, name), figures in kernels.items()
    ]  # fmt: skip
    names = {"model": ("own", "other")[run], "options": {"model_name": ("", "llm")[run]}}
    settings = {"track": "assign", "budget": "label", **names, **config}
    return {"config": settings, "seed": 3 + run, "kernels": records[:: 1 - 2 * run]}


def test_every_figure_of_a_comparison() -> None:
    alone = {("test", "only here"): ((4, 4, 1), (0, 0, None))}
    found = compare_runs(document(0, FUNCTIONS | alone), document(1, FUNCTIONS | alone))
    assert found.functions == tuple(
        PairedFunction(name, f"task of {name}", (one[1] / 4, two[1] / 4), (one[2], two[2]))
        for (_, name), (one, two) in FUNCTIONS.items()
    )
    assert found.models == ("own", "other llm")
    assert found.solved == {"both": 6, "only the first": 1, "only the second": 1, "neither": 1}
    assert found.registers == {"fewer": 3, "equal": 1, "more": 2}
    differences = [(two[1] - one[1]) / 4 for one, two in FUNCTIONS.values()]
    assert found.pass_difference == pytest.approx(statistics.fmean(differences))
    ratios = [17 / 32, 31 / 20, 50 / 50, 47 / 64, 9 / 10, 41 / 8]
    assert found.registers_ratio == pytest.approx(statistics.geometric_mean(ratios))
    assert found.pass_interval == bootstrap_interval(differences, 3)
    for seed in (3, 5, 8):  # that of the first run
        again = compare_runs(document(0, FUNCTIONS) | {"seed": seed}, document(1, FUNCTIONS))
        assert again.registers_interval == pytest.approx(
            bootstrap_interval(ratios, seed, statistics.geometric_mean)
        )
    # Of all ways to toss five coins, those that fall as unevenly as three to two, or more so.
    tosses = [abs(2 * sum(each) - 5) for each in itertools.product((0, 1), repeat=5)]
    assert found.sign_test == sum(each >= 1 for each in tosses) / 32
    assert dict(line.split(maxsplit=1) for line in repr(found).splitlines()[:3]) == {
        "first": "own", "second": "other llm", "functions": "9",
    }  # fmt: skip
    lines = [" ".join(line.split()) for line in repr(found).splitlines()[3:]]
    low, high = found.pass_interval
    least, most = found.registers_interval
    assert lines == [
        "solved both 6, only the first 1, only the second 1, neither 1",
        f"pass@1, second − first {found.pass_difference:.4f} [{low:.4f}, {high:.4f}]",
        f"registers, second ÷ first {found.registers_ratio:.4f} [{least:.4f}, {most:.4f}]",
        "second needs fewer 3, equal 1, more 2",
        "sign test p = 1",
    ]
    assert "<td>fewer 3, equal 1, more 2" in found._repr_html_()
    frame = found.to_pandas()
    assert list(frame.columns) == [
        "id", "task", "pass@1_first", "pass@1_second", "registers_first", "registers_second",
    ]  # fmt: skip
    assert frame.iloc[1].tolist() == ["b", "task of b", 0.25, 0.5, 20, 31]


@pytest.mark.parametrize("fewer", [0, 1, 4, 7])
def test_the_sign_test_counts_uneven_tosses(fewer: int) -> None:
    functions = {
        ("test", str(n)): ((1, 1, 10), (1, 1, 9 if n < fewer else 11)) for n in range(7)
    } | {("test", "equal"): ((1, 1, 10), (1, 1, 10))}
    found = compare_runs(document(0, functions), document(1, functions))
    assert found.registers == {"fewer": fewer, "equal": 1, "more": 7 - fewer}
    tosses = [abs(2 * sum(each) - 7) for each in itertools.product((0, 1), repeat=7)]
    assert found.sign_test == sum(each >= abs(2 * fewer - 7) for each in tosses) / 2**7
    functions = {("test", str(n)): ((1, 1, 10), (1, 1, 11)) for n in range(1100)}
    assert compare_runs(document(0, functions), document(1, functions)).sign_test < 1e-300


def test_what_needs_no_registers_has_no_ratio() -> None:
    functions = {("test", str(n)): ((1, 1, n), (1, 1, 2 * (n != 1))) for n in range(3)}
    found = compare_runs(document(0, functions), document(1, functions))
    assert found.registers == {"fewer": 1, "equal": 1, "more": 1}
    assert (found.registers_ratio, found.registers_interval) == (1.0, (1.0, 1.0))


def test_what_neither_run_solved_has_no_ratio() -> None:
    functions = {("test", "a"): ((2, 0, None), (2, 0, None))}
    found = compare_runs(document(0, functions), document(1, functions))
    assert (found.registers_ratio, found.registers_interval) == (None, (None, None))
    assert (found.pass_difference, found.pass_interval) == (0.0, (0.0, 0.0))
    assert found.sign_test == 1.0
    assert "registers, second ÷ first  –" in repr(found)


@pytest.mark.parametrize("key", ["track", "budget"])
def test_runs_of_different_questions_are_refused(key: str) -> None:
    with pytest.raises(InputError) as refused:
        compare_runs(document(0, FUNCTIONS), document(1, FUNCTIONS, **{key: "another"}))
    own = {"track": "assign", "budget": "label"}[key]
    assert str(refused.value) == f"runs of different {key}s cannot be compared: {own} and another"


def test_runs_without_a_common_function_are_refused() -> None:
    other = {("train", "b"): ((4, 4, 1), (4, 4, 1))}
    for first, second in (
        ({("test", "b"): ((4, 4, 1), (4, 4, 1))}, other),
        ({("train", "b"): ((0, 0, None), (4, 4, 1))}, other),
    ):
        with pytest.raises(InputError, match=r"^no function is in both runs$"):
            compare_runs(document(0, first), document(1, second))
