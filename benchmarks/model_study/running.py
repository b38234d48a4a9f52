"""Runs every configuration by `verilocc-bench evaluate`, one after the other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from benchmarks.model_study.configurations import StudyConfiguration, configurations
from benchmarks.model_study.models import read_models, write_models
from verilocc_bench.dataset import EMBEDDED, embedded_path, is_local
from verilocc_bench.errors import InputError

_ROOT = Path(__file__).resolve().parents[2]


def run(
    dataset: str,
    output: Path,
    models: Mapping[str, str],
    *,
    limit: int | None = None,
    jobs: int = 1,
    only: Sequence[str] = (),
) -> list[StudyConfiguration]:
    """Completes all configurations in `output`, and returns them.

    Models that were trained into the study are asked as well as the given ones.
    Existing samples are kept. `only` names folders, keys or both
    (`reference/state-free`). Splits that a local dataset lacks are skipped.
    Raises InputError if evaluate fails; it says why on standard error.
    """
    write_models(output, models)
    every = configurations(read_models(output))
    names = {name for each in every for name in _names(each)}
    for name in only:
        if name not in names:
            raise InputError(f"--only {name}: expected one of {', '.join(sorted(names))}")
    splits = _splits(dataset)
    chosen = [
        each
        for each in every
        if (not only or not _names(each).isdisjoint(only))
        and (splits is None or each.split in splits)
    ]
    for number, each in enumerate(chosen, 1):
        print(f"{number} of {len(chosen)}: {each.folder}/{each.key}", file=sys.stderr, flush=True)
        _evaluate(each, dataset, output, limit, jobs)
    return chosen


def _names(each: StudyConfiguration) -> set[str]:
    return {each.folder, each.key, f"{each.folder}/{each.key}"}


def _splits(dataset: str) -> Container[str] | None:
    """The splits of a local dataset; None for one on the Hub."""
    if not is_local(dataset):
        return None
    folder = embedded_path() if dataset == EMBEDDED else Path(dataset)
    return {path.name.split("-")[0] for path in folder.glob("data/*/*/*.parquet")}


def _evaluate(
    each: StudyConfiguration, dataset: str, output: Path, limit: int | None, jobs: int
) -> None:
    command = [sys.executable, "-m", "verilocc_bench", "evaluate", "--dataset", dataset]
    command += ["--model", each.model, "--split", each.split, *each.arguments]
    command += ["--output-path", str(output / each.folder / each.key), "--jobs", str(jobs)]
    limits = [number for number in (limit, each.limit) if number is not None]
    if limits:
        command += ["--limit", str(min(limits))]
    # For the models of this folder, in whatever folder the study is started.
    paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    result = subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=False)
    if result.returncode:
        raise InputError(f"evaluate ended with status {result.returncode}", source=each.key)
