"""How fast datasets are built: one worker, two, and a Dask cluster of two, on the same points.

    python benchmarks/building.py [--sweep S] [--arch A,…] [--limit N] [--workers N,…] [--json]

Each build compiles the same first points of a sweep into a folder of its own;
the release step is left out. `compilers` is the share of the work in Triton,
LLVM and ptxas; `coordinator` is the processor time of the coordinating process,
in milliseconds a kernel. The benchmark fails if the documents differ in more
than times.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tabulate import tabulate

from dataset_builders.building import build
from dataset_builders.execution.tasks import Execution
from dataset_builders.journal.journal import Journal
from dataset_builders.release.writer import ReleaseSummary
from dataset_builders.sweeps import sweep_named


@contextmanager
def cluster(workers: int) -> Iterator[str]:
    import dask
    from distributed import LocalCluster

    dask.config.set({"distributed.logging.distributed": "critical"})
    with LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
    ) as started:
        yield started.scheduler_address


def documents_only(
    points: Any, journal: Journal, output: Path, _manifest: Any, **_options: Any
) -> ReleaseSummary:
    """Replaces the release step: writes the results, without their times."""
    lines = []
    for point in points:
        document = journal.load_document(point.key)
        del document["timings"]
        lines.append(json.dumps(document) + "\n")
    output.mkdir()
    (output / "rows.jsonl").write_text("".join(lines))
    (output / "manifest.json").write_text("{}")
    return ReleaseSummary()


def measure(
    options: argparse.Namespace, name: str, execution: Execution
) -> tuple[dict[str, Any], bytes]:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder, "dataset")
        report = build.build_dataset(
            sweep_named(options.sweep),
            options.arch.split(","),
            output,
            limit=options.limit,
            execution=execution,
        )
        data = (output / "rows.jsonl").read_bytes()
    timings = report.timings
    compilers = timings.triton_seconds + timings.compiler_seconds
    return {
        "where": name,
        "kernels": report.compiled,
        "seconds": report.compile_seconds,
        "kernels/min": 60 * report.compiled / report.compile_seconds,
        "compilers": compilers / (compilers + timings.own_seconds),
        "coordinator ms/kernel": 1000 * report.coordinator_seconds / report.compiled,
    }, data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sweep", default="small")
    parser.add_argument("--arch", default="gfx90a,gfx942,sm_80")
    parser.add_argument("--limit", type=int, default=30)
    parser.add_argument("--workers", default="1,2")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    build.write_dataset = documents_only
    counts = [int(count) for count in options.workers.split(",")]
    runs = [measure(options, f"{n} here", Execution(n)) for n in counts]
    with cluster(counts[-1]) as address:
        execution = Execution(scheduler=address)
        runs.append(measure(options, f"{counts[-1]} on Dask", execution))
    if len({data for _, data in runs}) != 1:
        raise SystemExit("the results differ")
    rows = [row for row, _ in runs]
    if options.json:
        print(json.dumps({"cores": os.cpu_count(), "runs": rows}))
    else:
        print(tabulate(rows, headers="keys", floatfmt=".2f"))


if __name__ == "__main__":
    main()
