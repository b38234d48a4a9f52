"""Cases that run kernels in Triton's interpreter, in a process of their own.

Triton decides when it is imported whether `@triton.jit` compiles or interprets,
and cannot be asked again. So `run_cases` starts a test module as a program
under TRITON_INTERPRET=1, the module's main calls `print_outcomes`, and each
test looks at its case's outcome. The tests' own process never has the variable.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from dataset_builders.kernels.specifications import KERNELS, ParameterValue
from tests.dataset_builders.interpreter import kernels_run, run_kernel
from verilocc_bench.references import Comparison, Scalar, compare, launch_for

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with changes of its default parameters, in a problem of so many tiles."""

    kernel: str
    changes: dict[str, ParameterValue] = field(default_factory=dict)
    tiles: int = 2

    def run(self) -> tuple[Comparison, ...]:
        """Interprets the kernel on the reference's launch and compares what it leaves."""
        parameters = dict(KERNELS[self.kernel].defaults) | self.changes
        launch = launch_for(self.kernel, parameters, tiles=self.tiles)
        memory = {name: buffer.initial.copy() for name, buffer in launch.buffers.items()}
        scalars = {a.name: a.value for a in launch.arguments if isinstance(a, Scalar)}
        run_kernel(self.kernel, launch.grid, self.changes, **memory, **scalars)
        return compare(launch, memory)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: its comparisons by buffer, or the traceback of its failure."""

    name: str
    kernels: list[str]
    comparisons: list[Comparison]
    failure: str = ""

    def problems(self) -> list[str]:
        """What is wrong, one line each; empty where the case passes."""
        if self.failure or not self.comparisons:
            return [self.failure or "nothing was compared"]
        return [str(comparison) for comparison in self.comparisons if not comparison.agrees]


def print_outcomes(cases: Mapping[str, Case]) -> None:
    """Runs every case and prints one line of JSON for each."""
    for name, case in cases.items():
        kernels_run.clear()
        comparisons: tuple[Comparison, ...] = ()
        failure = ""
        try:
            comparisons = case.run()
        except Exception:
            failure = traceback.format_exc()
        print(json.dumps(asdict(Outcome(name, sorted(kernels_run), [*comparisons], failure))))


def run_cases(module: str) -> dict[str, Outcome]:
    """Runs a test module as a program, with the interpreter on; its outcomes by case."""
    pytest.importorskip("triton", reason="triton is not installed")
    finished = subprocess.run(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    outcomes = [_outcome(json.loads(line)) for line in finished.stdout.splitlines()]
    return {outcome.name: outcome for outcome in outcomes}


def _outcome(record: dict[str, Any]) -> Outcome:
    comparisons = [Comparison(**c) for c in record.pop("comparisons")]
    return Outcome(comparisons=comparisons, **record)
