"""`verilocc-bench llc` in llc's place: the same files, with our registers where they are better."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_own_code import LLVM_IR
from tests.conftest import find_llc
from verilocc_bench.api import llc_in_a_build
from verilocc_bench.api.llc_in_a_build import parse_llc_command
from verilocc_bench.cli import main
from verilocc_bench.machine.execution import load_kernel

ROOT = Path(__file__).parents[2]
FLAGS = ["-mtriple=amdgcn-amd-amdhsa", "-mcpu=gfx942", "-O3"]
UNUSED = ("dispatch-ptr", "queue-ptr", "dispatch-id", "implicitarg-ptr")
# LLVM's own registers are the fewest there can be in such small kernels.
BETTER = ["--model", "graph-coloring", "--"]


@pytest.mark.parametrize(
    ("arguments", "source", "output", "reason"),
    [
        (["-mcpu=gfx942", "a.ll"], "a.ll", "a.s", None),
        (["-mcpu", "gfx90a", "-filetype=obj", "a.ll"], "a.ll", "a.o", None),
        (["--mcpu=gfx90a", "-o", "b.s", "-"], "-", "b.s", None),
        (["-mcpu=gfx90a", "-o=b.s"], "-", "b.s", None),
        (["-mcpu=gfx90a", "a.x"], "a.x", "a.x.s", None),
        (["-mcpu=gfx90a", "a.mir"], "a.mir", "a.s", "machine IR as the input"),
        (["-mcpu=gfx90a", "-x", "mir", "a"], "a", "a.s", "machine IR as the input"),
        (["-mcpu=gfx90a", "-O0", "a.ll"], "a.ll", "a.s", "the option -O0"),
        (["-mcpu=gfx90a", "-stop-after=greedy", "a.ll"], "a.ll", "a.s", "the option -stop-after"),
        (["-mcpu=gfx90a", "-filetype=null", "a.ll"], "a.ll", None, "-filetype=null"),
        (["a.ll"], "a.ll", "a.s", "no -mcpu"),
        (["-mcpu=sm_80", "a.ll"], "a.ll", "a.s", "llc has no sm_80"),
        (["-mcpu=gfx90a", "a.ll", "b.ll"], "a.ll", "a.s", "two inputs, a.ll and b.ll"),
    ],
)
def test_command_lines(
    arguments: list[str], source: str, output: str | None, reason: str | None
) -> None:
    command = parse_llc_command(arguments)
    assert (command.source, command.reason) == (source, reason)
    if output is not None:
        assert command.output_file == output


def test_other_targets_are_named() -> None:
    reason = parse_llc_command(["-mcpu=znver4", "a.ll"]).reason
    assert reason is not None
    assert "znver4" in reason


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    unused = " ".join(f'"amdgpu-no-{name}"' for name in UNUSED)
    text = LLVM_IR.replace("attributes #0 = {", f"attributes #0 = {{ {unused}")
    (tmp_path / "own.ll").write_text(text)
    return tmp_path / "own.ll"


def assembly_of(path: Path) -> list[str]:
    lines = path.read_text().splitlines()
    return [line for line in lines if not line.lstrip().startswith((";", ".ident"))]


@pytest.mark.usefixtures("llc", "source")
def test_what_is_not_better_is_llcs_own(
    tmp_path: Path, llc: object, capsys: pytest.CaptureFixture[str]
) -> None:
    path = find_llc()
    assert path is not None
    subprocess.run([path, *FLAGS, "own.ll", "-o", "llc.s"], check=True)
    assert main(["llc", *BETTER, *FLAGS, "own.ll", "-o", "ours.s"]) == 0
    words = capsys.readouterr().err
    assert words.count("not better by machine-code") == 2
    assert assembly_of(tmp_path / "ours.s") == assembly_of(tmp_path / "llc.s")


@pytest.mark.usefixtures("llc", "source")
def test_our_registers_in_an_object_file_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    monkeypatch.setattr(llc_in_a_build, "is_better", lambda *_: True)
    assert main(["llc", *BETTER, *FLAGS, "-filetype=obj", "own.ll"]) == 0
    words = capsys.readouterr().err
    assert re.search(r"scaled_sum: better by machine-code, \d+ -> \d+ vector registers", words)
    a, b = np.arange(256, dtype=np.float32), np.ones(256, np.float32)
    kernel = load_kernel((tmp_path / "own.o").read_bytes(), "scaled_sum")
    buffers = kernel.run([a, b, np.float32(2)], (1, 1, 1), block=(64, 1, 1)).buffers
    assert buffers[1] is not None
    assert np.array_equal(buffers[1], 2 * a + 1)


@pytest.mark.usefixtures("llc", "source")
def test_llcs_errors_and_flags_are_its_own(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["llc", "--quiet", *BETTER, "-mcpu=gfx942", "--no-such-flag", "own.ll"]) != 0
    assert "no-such-flag" in capfd.readouterr().err
    (tmp_path / "bad.ll").write_text("define nonsense")
    assert main(["llc", *BETTER, *FLAGS, "bad.ll"]) != 0
    found = capfd.readouterr().err
    assert "llc alone" in found
    assert "bad.ll:1:" in found
    assert main(["llc", *FLAGS, "-O0", "own.ll", "-o", "-"]) == 0
    out, err = capfd.readouterr()
    assert "scaled_sum:" in out
    assert "llc alone, because of the option -O0" in err


@pytest.mark.slow
@pytest.mark.usefixtures("llc")
def test_the_makefile_of_the_docs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "lowering.md").read_text()
    (makefile,) = re.findall(r"^```make\n(.*?)^```$", text, re.S | re.M)
    (tmp_path / "Makefile").write_text(makefile)
    (tmp_path / "own.ll").write_text(LLVM_IR)
    tools = tmp_path / "bin"
    tools.mkdir()
    program = tools / "verilocc-bench"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m verilocc_bench "$@"\n')
    program.chmod(0o755)
    make = shutil.which("make")
    assert make is not None
    environment = os.environ | {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
    }
    done = subprocess.run(
        [make, "own.o"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "verilocc-bench llc: scaled_sum:" in done.stderr
    assert (tmp_path / "own.o").read_bytes()[:4] == b"\x7fELF"
