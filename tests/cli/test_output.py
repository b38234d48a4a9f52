"""`-o`: files, links, pipes, standard output, for every command that has it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from verilocc_bench.backends.amdgpu.tools import find_llc
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_raw_row, load_rows
from verilocc_bench.errors import InputError

ROWS = {row.arch: row for row in sorted(load_rows("mini").rows, key=lambda r: -r.n_instructions)}
AMD, NVIDIA = ROWS["gfx942"], ROWS["sm_80"]


class Ended(NamedTuple):
    """How a command ended."""

    status: int
    out: bytes
    err: str


@pytest.fixture(name="run")
def _run(capfdbinary: pytest.CaptureFixture[bytes]):  # type: ignore[no-untyped-def]
    def run(*arguments: object) -> Ended:
        capfdbinary.readouterr()
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as end:
            assert isinstance(end.code, int)  # noqa: PT017
            status = end.code
        captured = capfdbinary.readouterr()
        return Ended(status, captured.out, captured.err.decode())

    return run


@pytest.fixture(name="answer")
def _answer(tmp_path: Path) -> Path:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"id": NVIDIA.id, "assignment": NVIDIA.label}))
    return path


@pytest.fixture(name="commands")
def _commands(tmp_path: Path, answer: Path) -> dict[str, list[object]]:
    """Every command with `-o FILE`, but for that."""
    text = tmp_path / "function.txt"
    text.write_text(NVIDIA.normalized)
    run = tmp_path / "run"
    evaluate = ["--model", "linear-scan", "--limit", "1", "--arch", "sm_80"]
    assert main(["evaluate", *evaluate, "--output-path", str(run)]) == 0
    return {
        "allocate": ["allocate", "--model", "linear-scan", NVIDIA.id],
        "bound": ["bound", NVIDIA.id, "--no-solver"],
        "lower": ["lower", NVIDIA.id, answer],
        "report": ["report", run],
        "show": ["show", NVIDIA.id, answer],
    }


NAMES = ("allocate", "bound", "lower", "report", "show")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_standard_output_gets_what_a_file_gets(  # type: ignore[no-untyped-def]
    run, commands: dict[str, list[object]], tmp_path: Path, name: str, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    suffix = ".png" if name == "show" else ".out"
    file, link, pipe = (tmp_path / f"{each}{suffix}" for each in ("file", "link", "pipe"))
    link.symlink_to(f"target{suffix}")
    os.mkfifo(pipe)
    assert run(*commands[name], "-o", file).status == 0
    expected = file.read_bytes()
    assert expected
    status, out, err = run(*commands[name], "-o", "-")
    assert (status, out) == (0, expected), err
    assert not Path("-").exists()
    assert "wrote" not in err
    assert run(*commands[name], "-o", link).status == 0
    assert link.is_symlink()
    assert (tmp_path / f"target{suffix}").read_bytes() == expected
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_bytes()))
    reader.start()
    assert run(*commands[name], "-o", pipe).status == 0
    reader.join()
    assert found == [expected]
    assert pipe.is_fifo()


@pytest.mark.parametrize("name", ["bound", "lower"])
def test_two_things_for_standard_output(  # type: ignore[no-untyped-def]
    run, commands: dict[str, list[object]], name: str
) -> None:
    status, out, err = run(*commands[name], "-o", "-", "--json")
    assert (status, out, err.count("\n")) == (2, b"", 1)
    assert "-o - and --json both ask for standard output" in err


def test_a_file_that_is_named_like_standard_output(  # type: ignore[no-untyped-def]
    run, commands: dict[str, list[object]], tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*commands["allocate"], "-o", "./-").out == b""
    assert Path("./-").is_file()


@pytest.mark.parametrize("name", NAMES)
def test_a_folder_in_place_of_a_file(  # type: ignore[no-untyped-def]
    run, commands: dict[str, list[object]], tmp_path: Path, name: str
) -> None:
    status, out, err = run(*commands[name], "-o", tmp_path)
    assert (status, out, err.count("\n")) == (2, b"", 1)
    assert f"expected a file, {tmp_path} is a folder" in err
    status, out, err = run(*commands[name], "-o", tmp_path / ("n" * 300))
    assert (status, out, err.count("\n")) == (2, b"", 1)
    assert "File name too long" in err


def test_names_and_text_of_normalize(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    file = tmp_path / "kernel.mir"
    file.write_text(load_raw_row("mini", AMD.id).content)
    command = ["normalize", file, "--arch", "gfx942"]
    text, names = tmp_path / "text", tmp_path / "map.json"
    assert run(*command, "-o", text, "--map", names).status == 0
    assert run(*command, "-o", "-").out == text.read_bytes()
    assert run(*command, "-o", text, "--map", "-").out == names.read_bytes()
    for two in (["--map", "-"], ["-o", "-", "--map", "-"], ["-o", text, "--map", text]):
        status, out, err = run(*command, *two)
        assert (status, out, err.count("\n")) == (2, b"", 1)
        assert "go to one place" in err


def test_assembly_is_what_a_stream_gets(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    try:
        find_llc()
    except InputError:
        pytest.skip("needs llc of LLVM 22")
    answer = tmp_path / "answer.json"
    answer.write_text(json.dumps({"id": AMD.id, "assignment": AMD.label}))
    assert run("lower", AMD.id, answer, "-o", tmp_path / "a.s").status == 0
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
def test_a_file_in_place_of_a_folder(  # type: ignore[no-untyped-def]
    run, tmp_path: Path, name: str, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("file").write_text("kept")
    Path("link").symlink_to("file")
    for place in ("file", "link", "pipe", "/dev/null"):
        status, out, err = run(name, *FOLDERS[name], place)
        assert (status, out, err.count("\n")) == (2, b"", 1)
        assert f"expected a folder, {place} is a file" in err
    assert Path("file").read_text() == "kept"
    status, out, err = run(name, *FOLDERS[name], "-")
    assert (status, out, err.count("\n")) == (2, b"", 1)
    assert "expected a folder, - stands for standard output" in err


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
