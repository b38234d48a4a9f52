"""`run` and `verify --judge machine-code` from end to end."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from dataset_builders.inspection import execution_check, lists_check
from dataset_builders.inspection.check import check_dataset
from tests.command_line import CommandLine, answered
from tests.dataset_builders.inspection_folders import SPLITS, draft
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.execution import TILES, AnswerExecutor, ExecutedAnswer
from verilocc_bench.references import launch_for
from verilocc_bench.selftest.asked_judges import BoundedJudges
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.executed_cases import ExecutedCases
from verilocc_bench.selftest.mutate import mutate_with

# The first of them waits until the interpreter is compiled.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("llc")]

ROWS = load_rows("mini").rows
ROW = min((row for row in ROWS if row.arch == "gfx942"), key=lambda row: row.n_instructions)
SEED = 7
NVIDIA = next(row for row in ROWS if row.arch == "sm_80")


def wrong_assignment() -> dict[str, str]:
    """The label, but that a register lies where another one that is live lies."""
    assert ROW.label is not None
    problem = AllocationProblem.from_text(ROW.normalized)
    mutant = mutate_with("live_overlap", problem, dict(ROW.label), random.Random(SEED))
    assert mutant is not None
    return dict(mutant)


def test_the_compilers_own_allocation_and_the_label(run: CommandLine, tmp_path: Path) -> None:
    out = run("run", ROW.id).out
    assert "right numbers" in out
    assert "executed: " in out
    document = run.json("run", ROW.id, answered(tmp_path / "a.json", ROW.label))
    assert (document["outcome"], document["same_bits"]) == ("right numbers", True)
    assert document["events"] == 0
    assert document["executed"]["s_waitcnt"] > 0
    assert run.json("run", ROW.id, "--trace", "0x100")["vectors"]["v0"] == list(range(64))
    run("run", ROW.id, "--trace", "0x101", status=2)
    run.refuses(["run", NVIDIA.id], "execution is for gfx90a and gfx942")


def test_execution_is_a_judge(run: CommandLine, tmp_path: Path) -> None:
    right, wrong = answered(tmp_path / "r", ROW.label), answered(tmp_path / "w", wrong_assignment())
    run("verify", ROW.id, right, "--judge", "machine-code")
    (word,) = run.json("verify", ROW.id, wrong, "--judge", "machine-code", status=1)["judges"]
    assert word["judge"] == "machine-code"
    assert word["accepts"] is False
    assert word["execution"]["outcome"] in {"refused", "fault", "wrong numbers"}


def test_work_groups_with_numbers_other_than_0_are_executed(
    run: CommandLine, tmp_path: Path
) -> None:
    spoilt = {**(ROW.label or {}), "%28": "s11"}  # where a work-group's number still lies
    wrong = answered(tmp_path / "w", spoilt)
    run("verify", ROW.id, wrong, status=1)
    judged = "verify", ROW.id, wrong, "--judge", "machine-code"
    run(*judged, status=1)
    run(*judged, "--tiles", "1")
    run("run", ROW.id, wrong, status=1)
    run.refuses(["verify", ROW.id, wrong, "--tiles", "2"], "--tiles is for --judge machine-code")


@pytest.mark.parametrize(
    ("start", "spoilt"),
    [
        ("fe33", {"%15": "s6"}),  # a band's tiles, which the bands after the first one need
        pytest.param("4466", {"%40": "s6"}, marks=pytest.mark.exhaustive),  # in the third band
        ("c5b9", {"%18": "s14"}),  # a small number in a pointer's lower half
    ],
)
def test_a_scalar_that_is_overwritten_is_noticed(
    run: CommandLine, tmp_path: Path, start: str, spoilt: dict[str, str]
) -> None:
    row = next(row for row in ROWS if row.id.startswith(start))
    wrong = answered(tmp_path / "wrong.json", {**(row.label or {}), **spoilt})
    (word,) = run.json("verify", row.id, wrong, "--judge", "execution", status=1)["judges"]
    assert word["execution"]["outcome"] in {"fault", "wrong numbers"}


def test_a_launch_has_a_work_group_whose_numbers_are_all_not_0() -> None:
    for kernel, params in sorted({(row.kernel, row.params) for row in ROWS}):
        parameters = json.loads(params)
        grid, larger = (launch_for(kernel, parameters, tiles=t).grid for t in (TILES, TILES + 2))
        assert all(number > 1 for number, most in zip(grid, larger, strict=True) if most > 1)


def test_comparisons_count_executed_instructions(run: CommandLine, tmp_path: Path) -> None:
    right = answered(tmp_path / "r", ROW.label)
    out = run("compare", ROW.id, right, "--execute", "-o", tmp_path / "out").out
    executed = json.loads((tmp_path / "out" / "comparison.json").read_text())["executed"]
    assert executed["answer"] == executed["other"]
    assert executed["answer"]["vector"] > 0
    assert "executed by all waves" in out


def test_the_self_test_executes_accepted_answers(
    llc: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = AllocationProblem.from_text(ROW.normalized)
    judges, cases = BoundedJudges(problem), ExecutedCases(2, "mini")
    label = Case(problem.function, dict(ROW.label or {}))
    assert cases.breach(Case(problem.function, wrong_assignment()), ROW, judges) is None
    assert cases.executed == 0, "a wrong answer is not executed"
    assert cases.breach(label, ROW, judges) is None
    wrong = ExecutedAnswer("wrong numbers")
    monkeypatch.setattr(AnswerExecutor, "execute", lambda *_: wrong)
    assert "wrong numbers for an answer that the verifier" in str(cases.breach(label, ROW, judges))
    assert cases.breach(label, ROW, judges) is None, "one too many"
    assert cases.executed == 2


@pytest.fixture(name="folder")
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small dataset."""
    monkeypatch.setattr(lists_check, "split_of", lambda _, point: SPLITS[point.group])
    return draft().write(tmp_path)


def test_rows_of_a_dataset_are_executed(folder: Path, run: CommandLine) -> None:
    command = ("dataset", "check", folder, "--no-labels", "--execute", "1", "--jobs", "1")
    assert "1 executed: nothing wrong" in run(*command).out


def test_a_row_that_computes_something_else_is_found(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def executed(*_: object) -> list[tuple[str, ExecutedAnswer]]:
        return [("the label", ExecutedAnswer("wrong numbers"))]

    monkeypatch.setattr(execution_check, "_executed", executed)
    report = check_dataset(folder, labels=False, progress=False, execute=1)
    assert report.executed == 1
    (finding,) = report.findings
    assert finding.kind == "machine-code"
    assert "the label: executed, it gives wrong numbers" in finding.message
