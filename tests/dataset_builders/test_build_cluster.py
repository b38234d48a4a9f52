"""Builds on a Dask cluster, whose workers may be killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dataset_builders.test_build_faults import LIMIT, POINTS, ROOT, content, finished, run

pytestmark = pytest.mark.slow

DRIVER = """
import sys
from functools import partial
from tests.dataset_builders import fake_build, fake_compilers
if __name__ == "__main__":
    key, how, marker = sys.argv[1:4]
    if how == "other version":
        from dataset_builders.building import fingerprint
        fingerprint.version = lambda package: "0"
    fake_build.use_fakes(partial(fake_compilers.compile_but, hows={key: how}, marker=marker))
    sys.argv[1:4] = ["build", "--sweep", "small", "--arch", "gfx942"]
    sys.exit(fake_build.main())
"""


@pytest.fixture(name="scheduler", scope="module")
def _scheduler() -> Iterator[str]:
    cluster = subprocess.Popen(
        [sys.executable, "-m", "tests.dataset_builders.cluster_process"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert cluster.stdout is not None
    address = cluster.stdout.readline().strip()
    assert address.startswith("tcp://")
    yield address
    cluster.communicate(timeout=60)


@pytest.fixture(name="local", scope="module")
def _local(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("local") / "dataset"
    run(output)
    return output


def build_on(
    scheduler: str, output: Path, how: str, *options: str
) -> subprocess.CompletedProcess[str]:
    key, marker = POINTS[3].key, str(output.parent / "marker")
    arguments = [key, how, marker, "--output", str(output), "--limit", str(LIMIT)]
    return subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments, "--scheduler", scheduler, *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.parametrize(
    "how", ["kill the worker once", pytest.param("die once", marks=pytest.mark.exhaustive)]
)
def test_the_same_bytes(how: str, scheduler: str, local: Path, tmp_path: Path) -> None:
    done = build_on(scheduler, tmp_path / "dataset", how)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("marker-*"))
    assert f"{LIMIT} compiled, 0 resumed" in done.stderr
    assert content(tmp_path / "dataset") == content(local)


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("kill the worker", "compiler-crashed"),
        pytest.param("hang", "timeout", marks=pytest.mark.exhaustive),
    ],
)
def test_points_that_fail_are_rejected(how: str, kind: str, scheduler: str, tmp_path: Path) -> None:
    done = build_on(scheduler, tmp_path / kind, how, "--time-limit", "5")
    assert done.returncode == 0, done.stderr
    assert f"rejected: {kind} 1\n" in done.stdout


def test_workers_of_another_version_are_refused(scheduler: str, tmp_path: Path) -> None:
    done = build_on(scheduler, tmp_path / "dataset", "other version")
    assert done.returncode == 2
    assert f"build: {scheduler}: the worker tcp://" in done.stderr
    assert "has another" in done.stderr
    assert "versions of triton" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert finished(tmp_path / "dataset") == 0
