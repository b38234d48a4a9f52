"""Measures a sample into a file of JSON lines; an interrupted run goes on with it."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.allocation_study.measuring import measure_kernel
from benchmarks.allocation_study.records import Measurement
from benchmarks.allocation_study.sample import (
    SampledKernel,
    digest,
    load_kernels,
    systematic_sample,
)
from dataset_builders.execution.tasks import Execution, Lost, run_tasks
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench import __version__
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json, read_text, write_atomically

_REPEATED = ("versions", "dataset")
"""The keys of a file's head that must be the same to go on with it."""


class Study:
    """A file's head (versions, dataset, machine, sample) and its measurements by id."""

    def __init__(self, head: Mapping[str, Any], measurements: Mapping[str, Measurement]) -> None:
        self.head, self.measurements = head, measurements


def measure(
    folder: Path, path: Path, per_cell: int, execution: Execution, splits: Sequence[str] = SPLITS
) -> Study:
    """Measures the kernels of the sample that `path` lacks.

    Raises InputError if another dataset or other versions began the file.
    """
    kernels = load_kernels(folder, splits)
    sample = systematic_sample(kernels, per_cell)
    packages = ("numpy", "numba", "ortools")
    head = {
        "versions": {
            "verilocc-bench": __version__,
            "python": platform.python_version(),
            **{name: version(name) for name in packages},
        },
        "dataset": {"kernels": len(kernels), "digest": digest(kernels)},
        "sample": {"kernels_per_cell": per_cell, "kernels": len(sample)},
        "machine": {"processor": _processor(), "cores": os.cpu_count()},
    }
    done = _resume(path, head)
    pending = [kernel for kernel in sample if kernel.row.id not in done]
    _work(pending, path, len(sample), execution)
    return read_study(path)


def read_study(path: Path) -> Study:
    """The content of a file. Raises InputError for a file that `measure` has not written."""
    head, *lines = read_text(path).splitlines()
    found = {}
    for number, line in enumerate(lines, start=2):
        try:
            measurement = Measurement.from_json(parse_json(line, path, number))
        except (TypeError, KeyError, ValueError):
            message = "expected a measurement of one kernel"
            raise InputError(message, source=path, line=number) from None
        found[measurement.id] = measurement
    document = parse_json(head, path, 1)
    if not isinstance(document, dict) or "versions" not in document:
        raise InputError("expected the head of a study", source=path, line=1)
    return Study(document, found)


def _work(pending: Sequence[SampledKernel], path: Path, total: int, execution: Execution) -> None:
    bar = tqdm(total=total, initial=total - len(pending), unit="kernel", disable=None)
    tasks = run_tasks(measure_kernel, pending, execution)
    with bar, path.open("a") as file, closing(tasks) as found:
        for kernel, outcome in found:
            measurement = _lost(kernel, outcome) if isinstance(outcome, Lost) else outcome
            file.write(json.dumps(measurement.to_json()) + "\n")
            file.flush()
            os.fsync(file.fileno())
            bar.update()


def _lost(kernel: SampledKernel, lost: Lost) -> Measurement:
    row = kernel.row
    return Measurement(
        row.id,
        kernel.split,
        row.arch,
        row.family,
        row.kernel,
        row.label_source,
        row.n_instructions,
        row.n_virtual_registers,
        lost=f"the process {lost.reason}",
    )


def _resume(path: Path, head: Mapping[str, Any]) -> set[str]:
    """The ids of the finished kernels; begins the file if there is none.

    A line that was cut off counts as never written.
    """
    first = json.dumps(head) + "\n"
    if not path.exists():
        write_atomically(path, first)
        return set()
    text = read_text(path)
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        print(f"{path}: its last line was cut off, and is measured again", file=sys.stderr)
        write_atomically(path, whole or first)
    study = read_study(path)
    for key in _REPEATED:
        if study.head.get(key) != json.loads(first)[key]:
            message = f"it was begun with other {key}: expected {head[key]}; name another file"
            raise InputError(message, source=path, line=1)
    return set(study.measurements)


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if path.exists():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
