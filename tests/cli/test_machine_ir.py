"""Machine IR on the command line: files of several functions, one of which cannot be read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import CommandLine

TEXT = Path(__file__).with_name("several.mir").read_text()


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    path = tmp_path / "kernels.mir"
    path.write_text(TEXT)
    return path


def test_a_function_that_cannot_be_read_leaves_the_others(
    path: Path, tmp_path: Path, run: CommandLine
) -> None:
    one = [str(path), "--arch", "gfx942", "--function", "one two"]
    body = run("normalize", *one).out.partition("bb0")[2]
    assert body == "(v0,s[4:5])\n%0=COPY v0\n%1=V_ADD_U32 %0\nINLINEASM %1\nS_ENDPGM\n"
    answer, lowered = tmp_path / "answer.json", tmp_path / "lowered.mir"
    answer.write_text(json.dumps({"assignment": {"%0": "v0", "%1": "v5"}}))
    run("verify", *one, answer)
    run("lower", *one, answer, "-o", lowered)
    lines = lowered.read_text().splitlines()
    assert (
        "    renamable $vgpr5 = V_ADD_U32_e32 renamable $vgpr0, 63, implicit $exec ; $vgpr7"
        in lines
    )
    assert '    INLINEASM &"v_nop ; \\22x\\22 , {", 1, 10, renamable $vgpr5 ; "a" %0' in lines
    assert "    what is this" in lines
    several = "several functions, choose one with --function"
    run.refuses(["lower", path, "--arch", "gfx942", answer, "-o", lowered], several)


def test_the_list_says_which_can_be_read(path: Path, tmp_path: Path, run: CommandLine) -> None:
    output = tmp_path / "list.txt"
    arguments = ["normalize", str(path), "--arch", "gfx942", "--list"]
    run(*arguments, "-o", output)
    rows = output.read_text().splitlines()[2:]
    assert [row.split()[0] for row in rows] == ["damaged", "callee", "one"]
    assert "line 6: expected an instruction, not 'what is this'" in rows[0]
    assert "line 15: a function that ends in S_SETPC_B64_return is not supported" in rows[1]
    assert rows[2].split() == ["one", "two", "yes", "4", "2"]
    run.refuses([*arguments, "--map", output], "--list")
