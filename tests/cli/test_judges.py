"""`verify --judge`: each judge's word, in text and as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from verilocc_bench.cli import main, verify_command
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.settings.judges import JUDGES
from verilocc_bench.verification.symbolic import SymbolicChecker

FOLDER = Path(__file__).parents[1] / "verification" / "planted"
WRONG = [str(FOLDER / "one_branch.mir"), str(FOLDER / "one_branch.json"), "--arch", "gfx942"]


@pytest.fixture
def right(tmp_path: Path) -> list[str]:
    row = min((r for r in load_rows("mini").rows), key=lambda r: r.n_virtual_registers)
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"assignment": row.label}))
    return [row.id, str(path)]


@pytest.mark.parametrize("judge", JUDGES)
def test_each_judge_has_a_word(
    judge: str, right: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", *right, "--judge", judge]) == 0
    assert capsys.readouterr().out.startswith(f"{judge}: ")
    assert main(["verify", *WRONG, "--judge", judge]) == 1
    assert capsys.readouterr().out.startswith(f"{judge}: ")


def test_all_of_them_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", *WRONG, "--judge", "all", "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [word["judge"] for word in document["judges"]] == list(JUDGES)
    assert not any(word["accepts"] for word in document["judges"])
    shown = document["judges"][-1]["miscompile"]
    assert shown["lane"] == "%0"
    assert document["judges"][0]["verdict"]["findings"][0]["lanes"][1]["lane"] == "%0"


def test_with_edits_two_of_them_judge(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = (FOLDER / "straight_line.mir").read_text()
    path = tmp_path / "f.mir"
    path.write_text(text)
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
    assert main(["verify", str(path), str(own), "--arch", "gfx942", "--judge", "all"]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith("independent: valid with edits: ")
    assert main(["verify", str(path), str(own), "--arch", "gfx942"]) == 0
    capsys.readouterr()
    assert main(["verify", str(path), str(own), "--arch", "gfx942", "--judge", "fast"]) == 2
    assert "does not judge answers with edits" in capsys.readouterr().err
    answer["assignment"]["%4"] = "v1"
    own.write_text(json.dumps(answer))
    assert main(["verify", str(path), str(own), "--arch", "gfx942", "--judge", "all"]) == 1
    assert "value-walk: miscompile" in capsys.readouterr().out


def test_the_value_walk_says_why_it_was_not_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = json.loads((FOLDER / "straight_line.json").read_text())
    own = tmp_path / "answer.json"
    for changed, said in (
        ({"%3": "v999"}, "no register 'v999'"),
        ({"%99": "v3"}, "not a virtual register"),
        ({"%3": "s3"}, "the class allows"),
    ):
        own.write_text(json.dumps({"assignment": {**answer["assignment"], **changed}}))
        command = ["verify", WRONG[0].replace("one_branch", "straight_line"), str(own)]
        assert main([*command, *WRONG[2:], "--judge", "value-walk"]) == 1
        assert said in capsys.readouterr().out


def test_a_judge_that_is_not_installed_is_left_out_of_all(
    right: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    assert main(["verify", *right, "--judge", "all"]) == 0
    captured = capsys.readouterr()
    assert "smt: not asked\n" in captured.out
    assert captured.err.startswith("verilocc-bench verify: smt is not asked: ")
    assert captured.err.count("\n") == 1
    assert "z3-solver" in captured.err
    assert main(["verify", *right, "--judge", "all", "--json"]) == 0
    words = {word["judge"]: word for word in json.loads(capsys.readouterr().out)["judges"]}
    assert {name: word["accepts"] for name, word in words.items()} == {
        "fast": True,
        "independent": True,
        "smt": None,
        "value-walk": True,
    }
    assert "z3-solver" in words["smt"]["note"]
    assert main(["verify", *WRONG, "--judge", "all"]) == 1
    capsys.readouterr()
    assert main(["verify", *right, "--judge", "smt"]) == 2
    assert "z3-solver" in capsys.readouterr().err


def test_a_function_that_is_too_large_for_one_judge(
    right: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InputError("the guards depend on each other in too many ways")

    monkeypatch.setattr(SymbolicChecker, "judge", refuse)
    assert main(["verify", *right, "--judge", "all"]) == 0
    captured = capsys.readouterr()
    assert "independent: not asked\n" in captured.out
    assert "independent is not asked: the guards depend" in captured.err
    assert main(["verify", *right, "--judge", "independent"]) == 2


def test_more_findings_than_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verify_command, "FINDINGS", 3)
    row = min((r for r in load_rows("mini").rows), key=lambda r: r.n_virtual_registers)
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"assignment": {}}))
    assert main(["verify", row.id, str(path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    count = row.n_virtual_registers
    assert lines[0] == f"wrong: {count} findings ({count} missing); the first 3:"
    assert len(lines) == 4
    assert main(["verify", row.id, str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert len(document["findings"]) == 3
    assert document["untold"] == {"missing": count - 3}
