"""`verify --judge`: each judge's word, in text and as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.command_line import CommandLine, answered
from verilocc_bench.cli import verify_command
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.settings.judges import JUDGES
from verilocc_bench.verification.symbolic import SymbolicChecker

FOLDER = Path(__file__).parents[1] / "verification" / "planted"
WRONG = [str(FOLDER / "one_branch.mir"), str(FOLDER / "one_branch.json"), "--arch", "gfx942"]


@pytest.fixture
def right(tmp_path: Path) -> list[str]:
    row = min((r for r in load_rows("mini").rows), key=lambda r: r.n_virtual_registers)
    return [row.id, str(answered(tmp_path / "answer.json", row.label))]


@pytest.mark.parametrize("judge", JUDGES)
def test_each_judge_has_a_word(judge: str, right: list[str], run: CommandLine) -> None:
    assert run("verify", *right, "--judge", judge).out.startswith(f"{judge}: ")
    assert run("verify", *WRONG, "--judge", judge, status=1).out.startswith(f"{judge}: ")


def test_all_of_them_as_json(run: CommandLine) -> None:
    document = run.json("verify", *WRONG, "--judge", "all", status=1)
    assert [word["judge"] for word in document["judges"]] == list(JUDGES)
    assert not any(word["accepts"] for word in document["judges"])
    shown = document["judges"][-1]["miscompile"]
    assert shown["lane"] == "%0"
    assert document["judges"][0]["verdict"]["findings"][0]["lanes"][1]["lane"] == "%0"


def test_with_edits_two_of_them_judge(tmp_path: Path, run: CommandLine) -> None:
    path = FOLDER / "straight_line.mir"
    answer = json.loads((FOLDER / "straight_line.json").read_text())
    # What overwrites %1 is kept elsewhere until %1 has been read.
    answer["edits"] = {
        "new": {"%4": "V"},
        "insert": [{"at": [0, 2], "move": [["%4", "%1"]]}],
        "replace": [[0, 3, 1, "%4"]],
    }
    answer["assignment"]["%4"] = "v9"
    own = tmp_path / "answer.json"
    own.write_text(json.dumps(answer))
    command = ("verify", path, own, "--arch", "gfx942")
    assert run(*command, "--judge", "all").out.startswith("independent: valid with edits: ")
    run(*command)
    run.refuses([*command, "--judge", "fast"], "does not judge answers with edits")
    answer["assignment"]["%4"] = "v1"
    own.write_text(json.dumps(answer))
    assert "value-walk: miscompile" in run(*command, "--judge", "all", status=1).out


def test_the_value_walk_says_why_it_was_not_run(tmp_path: Path, run: CommandLine) -> None:
    answer = json.loads((FOLDER / "straight_line.json").read_text())
    own = tmp_path / "answer.json"
    for changed, said in (
        ({"%3": "v999"}, "no register 'v999'"),
        ({"%99": "v3"}, "not a virtual register"),
        ({"%3": "s3"}, "the class allows"),
    ):
        answered(own, {**answer["assignment"], **changed})
        command = ["verify", WRONG[0].replace("one_branch", "straight_line"), str(own)]
        assert said in run(*command, *WRONG[2:], "--judge", "value-walk", status=1).out


def test_a_judge_that_is_not_installed_is_left_out_of_all(
    right: list[str], run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    captured = run("verify", *right, "--judge", "all")
    assert "smt: not asked\n" in captured.out
    assert captured.err.startswith("verilocc-bench verify: smt is not asked: ")
    assert captured.err.count("\n") == 1
    assert "z3-solver" in captured.err
    words = {word["judge"]: word for word in run.json("verify", *right, "--judge", "all")["judges"]}
    assert {name: word["accepts"] for name, word in words.items()} == {
        "fast": True,
        "independent": True,
        "smt": None,
        "value-walk": True,
    }
    assert "z3-solver" in words["smt"]["note"]
    run("verify", *WRONG, "--judge", "all", status=1)
    run.refuses(["verify", *right, "--judge", "smt"], "z3-solver")


def test_a_function_that_is_too_large_for_one_judge(
    right: list[str], run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("the guards depend on each other in too many ways")

    monkeypatch.setattr(SymbolicChecker, "judge", refuse)
    captured = run("verify", *right, "--judge", "all")
    assert "independent: not asked\n" in captured.out
    assert "independent is not asked: the guards depend" in captured.err
    run("verify", *right, "--judge", "independent", status=2)


def test_more_findings_than_are_told(
    right: list[str], run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_command, "FINDINGS", 3)
    count = min(row.n_virtual_registers for row in load_rows("mini").rows)
    answered(Path(right[1]), {})
    lines = run("verify", *right, status=1).out.splitlines()
    assert lines[0] == f"wrong: {count} findings ({count} missing); the first 3:"
    assert len(lines) == 4
    document = run.json("verify", *right, status=1)
    assert len(document["findings"]) == 3
    assert document["untold"] == {"missing": count - 3}
