"""Misspelt names, beginnings of ids, and a command line without a command."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from verilocc_bench.cli import build_parser, main
from verilocc_bench.dataset import load_rows

ROWS = load_rows("mini").rows


def said(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What an unusable command prints, in one line."""
    try:
        status = main(arguments)
    except SystemExit as end:
        status = int(str(end.code))
    assert status == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    return printed.err


def test_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    model = ["evaluate", "--model"]
    assert "did you mean 'linear-scan'?" in said([*model, "linear-scann"], capsys)
    assert "did you mean 'evaluate'?" in said(["evalute"], capsys)
    assert "did you mean 'split'?" in said([*model, "best", "--track", "splti"], capsys)
    assert "did you mean" not in said([*model, "zzz"], capsys)


def test_what_is_no_name_of_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert "empty name" in said(["evaluate", "--model", ""], capsys)
    for path in ("./nothing", "/nothing", "a/b/c"):
        for options in ([], ["--batch-size", "2", "--prompt-format", "whole"]):
            words = said(["evaluate", "--model", path, *options], capsys)
            assert f"{path}: there is no such folder" in words


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "evaluate" in printed.err
    assert "usage: verilocc-bench" in printed.err


def test_the_beginning_of_an_id_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    row = ROWS[0]
    length = next(n for n in range(4, 17) if sum(r.id.startswith(row.id[:n]) for r in ROWS) == 1)
    assert main(["problem", row.id[:length], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == row.id
    assert "neither a file nor an id" in said(["problem", row.id[:3]], capsys)


def test_a_beginning_of_several_ids_names_none(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from verilocc_bench.api import problems

    monkeypatch.setattr(problems, "SHORTEST_PREFIX", 1)
    prefix = next(c for c in "0123456789abcdef" if sum(r.id.startswith(c) for r in ROWS) > 1)
    err = said(["problem", prefix], capsys)
    assert "begins" in err
    assert next(r.id for r in sorted(ROWS, key=lambda r: r.id) if r.id.startswith(prefix)) in err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for word in ("evaluate", "selftest", "rebuild", "prompt-format"):
        assert word in script
    assert "verilocc-bench" in script


def test_bash_completes_commands_and_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "completion"
    script.write_text(capsys.readouterr().out)
    asked = {"eva": "evaluate", "evaluate --col": "--columns", "verify --judge ind": "independent"}
    for words, expected in asked.items():
        count = len(words.split())
        command = (
            f"source {script}; COMP_WORDS=(verilocc-bench {words}); COMP_CWORD={count}; "
            '_shtab_verilocc_bench; echo "${COMPREPLY[@]}"'
        )
        run = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        assert run.stdout.split() == [expected], run.stderr


def test_completion_needs_its_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert "pip install -e '.[completion]'" in said(["completion", "bash"], capsys)


def test_help_says_a_default_once() -> None:
    (commands,) = (each for each in build_parser()._actions if isinstance(each.choices, dict))
    for parser in commands.choices.values():
        words = " ".join(parser.format_help().split())
        assert not re.search(r"\(default: [^)]*\) \(default", words), parser.prog
