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
from tests.dataset_builders.fake_build import results_of, use_fakes
from tests.dataset_builders.fake_compilers import compile_but, compile_fake, is_rejected
from verilocc_bench.cli import main

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
LIMIT = 24
POINTS = sweep_named("small").points(["gfx942"])[:LIMIT]


PROGRAM = "from tests.dataset_builders.fake_build import run; run()"


def command(
    output: Path, *options: str, seconds: float = 0.01, most_bytes: int = 0, jobs: int = 2
) -> list[str]:
    arguments = [str(seconds), str(most_bytes), "--output", str(output), "--limit", str(LIMIT)]
    return [sys.executable, "-c", PROGRAM, *arguments, "--jobs", str(jobs), *options]


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


def refused(output: Path, *options: str, most_bytes: int = 0) -> str:
    """Standard error of a build, in a process of its own, that ends with status 2."""
    done = subprocess.run(
        command(output, *options, most_bytes=most_bytes, jobs=1),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


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
    number: signal.Signals, whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = tmp_path / "dataset"
    chance = random.Random(int(number))
    for _ in range(2 if number == signal.SIGKILL else 1):
        process = subprocess.Popen(
            command(output, seconds=0.1),
            cwd=ROOT,
            stderr=subprocess.PIPE,
        )
        least = min(finished(output) + chance.randrange(1, 6), LIMIT - 1)
        while finished(output) < least and process.poll() is None:
            time.sleep(0.02)
        time.sleep(chance.random() / 4)
        process.send_signal(number)
        words = process.communicate()[1].decode()
        assert "Traceback" not in words
        assert process.returncode in (0, -number if number == signal.SIGKILL else 130)
        assert finished(output) >= least or process.returncode == 0
    words = run(output)
    assert "resumed" in words or "nothing to do" in words
    if "resumed" in words:
        assert f"in Triton ({0.25 * sum(not is_rejected(p) for p in POINTS):.1f} s)" in words
    assert content(output) == content(whole)


@pytest.mark.parametrize("limit", [300, 3_000])
def test_files_that_may_not_grow(limit: int, whole: Path, tmp_path: Path) -> None:
    """A limit on the size of files: none is finished, or all but the dataset's own."""
    output = tmp_path / "dataset"

    words = refused(output, most_bytes=limit)
    lines = [line for line in words.splitlines() if line.startswith("verilocc-bench build: ")]
    assert len(lines) == 1
    assert f"{output}/.work/" in lines[0]
    assert lines[0].endswith("cannot be written: File too large")
    done = finished(output) if (output / ".work/fingerprint.json").exists() else 0
    assert done == (0 if limit == 300 else LIMIT)
    assert f" {done} resumed" in run(output)
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
def test_no_scheduler_there(address: str, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
    words = refused(tmp_path / "dataset", "--scheduler", address)
    assert words.startswith(f"verilocc-bench build: {address}: no Dask scheduler answers")
    assert len(words.splitlines()) == 1


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
