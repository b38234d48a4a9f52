"""`-o`: files, links, pipes, standard output, for every command that has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.command_line import CommandLine, answered
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_raw_row, load_rows

ROWS = {row.arch: row for row in sorted(load_rows("mini").rows, key=lambda r: -r.n_instructions)}
AMD, NVIDIA = ROWS["gfx942"], ROWS["sm_80"]
FILES = "registers v:2 a:0 s:8 vcc:2=vcc_lo,vcc_hi"
TINY = f"verilocc-bench 1\ntarget gfx942\n{FILES}\nclass V 1 v\nbb0\n%0=A\nB %0\n"


@pytest.fixture(name="run")
def _run(capfdbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(capfdbinary)


@pytest.fixture(name="answer")
def _answer(tmp_path: Path) -> Path:
    return answered(tmp_path / "answer.json", NVIDIA.label, id=NVIDIA.id)


@pytest.fixture(name="commands")
def _commands(tmp_path: Path, answer: Path) -> dict[str, list[object]]:
    """Every command with `-o FILE`, but for that."""
    run, shown = tmp_path / "run", tmp_path / "function.txt"
    shown.write_text(TINY)
    evaluate = ["--model", "linear-scan", "--limit", "1", "--arch", "sm_80"]
    assert main(["evaluate", *evaluate, "--output-path", str(run)]) == 0
    return {
        "allocate": ["allocate", "--model", "linear-scan", NVIDIA.id],
        "bound": ["bound", NVIDIA.id, "--no-solver"],
        "lower": ["lower", NVIDIA.id, answer],
        "report": ["report", run],
        "show": ["show", shown],
    }


NAMES = ("allocate", "bound", "lower", "report", "show")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_standard_output_gets_what_a_file_gets(
    run: CommandLine,
    commands: dict[str, list[object]],
    tmp_path: Path,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    suffix = ".png" if name == "show" else ".out"
    file, link, pipe = (tmp_path / f"{each}{suffix}" for each in ("file", "link", "pipe"))
    link.symlink_to(f"target{suffix}")
    os.mkfifo(pipe)
    run(*commands[name], "-o", file)
    expected = file.read_bytes()
    assert expected
    out, err = run(*commands[name], "-o", "-")
    assert out == expected
    assert not Path("-").exists()
    assert "wrote" not in err
    run(*commands[name], "-o", link)
    assert link.is_symlink()
    assert (tmp_path / f"target{suffix}").read_bytes() == expected
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    run(*commands[name], "-o", pipe)
    reader.join()
    assert found == [expected]
    assert pipe.is_fifo()
    if name == "allocate":
        assert run(*commands[name], "-o", "./-").out == b""
        assert Path("./-").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_an_output_that_is_no_file(
    run: CommandLine, commands: dict[str, list[object]], tmp_path: Path, name: str
) -> None:
    for place, said in (
        (tmp_path, f"expected a file, {tmp_path} is a folder"),
        (tmp_path / ("n" * 300), "File name too long"),
    ):
        run.refuses([*commands[name], "-o", place], said)
    if name in ("bound", "lower"):
        both = "-o - and --json both ask for standard output"
        run.refuses([*commands[name], "-o", "-", "--json"], both)


def test_names_and_text_of_normalize(run: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "kernel.mir"
    file.write_text(load_raw_row("mini", AMD.id).content)
    command = ["normalize", file, "--arch", "gfx942"]
    text, names = tmp_path / "text", tmp_path / "map.json"
    run(*command, "-o", text, "--map", names)
    assert run(*command, "-o", "-").out == text.read_bytes()
    assert run(*command, "-o", text, "--map", "-").out == names.read_bytes()
    for two in (["--map", "-"], ["-o", "-", "--map", "-"], ["-o", text, "--map", text]):
        run.refuses([*command, *two], "go to one place")


@pytest.mark.usefixtures("llc")
def test_assembly_is_what_a_stream_gets(run: CommandLine, tmp_path: Path) -> None:
    answer = answered(tmp_path / "answer.json", AMD.label)
    run("lower", AMD.id, answer, "-o", tmp_path / "a.s")
    assert run("lower", AMD.id, answer, "-o", "-").out == (tmp_path / "a.s").read_bytes()


FOLDERS = {
    "evaluate": ["--model", "linear-scan", "--limit", "1", "--output-path"],
    "build": ["--sweep", "mini", "--output"],
    "compare": [NVIDIA.id, "answer.json", "-o"],
    "dataset": ["stats", "mini", "--plots"],
    "train": ["recipe.yaml", "--dataset", "mini", "-o"],
    "submit": ["run", "--output"],
}
"""Every command that writes a folder."""


@pytest.mark.parametrize("name", FOLDERS)
def test_a_file_in_place_of_a_folder(
    run: CommandLine, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("file").write_text("kept")
    Path("link").symlink_to("file")
    for place in ("file", "link", "pipe", "/dev/null"):
        run.refuses([name, *FOLDERS[name], place], f"expected a folder, {place} is a file")
    assert Path("file").read_text() == "kept"
    said = "expected a folder, - stands for standard output"
    run.refuses([name, *FOLDERS[name], "-"], said)


def test_a_log_that_grows(tmp_path: Path) -> None:
    """`-o /dev/stdout >> log` adds to the log."""
    log = tmp_path / "log"
    log.write_text("before\n")
    command = [sys.executable, "-m", "verilocc_bench", "allocate", "--model", "linear-scan"]
    with log.open("ab") as file:
        subprocess.run([*command, NVIDIA.id, "-o", "/dev/stdout"], stdout=file, check=True)
    before, answer = log.read_text().splitlines()
    assert before == "before"
    assert json.loads(answer)["id"] == NVIDIA.id
