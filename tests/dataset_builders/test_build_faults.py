"""Builds that are killed, run out of disk, or lose their workers, with a compiler that is quick."""

from __future__ import annotations

import io
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from functools import partial
from pathlib import Path

import pytest

from dataset_builders.building import build
from dataset_builders.execution.tasks import Execution
from dataset_builders.journal.journal import decode_document
from dataset_builders.sweeps import sweep_named
from tests.command_line import CommandLine
from tests.dataset_builders.fake_build import results_of, use_fakes
from tests.dataset_builders.fake_compilers import compile_but, compile_fake, is_rejected
from verilocc_bench.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LIMIT = 24
POINTS = sweep_named("small").points(["gfx942"])[:LIMIT]


PROGRAM = "from tests.dataset_builders.fake_build import run; run()"


def command(output: Path, seconds: float, most_bytes: int, jobs: int) -> list[str]:
    arguments = [str(seconds), str(most_bytes), "--output", str(output), "--limit", str(LIMIT)]
    return [sys.executable, "-c", PROGRAM, *arguments, "--jobs", str(jobs)]


@contextmanager
def fakes(compiler: build.PointCompiler) -> Iterator[None]:
    """Builds in this process compile so, and write plainly."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("write_dataset", "build_dataset"):
            patch.setattr(build, name, getattr(build, name))  # they come back
        use_fakes(compiler)
        yield


def run(output: Path) -> str:
    """Standard error of a build, in this process, that succeeds."""
    arguments = ["--output", str(output), "--limit", str(LIMIT), "--jobs", "1"]
    compiler = partial(compile_fake, seconds=0.01)
    with fakes(compiler), redirect_stderr(io.StringIO()) as said:
        assert main(["build", "--sweep", "small", "--arch", "gfx942", *arguments]) == 0
    assert "Traceback" not in said.getvalue()
    return said.getvalue()


def content(output: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in output.iterdir()}


def finished(output: Path) -> int:
    """How many points are in a build's journal."""
    return len(list((output / ".work").glob("*.json.gz")))


@pytest.fixture(name="whole", scope="module")
def _whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("whole") / "dataset"
    words = run(output)
    rejected = sum(is_rejected(point) for point in POINTS)
    assert words.startswith(f"{LIMIT} compiled, 0 resumed, ")
    # A quarter of a second of Triton and half a second of the vendor's for each.
    assert f"in Triton ({0.25 * (LIMIT - rejected):.1f} s)" in words
    assert f"vendors' compilers ({0.5 * (LIMIT - rejected):.1f} s)" in words
    assert set(results_of(output)) == {point.key for point in POINTS}
    return output


@pytest.mark.parametrize(
    "number",
    [signal.SIGKILL, signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.exhaustive)],
)
def test_stopped_at_any_moment_it_goes_on(
    number: signal.Signals, whole: Path, tmp_path: Path
) -> None:
    output = tmp_path / "dataset"
    chance = random.Random(int(number))
    for _ in range(2 if number == signal.SIGKILL else 1):
        words = command(output, 0.1, 0, jobs=2)
        process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.PIPE)
        least = min(finished(output) + chance.randrange(1, 6), LIMIT - 1)
        while finished(output) < least and process.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.random() / 4)
        process.send_signal(number)
        assert b"Traceback" not in process.communicate()[1]
        assert process.returncode in (0, -number if number == signal.SIGKILL else 130)
        assert finished(output) >= least or process.returncode == 0
    said = run(output)
    assert "resumed" in said or "nothing to do" in said
    if "resumed" in said:
        assert f"in Triton ({0.25 * sum(not is_rejected(p) for p in POINTS):.1f} s)" in said
    assert content(output) == content(whole)


@pytest.mark.parametrize("limit", [300, 3_000])
def test_files_that_may_not_grow(limit: int, whole: Path, tmp_path: Path) -> None:
    """A limit on the size of files: none is finished, or all but the dataset's own."""
    output = tmp_path / "dataset"
    words = command(output, 0.01, limit, jobs=1)
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("verilocc-bench build: ")]
    assert len(lines) == 1
    assert f"{output}/.work/" in lines[0]
    assert lines[0].endswith("cannot be written: File too large")
    kept = finished(output) if (output / ".work/fingerprint.json").exists() else 0
    assert kept == (0 if limit == 300 else LIMIT)
    assert f" {kept} resumed" in run(output)
    assert content(output) == content(whole)


def test_points_that_fail_are_rejected_alone(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "write_dataset", lambda *_, **__: 1 // 0)
    output, reasons = (
        tmp_path / "dataset",
        {
            "die": ["compiler-crashed", "the compiling process died twice"],
            "hang": ["timeout", "the compiling process was not done after 5 seconds"],
            "memory": ["compiler-crashed", "the compiling process ran out of memory twice"],
        },
    )
    victims = [point.key for point in POINTS[3:] if not is_rejected(point)]
    hows = dict(zip(victims, (*reasons, "die once"), strict=False))
    with pytest.raises(ZeroDivisionError):
        build.build_dataset(
            sweep_named("small"),
            ["gfx942"],
            output,
            limit=LIMIT,
            execution=Execution(2, time_limit_seconds=5),
            progress=False,
            compiler=partial(compile_but, hows=hows, marker=str(tmp_path / "marker")),
        )
    assert len(list(tmp_path.glob("marker-*"))) == 1
    for key, how in hows.items():
        found = decode_document((output / f".work/{key}.json.gz").read_bytes())
        assert found.get("rejection") == reasons.get(how)
    # They are tried again when the build goes on.
    assert f"{len(reasons)} compiled, {LIMIT - len(reasons)} resumed" in run(output)
    assert content(output) == content(whole)


def test_a_bug_costs_no_other_point(whole: Path, tmp_path: Path) -> None:
    sweep, output = sweep_named("small"), tmp_path / "dataset"
    compiler = partial(compile_but, hows={POINTS[3].key: "bug"}, marker="")
    with pytest.raises(ZeroDivisionError) as raised:
        build.build_dataset(sweep, ["gfx942"], output, limit=LIMIT, compiler=compiler)
    assert POINTS[3].kernel in raised.value.__notes__[0]
    assert finished(output) == LIMIT - 1
    assert f"1 compiled, {LIMIT - 1} resumed" in run(output)
    assert content(output) == content(whole)


@pytest.mark.parametrize(
    "address", ["tcp://127.0.0.1:1", pytest.param("nonsense", marks=pytest.mark.exhaustive)]
)
def test_no_scheduler_there(
    address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    words = ("build", "--sweep", "small", "--output", tmp_path / "dataset", "--scheduler", address)
    with fakes(compile_fake):
        CommandLine(capsys).refuses(words, f"build: {address}: no Dask scheduler answers")


def test_dask_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from verilocc_bench.errors import MissingExtraError

    monkeypatch.setitem(sys.modules, "distributed", None)
    execution = Execution(scheduler="tcp://127.0.0.1:1")
    with pytest.raises(MissingExtraError, match=r"verilocc-bench\[dask\]"):
        build.build_dataset(
            sweep_named("small"),
            None,
            tmp_path,
            limit=1,
            execution=execution,
            compiler=compile_fake,
        )
