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
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from numpy.typing import DTypeLike

from tests.dataset_builders.interpreter import Array, kernels_run

ROOT = Path(__file__).resolve().parents[2]
_PADDING_COLUMNS = 3


@dataclass(frozen=True, slots=True)
class Comparison:
    """The largest difference, relative to the largest value wanted, and what is allowed.

    The error is infinite where a result is not finite.
    """

    error: float
    tolerance: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a case: its comparisons by quantity, or the traceback of its failure."""

    name: str
    kernels: list[str]
    comparisons: dict[str, Comparison]
    failure: str = ""

    def problems(self) -> list[str]:
        """What is wrong, one line each; empty where the case passes."""
        if self.failure or not self.comparisons:
            return [self.failure or "nothing was compared"]
        return [
            f"{quantity}: error {comparison.error:.2e}, allowed {comparison.tolerance:.0e}"
            for quantity, comparison in self.comparisons.items()
            if not comparison.error <= comparison.tolerance
        ]


Case: TypeAlias = Callable[[np.random.Generator], dict[str, Comparison]]


def compare(got: Array, want: Array, tolerance: float) -> Comparison:
    assert got.shape == want.shape, f"{got.shape} is not {want.shape}"
    error = float(np.abs(got.astype(np.float64) - want).max() / np.abs(want).max())
    return Comparison(error if np.isfinite(error) else float("inf"), tolerance)


def unwritten(shape: tuple[int, ...], dtype: DTypeLike = np.float16) -> Array:
    """An array of what no kernel writes: NaN, or the least integer."""
    return np.full(shape, _filler(dtype), dtype)


def padded(array: Array) -> Array:
    """The array with a few unwritten columns on the right: rows lie apart in memory."""
    edge = unwritten((*array.shape[:-1], _PADDING_COLUMNS), array.dtype)
    return np.concatenate([array, edge], axis=-1)


def unpadded(array: Array) -> Array:
    """The array without its padding, which nobody may have written."""
    edge = array[..., -_PADDING_COLUMNS:]
    untouched = np.array_equal(edge, np.full_like(edge, _filler(edge.dtype)), equal_nan=True)
    assert untouched, "the padding between the rows was written"
    return array[..., :-_PADDING_COLUMNS]


def _filler(dtype: DTypeLike) -> float:
    kind = np.dtype(dtype)
    return np.iinfo(kind).min if kind.kind == "i" else np.nan


def normal(random: np.random.Generator, *shape: int, dtype: DTypeLike = np.float16) -> Array:
    return random.standard_normal(shape).astype(dtype)


def tiles(length: int, block: int) -> int:
    """How many blocks cover the length."""
    return -(-length // block)


def print_outcomes(cases: Mapping[str, Case]) -> None:
    """Runs every case, each from the same seed, and prints one line of JSON for each."""
    for name, case in cases.items():
        kernels_run.clear()
        comparisons, failure = {}, ""
        try:
            comparisons = case(np.random.default_rng(0))
        except Exception:
            failure = traceback.format_exc()
        print(json.dumps(asdict(Outcome(name, sorted(kernels_run), comparisons, failure))))


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
    comparisons = {n: Comparison(**c) for n, c in record.pop("comparisons").items()}
    return Outcome(comparisons=comparisons, **record)
