"""Cases that run kernels in Triton's interpreter, in a process of their own.

Triton decides when it is imported whether `@triton.jit` compiles or interprets,
and cannot be asked again. So `interpreted` starts a test module as a program
under TRITON_INTERPRET=1, the module's main calls `answer_requests`, and each
test asks for its case's problems. The tests' own process never has the variable.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dataset_builders.kernels.specifications import KERNELS, ParameterValue
from tests.dataset_builders.interpreter import hasten, run_kernel
from verilocc_bench.references import Scalar, compare, launch_for

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel with changes of its default parameters, in a problem of so many tiles."""

    kernel: str
    changes: dict[str, ParameterValue] = field(default_factory=dict)
    tiles: int = 2

    def problems(self) -> list[str]:
        """What is wrong, one line each, or a traceback; empty where the case passes.

        Interprets the kernel on the reference's launch and compares what it leaves.
        """
        parameters = dict(KERNELS[self.kernel].defaults) | self.changes
        launch = launch_for(self.kernel, parameters, tiles=self.tiles)
        memory = {name: buffer.initial.copy() for name, buffer in launch.buffers.items()}
        scalars = {a.name: a.value for a in launch.arguments if isinstance(a, Scalar)}
        try:
            run_kernel(self.kernel, launch.grid, self.changes, **memory, **scalars)
            compared = compare(launch, memory)
        except Exception:
            return [traceback.format_exc()]
        wrong = [str(comparison) for comparison in compared if not comparison.agrees]
        return wrong if compared else ["nothing was compared"]


def answer_requests(cases: Mapping[str, Case]) -> None:
    """For each name of a case on standard input, prints the case's problems as a line of JSON."""
    sys.modules["torch"] = None  # type: ignore[assignment]  # Triton takes seconds to import it
    hasten()
    for line in sys.stdin:
        print(json.dumps(cases[line.strip()].problems()), flush=True)


@contextmanager
def interpreted(module: str) -> Iterator[Callable[[str], list[str]]]:
    """Runs a test module as a program, with the interpreter on: asks for a case's problems."""
    pytest.importorskip("triton", reason="triton is not installed")
    with subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        env=os.environ | {"TRITON_INTERPRET": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        requests, answers = program.stdin, program.stdout
        assert requests is not None
        assert answers is not None

        def problems(name: str) -> list[str]:
            print(name, file=requests, flush=True)
            found: list[str] = json.loads(answers.readline())
            return found

        yield problems
