"""Builds a dataset: compiles, labels, verifies and writes every point of a sweep.

Processes here or on a cluster do the work, and return documents. Each document
goes to the journal at once, and the dataset is written from the journal in the
order of the sweep. So the bytes do not depend on the place of the work, on the
number of processes, or on interruptions.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from tqdm import tqdm

from dataset_builders.building.compile_point import compile_point
from dataset_builders.building.fingerprint import (
    BuildPoint,
    check_compilers,
    fingerprint,
    representatives,
    working_agreement,
)
from dataset_builders.building.install import (
    MANIFEST,
    WORK_FOLDER,
    install,
    is_complete,
    read_manifest,
)
from dataset_builders.compilers.built_kernel import Timings
from dataset_builders.execution.storage import storage_errors_named
from dataset_builders.execution.tasks import Execution, Lost, run_tasks
from dataset_builders.journal.journal import (
    Journal,
    decode_document,
    encode_document,
    result_document,
    result_from_document,
)
from dataset_builders.release.writer import ReleaseSummary, write_dataset
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import read_data

PointCompiler = Callable[[Any], bytes]
"""Makes the encoded journal document of a point; see `compile_point`."""


_LOST = "the compiling process"
"""What the reason of a rejection begins with where no compiler gave it."""


class BuildSweep(Protocol):
    """A named list of points: a sweep of our own kernels, or the kernels of experts."""

    @property
    def name(self) -> str:
        """The name in the manifest."""
        ...

    def points(self, archs: Sequence[str] | None = None, /) -> Sequence[BuildPoint]:
        """The points for these architectures, or for all, each once."""
        ...


@dataclass(slots=True)
class BuildReport:
    """The results of a build; `summary` is None if the dataset was complete before.

    `timings` sum over all kernels, earlier runs included.
    `compile_seconds` (wall clock) and `coordinator_seconds` (processor time of
    this process) cover the compiling of this run.
    """

    output: Path
    summary: ReleaseSummary | None
    compiled: int = 0
    resumed: int = 0
    timings: Timings = field(default_factory=Timings)
    wall_seconds: float = 0.0
    compile_seconds: float = 0.0
    coordinator_seconds: float = 0.0


def build_dataset(
    sweep: BuildSweep,
    archs: Sequence[str] | None,
    output: Path,
    *,
    limit: int | None = None,
    every: int = 1,
    execution: Execution | None = None,
    progress: bool = True,
    compiler: PointCompiler = compile_point,
    beside: Path | None = None,
) -> BuildReport:
    """Builds a sweep into the folder `output`: every `every`-th point, the first `limit` of these.

    `every` counts in each architecture and family by itself.
    `beside` is a dataset folder whose functions fresh kernels, or those of experts,
    must not be near. An interrupted build goes on; a complete one is left alone. Raises InputError
    if the folder holds something else, or if a disk is full: finished work is
    kept.
    """
    drawn = sampled(sweep.points(archs), every)
    points = drawn[:limit]
    if beside is not None:
        _check_whole(beside)
    if not points:
        raise InputError(f"the sweep {sweep.name!r} has no point for these architectures")
    check_compilers(points)
    made_by = fingerprint(points)
    manifest = {
        "sweep": sweep.name,
        "archs": sorted({point.arch for point in drawn}),
        "points": len(points),
        **({} if every == 1 else {"every": every}),
        **({} if len(points) == len(drawn) else {"limit": limit}),
        **made_by,
        **(
            {}
            if beside is None
            else {"beside": hashlib.sha256(read_data(beside / MANIFEST)).hexdigest()}
        ),
    }
    if is_complete(output, manifest):
        return BuildReport(output, None)
    execution = replace(
        execution or Execution(), agreement=partial(working_agreement, representatives(points))
    )
    started = time.perf_counter()
    report = BuildReport(output, None)
    with storage_errors_named(output), Journal(output / WORK_FOLDER, made_by) as journal:
        _compile_all(points, journal, execution, compiler, report, progress=progress)
        staging = journal.folder / "dataset"
        if staging.exists():
            shutil.rmtree(staging)
        report.summary = write_dataset(
            points,
            journal,
            staging,
            manifest,
            execution=execution,
            progress=progress,
            beside=beside,
        )
        install(staging, output)
        journal.remove()
    report.wall_seconds = time.perf_counter() - started
    return report


def sampled(points: Sequence[BuildPoint], every: int) -> list[BuildPoint]:
    """Every `every`-th point of each architecture and family, the first of each among them."""
    seen, kept = Counter[tuple[str, str]](), []
    for point in points:
        lane = point.arch, point.family
        if seen[lane] % every == 0:
            kept.append(point)
        seen[lane] += 1
    return kept


def _check_whole(dataset: Path) -> None:
    """Raises InputError if a folder lacks rows that its manifest lists."""
    if next(dataset.glob("*/*/*/*.parquet"), None) is None:
        raise InputError("holds no rows of a dataset", source=dataset)
    for name in read_manifest(dataset).get("files", ()):
        if name.startswith(("data/", "split/")) and not (dataset / name).is_file():
            raise InputError(f"the file is missing: {MANIFEST} lists it", source=dataset / name)


def _compile_all(
    points: Sequence[BuildPoint],
    journal: Journal,
    execution: Execution,
    compiler: PointCompiler,
    report: BuildReport,
    *,
    progress: bool,
) -> None:
    """Compiles the points that the journal lacks, and sums up the times of all points.

    Points whose process was lost are tried again: another time limit may do.
    """
    pending: list[BuildPoint] = []
    for point in points:
        known = journal.load(point.key) if journal.has(point.key) else None
        if known is None or (known.rejection and known.rejection[1].startswith(_LOST)):
            pending.append(point)
        else:
            _add(report.timings, known.timings)
    report.compiled, report.resumed = len(pending), len(points) - len(pending)
    if pending:
        started, computed = time.perf_counter(), time.process_time()
        bar = tqdm(
            total=len(points),
            initial=report.resumed,
            unit="kernel",
            desc="build",
            disable=None if progress else True,
        )
        rejected = 0
        with bar, closing(run_tasks(compiler, pending, execution)) as outcomes:
            for point, data in outcomes:
                if isinstance(data, Lost):
                    kind = "compiler-crashed" if data.kind == "crashed" else data.kind
                    lost = RejectedKernel(kind, f"{_LOST} {data.reason}")
                    data = encode_document(result_document(lost))  # noqa: PLW2901
                journal.store_encoded(point.key, data)
                result = result_from_document(decode_document(data))
                _add(report.timings, result.timings)
                rejected += result.rejection is not None
                bar.set_postfix({"rejected": rejected} if rejected else {}, refresh=False)
                bar.update()
        report.compile_seconds = time.perf_counter() - started
        report.coordinator_seconds = time.process_time() - computed


def _add(total: Timings, timings: Timings | None) -> None:
    if timings is not None:
        total.triton_seconds += timings.triton_seconds
        total.compiler_seconds += timings.compiler_seconds
        total.own_seconds += timings.own_seconds
