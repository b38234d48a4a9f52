"""Misspelt names, beginnings of ids, and a command line without a command."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from verilocc_bench.api import problems
from verilocc_bench.cli import build_parser
from verilocc_bench.dataset import load_rows

ROWS = load_rows("mini").rows


def test_what_was_meant(run: CommandLine) -> None:
    model = ["evaluate", "--model"]
    run.refuses([*model, "linear-scann"], "did you mean 'linear-scan'?")
    run.refuses(["evalute"], "did you mean 'evaluate'?")
    run.refuses([*model, "best", "--track", "splti"], "did you mean 'split'?")
    assert "did you mean" not in run.refuses([*model, "zzz"])


def test_what_is_no_name_of_a_model(run: CommandLine) -> None:
    run.refuses(["evaluate", "--model", ""], "empty name")
    for path in ("./nothing", "/nothing", "a/b/c"):
        for options in ([], ["--batch-size", "2", "--prompt-format", "whole"]):
            said = f"{path}: there is no such folder"
            run.refuses(["evaluate", "--model", path, *options], said)


def test_no_command_prints_the_help(run: CommandLine) -> None:
    printed = run(status=2)
    assert printed.out == ""
    assert "evaluate" in printed.err
    assert "usage: verilocc-bench" in printed.err


def test_the_beginning_of_an_id_names_it(run: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    ids = [row.id for row in ROWS]
    beginnings = (ids[0][:length] for length in range(4, 17))
    beginning = next(b for b in beginnings if sum(i.startswith(b) for i in ids) == 1)
    assert run.json("problem", beginning)["id"] == ids[0]
    run.refuses(["problem", ids[0][:3]], "neither a file nor an id")
    monkeypatch.setattr(problems, "SHORTEST_PREFIX", 1)
    several = next(c for c in "0123456789abcdef" if sum(i.startswith(c) for i in ids) > 1)
    run.refuses(["problem", several], "begins", min(i for i in ids if i.startswith(several)))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_knows_every_command(shell: str, run: CommandLine) -> None:
    script = run("completion", shell).out
    for word in ("evaluate", "selftest", "rebuild", "prompt-format"):
        assert word in script
    assert "verilocc-bench" in script


def test_bash_completes_commands_and_options(
    tmp_path: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "completion"
    script.write_text(run("completion", "bash").out)
    asked = {"eva": "evaluate", "evaluate --col": "--columns", "verify --judge ind": "independent"}
    for words, expected in asked.items():
        count = len(words.split())
        command = (
            f"source {script}; COMP_WORDS=(verilocc-bench {words}); COMP_CWORD={count}; "
            '_shtab_verilocc_bench; echo "${COMPREPLY[@]}"'
        )
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [expected], done.stderr
    monkeypatch.setitem(sys.modules, "shtab", None)
    run.refuses(["completion", "bash"], "pip install -e '.[completion]'")


def test_help_says_a_default_once() -> None:
    (commands,) = (each for each in build_parser()._actions if isinstance(each.choices, dict))
    for parser in commands.choices.values():
        words = " ".join(parser.format_help().split())
        assert not re.search(r"\(default: [^)]*\) \(default", words), parser.prog
