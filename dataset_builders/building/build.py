"""Builds a dataset: every point of a sweep compiled, labelled, verified, written.

Work is spread over processes; each finished point goes to the journal at
once, and the Parquet files are written from it in the order of the sweep. So
the bytes depend on neither the number of processes nor on interruptions.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dataset_builders.building.journal import Journal
from dataset_builders.compilers.built_kernel import Timings
from dataset_builders.compilers.compile import build_kernel
from dataset_builders.compilers.llvm import ALLOCATION_OPTIONS, LLVMCompiler
from dataset_builders.compilers.triton_compiler import kernel_source_hash
from dataset_builders.release.writer import Summary, write_dataset
from dataset_builders.sweeps import Sweep, SweepPoint
from verilocc_bench.cuda_tools import CUDA_OPTIONS, CUDA_TOOLS, tool_version
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import read_json
from verilocc_bench.ir.text import FORMAT_LINE
from verilocc_bench.targets import get_target

__all__ = ["BuildReport", "build_dataset"]

WORK_FOLDER = ".work"
MANIFEST = "manifest.json"
DATASET_PARTS = ("data", "split", "raw", "README.md", "rejected.jsonl")
"""What a dataset folder holds besides its manifest."""


@dataclass(slots=True)
class BuildReport:
    """What a build did; `summary` is None where the dataset was complete already."""

    output: Path
    summary: Summary | None
    compiled: int = 0
    resumed: int = 0
    timings: Timings = field(default_factory=Timings)
    wall_seconds: float = 0.0


def build_dataset(
    sweep: Sweep,
    archs: Sequence[str] | None,
    output: Path,
    *,
    limit: int | None = None,
    jobs: int = 1,
    progress: bool = True,
) -> BuildReport:
    """Builds the first `limit` points of a sweep into the folder `output`.

    A build that was interrupted goes on; one that is complete is left alone.
    Raises InputError where the folder holds something else.
    """
    points = sweep.points(archs)[:limit]
    if not points:
        raise InputError(f"the sweep {sweep.name!r} has no point for these architectures")
    manifest = {
        "sweep": sweep.name,
        "archs": sorted({point.arch for point in points}),
        "points": len(points),
        **_fingerprint(points),
    }
    if _is_complete(output, manifest):
        return BuildReport(output, None)
    started = time.perf_counter()
    with Journal(output / WORK_FOLDER, _fingerprint(points)) as journal:
        pending = [point for point in points if not journal.has(point.key)]
        report = BuildReport(output, None, resumed=len(points) - len(pending))
        bar = tqdm(
            total=len(points),
            initial=report.resumed,
            unit="kernel",
            desc="build",
            disable=None if progress else True,
            smoothing=0.05,
        )
        with bar:
            for timings in _compile_all(pending, journal, jobs):
                report.compiled += 1
                report.timings.triton_seconds += timings.triton_seconds
                report.timings.compiler_seconds += timings.compiler_seconds
                report.timings.own_seconds += timings.own_seconds
                bar.update()
        staging = journal.folder / "dataset"
        if staging.exists():
            shutil.rmtree(staging)
        report.summary = write_dataset(points, journal, staging, manifest)
        _install(staging, output)
        journal.remove()
    report.wall_seconds = time.perf_counter() - started
    return report


def _fingerprint(points: Sequence[SweepPoint]) -> dict[str, Any]:
    """What decides the content of every row beside its point."""
    sources = {point.specification.module: kernel_source_hash(point) for point in points}
    versions = {name: version(name) for name in ("triton", "pyarrow", "verilocc-bench")}
    flags: dict[str, list[str]] = {}
    vendors = {get_target(point.arch).vendor for point in points}
    if "amd" in vendors:
        versions["llvmlite"] = version("llvmlite")
        flags |= {name: list(options) for name, options in ALLOCATION_OPTIONS.items()}
    if "nvidia" in vendors:
        versions |= {tool: tool_version(tool) for tool in CUDA_TOOLS}
        flags |= {name: list(options) for name, options in CUDA_OPTIONS.items()}
    return {
        "format": FORMAT_LINE,
        "versions": versions,
        "flags": flags,
        "kernel_sources": dict(sorted(sources.items())),
    }


def _is_complete(output: Path, manifest: dict[str, Any]) -> bool:
    path = output / MANIFEST
    if path.exists():
        found = read_json(path)
        changed = [key for key in manifest if found.get(key) != manifest[key]]
        if changed:
            raise InputError(
                f"the folder holds a finished build with another {', '.join(changed)}; "
                "name another folder",
                source=output,
            )
        # A build that was killed after its last file leaves this behind.
        shutil.rmtree(output / WORK_FOLDER, ignore_errors=True)
        return True
    if output.exists() and not output.is_dir():
        raise InputError("expected a folder", source=output)
    if output.exists() and any(p.name != WORK_FOLDER for p in output.iterdir()):
        strangers = {p.name for p in output.iterdir()} - {WORK_FOLDER, *DATASET_PARTS}
        if strangers or not (output / WORK_FOLDER).exists():
            raise InputError("the folder is not empty and holds no unfinished build", source=output)
    return False


def _install(staging: Path, output: Path) -> None:
    """Moves a dataset from the working folder into place, the manifest last.

    Only whole parts ever stand in `output`; killed in between, the next run
    replaces them all.
    """
    for name in DATASET_PARTS:
        target = output / name
        if target.is_dir():
            shutil.rmtree(target)
        else:
            target.unlink(missing_ok=True)
        if (staging / name).exists():
            (staging / name).rename(target)
    (staging / MANIFEST).replace(output / MANIFEST)


def _compile_all(points: Sequence[SweepPoint], journal: Journal, jobs: int) -> Iterator[Timings]:
    """Compiles the points into the journal, and yields once for each that is done.

    A process that dies takes the whole pool along. The points that were then
    under way are tried once more, each alone: the one that kills its process
    again is rejected.
    """
    suspects: list[SweepPoint] = []
    remaining = list(points)
    while remaining:
        survivors = yield from _run_pool(remaining, journal, jobs)
        suspects += survivors[: 2 * jobs]
        remaining = survivors[2 * jobs :]
    for point in suspects:
        left = yield from _run_pool([point], journal, 1)
        if left:
            journal.store(
                point.key, RejectedKernel("compiler-crashed", "the compiling process died twice")
            )
            yield Timings()


def _run_pool(
    points: Sequence[SweepPoint], journal: Journal, jobs: int
) -> Generator[Timings, None, list[SweepPoint]]:
    """Yields for each point that is done; returns those left when the pool broke."""
    context = multiprocessing.get_context("spawn")
    queue = list(reversed(points))
    under_way: dict[Future[Timings], SweepPoint] = {}
    with ProcessPoolExecutor(jobs, context, _start_worker, (os.getpid(),)) as pool:
        try:
            while queue or under_way:
                while queue and len(under_way) < 2 * jobs:
                    point = queue.pop()
                    under_way[pool.submit(_compile_one, point, journal.folder)] = point
                done, _ = wait(under_way, return_when=FIRST_COMPLETED)
                for future in done:
                    timings = future.result()
                    del under_way[future]
                    yield timings
        except BrokenProcessPool:
            lost = [point for point in under_way.values() if not journal.has(point.key)]
            return lost + queue[::-1]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return []


_llvm: LLVMCompiler | None = None
_cache: tempfile.TemporaryDirectory[str] | None = None


def _start_worker(parent: int) -> None:
    global _llvm, _cache  # noqa: PLW0603  one set of compilers a process
    _llvm = LLVMCompiler()
    _cache = tempfile.TemporaryDirectory(prefix="verilocc-bench-triton-")
    atexit.register(_stop_worker)
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()


def _stop_worker() -> None:
    if _llvm is not None:
        _llvm.__exit__(None, None, None)
    if _cache is not None:
        _cache.cleanup()


def _watch_parent(parent: int) -> None:
    """Ends this process when its parent was killed: nobody would collect its work."""
    while os.getppid() == parent:
        time.sleep(0.5)
    _stop_worker()
    os._exit(1)


def _compile_one(point: SweepPoint, folder: Path) -> Timings:
    assert _llvm is not None
    assert _cache is not None
    journal = Journal(folder, {})
    try:
        built = build_kernel(point, _llvm, Path(_cache.name))
    except RejectedKernel as rejection:
        journal.store(point.key, rejection)
        return Timings()
    journal.store(point.key, built)
    return built.timings
