"""Small recipes, rows and tokenizers: a run on them takes a second."""

from __future__ import annotations

import atexit
import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from tests.generated import random_function
from tests.model.tiny_models import save_model
from verilocc_bench.allocators import BUILT_IN, Request, answer_from_assignment, linear_scan
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts, count_identity_copies
from verilocc_bench.dataset import Row, load_rows, write_parquet
from verilocc_bench.dataset.reader import TRACKS
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import print_function
from verilocc_bench.training.recipe import Recipe, read_recipe
from verilocc_bench.verification import FastVerifier, IndependentVerifier, Verdict


@cache
def base_model(context: int = 4096) -> str:
    """The folder of a tiny random model with a tokenizer that loses nothing."""
    folder = Path(tempfile.mkdtemp(prefix="base-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return str(save_model(folder, context=context))


TRAINING = {
    "steps": 4,
    "accumulation": 1,
    "maximum_tokens": 2048,
    "learning_rate": 0.01,
    "warmup_steps": 2,
    "save_steps": 2,
    "log_steps": 1,
    "threads": 1,
}


def document(**changes: Any) -> dict[str, Any]:
    """What a recipe's file says: three checkpoints, of two formats."""
    return {
        "name": "small",
        "description": "for tests",
        "model": {"pretrained": base_model()},
        "sources": [
            {"format": "window", "label": "compiler", "new_registers": [4, 2]},
            {"format": "whole", "label": "compiler"},
        ],
        "split": "test",
        "validation_split": None,
        "training": TRAINING,
        **changes,
    }


def write_recipe(path: Path, **changes: Any) -> Path:
    """A file with that document."""
    path.write_text(yaml.safe_dump(document(**changes)))
    return path


def recipe(folder: Path, **changes: Any) -> Recipe:
    """The recipe of that document."""
    return read_recipe(write_recipe(folder / "recipe.yaml", **changes))


@cache
def smallest(count: int = 4) -> tuple[Row, ...]:
    """The rows of `mini` with the fewest virtual registers."""
    rows = sorted(load_rows("mini").rows, key=lambda row: (row.n_virtual_registers, row.id))
    return tuple(rows[:count])


@cache
def generated(count: int = 12) -> tuple[Row, ...]:
    """Rows of generated functions that linear scan can allocate, its answers for labels."""
    found: list[Row] = []
    template = smallest()[0]
    for problem in _problems():
        try:
            answer = BUILT_IN["linear-scan"].allocate(Request(problem))
        except AllocationFailed:
            continue
        number, function = len(found), problem.function
        verdict = FastVerifier(problem).verify(answer)
        assert verdict.registers_used is not None
        found.append(
            replace(
                template,
                id=problem.id,
                arch=problem.target.name,
                family=("gemm", "mha")[number % 3 > 0],
                normalized=problem.normalized,
                assignment=json.dumps(answer.assignment),
                best_assignment=None,
                best_lower_bound=None,
                n_blocks=len(function.blocks),
                n_instructions=function.instruction_count,
                n_virtual_registers=len(function.virtual_registers),
                pressure=json.dumps(dict(problem.pressure.maximum)),
                registers_used=json.dumps(dict(verdict.registers_used)),
                occupancy=verdict.occupancy,
            )
        )
        if len(found) == count:
            return tuple(found)
    raise AssertionError


def _problems() -> Iterator[AllocationProblem]:
    for seed in range(1000):
        function = random_function(seed, registers=12, guarded=seed % 3 == 0)
        if len(function.virtual_registers) >= 6:
            yield AllocationProblem.from_text(print_function(function), f"seed {seed}")


def allocated(target: str, count: int) -> Iterator[tuple[int, AllocationProblem, dict[str, str]]]:
    """Generated functions by their seeds, with linear scan's answers; empty if it has none."""
    for seed in range(count):
        problem = AllocationProblem(random_function(seed, target=target))
        try:
            yield seed, problem, answer_from_assignment(problem, linear_scan(problem))
        except AllocationFailed:
            yield seed, problem, {}


def check_as_good(
    problem: AllocationProblem,
    answer: Mapping[str, str],
    other: AllocationProblem,
    found: Mapping[str, str],
) -> tuple[Verdict, Verdict]:
    """Both answers are valid, with as many conflicts and copies. Gives the verdicts."""
    before = FastVerifier(problem).verify(dict(answer))
    after = FastVerifier(other).verify(dict(found))
    assert before.valid
    assert after.valid, after.findings[:3]
    independent = IndependentVerifier(other).verify(dict(found))
    assert independent.valid, independent.findings[:3]
    for figure in (count_bank_conflicts, count_identity_copies):
        assert figure(other, dict(found)) == figure(problem, dict(answer))
    return before, after


def dataset(folder: Path, rows: tuple[Row, ...], *, split: str = "test") -> Path:
    """A dataset folder with these rows as one split."""
    track = folder / TRACKS["assign"]
    for row in rows:
        name = f"{split}-{row.id}.parquet"
        write_parquet([row], track / row.arch / row.family / name)
    return folder
