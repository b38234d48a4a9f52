"""Builds on a Dask cluster, whose workers may be killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from dataset_builders.building import fingerprint
from tests.command_line import CommandLine, Printed
from tests.dataset_builders.fake_build import results_of
from tests.dataset_builders.fake_compilers import compile_but
from tests.dataset_builders.test_build_faults import LIMIT, POINTS, ROOT, content, fakes, finished
from tests.dataset_builders.test_build_faults import run as run_here

pytestmark = pytest.mark.slow


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
    run_here(output)
    return output


@pytest.fixture
def build(scheduler: str, tmp_path: Path, run: CommandLine) -> Callable[..., Printed]:
    """What the command prints for a build on the cluster in which a point fails in a way."""

    def build(how: str, *options: str, status: int = 0) -> Printed:
        hows = {POINTS[3].key: how}
        words = ("--limit", LIMIT, "--output", tmp_path / "dataset", "--scheduler", scheduler)
        with fakes(partial(compile_but, hows=hows, marker=str(tmp_path / "marker"))):
            return run(
                "build", "--sweep", "small", "--arch", "gfx942", *words, *options, status=status
            )

    return build


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["kill the worker once", "die once"])
def test_the_same_bytes(
    how: str, build: Callable[..., Printed], local: Path, tmp_path: Path
) -> None:
    said = build(how).err
    assert list(tmp_path.glob("marker-*"))
    assert f"{LIMIT} compiled, 0 resumed" in said
    assert content(tmp_path / "dataset") == content(local)


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ("kill the worker", "compiler-crashed"),
        pytest.param("hang", "timeout", marks=pytest.mark.exhaustive),
    ],
)
def test_points_that_fail_are_rejected_alone(
    how: str, kind: str, build: Callable[..., Printed], local: Path, tmp_path: Path
) -> None:
    said = build(how, "--time-limit", "5")
    assert f"{LIMIT} compiled, 0 resumed" in said.err
    assert f"rejected: {kind} 1\n" in said.out
    found, wanted = (results_of(folder) for folder in (tmp_path / "dataset", local))
    *_, (rejected_as, _reason) = found.pop(POINTS[3].key)
    assert rejected_as == kind
    del wanted[POINTS[3].key]
    assert found == wanted
    manifests = (folder / "manifest.json" for folder in (tmp_path / "dataset", local))
    assert len({path.read_bytes() for path in manifests}) == 1


def test_workers_of_another_version_are_refused(
    build: Callable[..., Printed], scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fingerprint, "version", lambda _package: "0")
    said = build("", status=2).err
    assert f"build: {scheduler}: the worker tcp://" in said
    assert "has another" in said
    assert "versions of triton" in said
    assert len(said.splitlines()) == 1
    assert finished(tmp_path / "dataset") == 0
