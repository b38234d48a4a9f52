"""`run` of a code object: a kernel of one's own."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import CommandLine
from tests.machine.assembly import ADD_ONE, assembled
from verilocc_bench import execution

pytestmark = pytest.mark.slow

INPUTS = np.arange(64, dtype=np.uint32)


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> tuple[Path, Path]:
    code, arrays = tmp_path / "kernel.o", tmp_path / "arguments.npz"
    code.write_bytes(assembled(ADD_ONE))
    np.savez(arrays, numbers=INPUTS, out=np.zeros(64, np.uint32), n=np.uint32(5))
    return code, arrays


def test_the_arrays_come_back(files: tuple[Path, Path], tmp_path: Path, run: CommandLine) -> None:
    code, arrays = files
    out = tmp_path / "after.npz"
    command = ["run", code, "--arguments", arrays, "--grid", "1"]
    document = run.json(*command, "-o", out)
    expected = hashlib.sha256((INPUTS + 5).tobytes()).hexdigest()[:16]
    assert [b["name"] for b in document["buffers"]] == ["numbers", "out"]
    assert [b["changed"] for b in document["buffers"]] == [False, True]
    assert document["buffers"][1]["sha256"] == expected
    with np.load(out) as after:
        assert (after["out"] == INPUTS + 5).all()
        first = out.read_bytes()
    run(*command, "-o", out)
    assert out.read_bytes() == first, "the same inputs give the same bytes"


def test_words_for_people(files: tuple[Path, Path], run: CommandLine) -> None:
    code, arrays = files
    said = run("run", code, "--arguments", arrays, "--grid", "1,1,1", "--fast").out
    assert "k: 9 wave instructions" in said
    assert "numbers uint32 [64]:" in said
    assert "as before" in said


def test_mistakes_are_told_in_one_line(
    files: tuple[Path, Path], tmp_path: Path, run: CommandLine
) -> None:
    code, arrays = files
    text = tmp_path / "text.npz"
    text.write_text("no arrays")
    array, small = tmp_path / "one.npy", tmp_path / "small.npz"
    np.save(array, INPUTS)
    np.savez(small, numbers=INPUTS[:8], out=np.zeros(64, np.uint32), n=np.uint32(5))
    for arguments, words in (
        ([code], "needs --arguments and --grid"),
        ([code, "--arguments", text, "--grid", "1"], "expected an .npz file"),
        ([code, "--arguments", small, "--grid", "1"], "outside every argument's memory"),
        ([code, "--arguments", array, "--grid", "1"], "by name, not one array"),
        ([code, "--arguments", arrays, "--grid", "1", "--trace", "4"], "--trace is for an id"),
        ([code, "--arguments", arrays, "--grid", str(1 << 36)], "fewer than 2^32 work-items"),
        (["fe33ea20e7c8cba7", "--grid", "1"], "--grid is for a code object"),
        (["fe33ea20e7c8cba7", "--wave", "1"], "--wave goes with --trace"),
        (["fe33ea20e7c8cba7", "--tiles", "33"], "expected at most 32"),
        (
            [code, "--arguments", arrays, "--grid", "1", "--function", "other"],
            "expected the name of one of the kernels k",
        ),
    ):
        run.refuses(["run", *arguments], words)


def test_the_call_from_python() -> None:
    done = execution.run(assembled(ADD_ONE), "k", [INPUTS, np.zeros(64, np.uint32), 7], (1,))
    assert done.buffers[1] is not None
    assert (done.buffers[1] == INPUTS + 7).all()
    assert done.buffers[2] is None
