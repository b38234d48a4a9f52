"""The results of each configuration, read from the files of `evaluate`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.model_study.configurations import StudyConfiguration, configurations
from benchmarks.model_study.models import read_models
from verilocc_bench.allocators import FailureKind
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.schema import read_results
from verilocc_bench.files import parse_json, read_text

DEAD_END = "dead_end"
"""A kind of failure in tables: no legal register was left, and the sample ended."""

_COUNTED = ("prompt_tokens", "completion_tokens", "backtracks")


@dataclass(frozen=True, slots=True)
class KernelResult:
    """One function in one run. Measures of its first valid sample are None without one.

    `samples` and `valid` count samples. `dead_ends`, `tokens` (read and written)
    and `seconds` are sums over them; `dead_ends` is None if no room is made for
    any.
    """

    id: str
    task: str
    virtual_registers: int
    samples: int
    valid: int
    registers: int | None
    label_registers: int | None
    bound: int | None
    occupancy: int | None
    label_occupancy: int | None
    identity_copies: int | None
    bank_conflicts: int | None
    dead_ends: int | None
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StudyRun:
    """A configuration with its functions, and the figures that tables need.

    `failures` counts samples by kind like results.json, but separates dead ends
    from other samples with `no_answer`. `unparsable` counts by reason.
    """

    configuration: StudyConfiguration
    kernels: tuple[KernelResult, ...]
    ks: tuple[int, ...]
    seed: int
    calls: float | None
    failures: Mapping[str, int]
    findings: Mapping[str, int]
    unparsable: Mapping[str, int]
    dataset_hash: str
    versions: Mapping[str, str | None]
    revision: str | None
    prompt: Mapping[str, Any] | None
    options: Mapping[str, Any]

    @property
    def tasks(self) -> dict[str, list[KernelResult]]:
        """The functions by task, `architecture/family`."""
        return self._grouped(lambda kernel: kernel.task)

    @property
    def architectures(self) -> dict[str, list[KernelResult]]:
        """The functions by architecture."""
        return self._grouped(lambda kernel: kernel.task.split("/")[0])

    def _grouped(self, name_of: Callable[[KernelResult], str]) -> dict[str, list[KernelResult]]:
        found: dict[str, list[KernelResult]] = {}
        for kernel in sorted(self.kernels, key=lambda each: each.task):
            found.setdefault(name_of(kernel), []).append(kernel)
        return found


def read_runs(output: Path) -> list[StudyRun]:
    """The complete runs of a study, in the order of its table.

    Raises InputError if the folder is not a study, if runs lack samples, or if
    they are of different datasets or models.
    """
    runs = []
    for each in configurations(read_models(output)):
        folder = output / each.folder / each.key
        if (folder / "results.json").exists():
            runs.append(_read(each, folder))
    if not runs:
        raise InputError("no configuration is complete: run the study first", source=output)
    _check_alike(runs, output)
    return runs


def _check_alike(runs: Sequence[StudyRun], output: Path) -> None:
    """Raises InputError if runs are of several datasets, weights or versions of a format."""
    seen: dict[tuple[str, str], str | None] = {}
    for run in runs:
        told = run.configuration
        marks: dict[tuple[str, str], str | None] = {("of the split", told.split): run.dataset_hash}
        if run.prompt is not None:
            marks["of the model", told.folder] = run.revision
            marks["of the format", run.prompt["format"]] = run.prompt["hash"]
        for (kind, name), mark in marks.items():
            if seen.setdefault((kind, name), mark) != mark:
                message = (
                    f"the runs {kind} {name!r} are not all of one version: run the study again"
                )
                raise InputError(message, source=output / told.folder / told.key)


def _read(configuration: StudyConfiguration, folder: Path) -> StudyRun:
    document = read_results(folder / "results.json")
    overall, config = document["results"]["overall"], document["config"]
    if overall["infrastructure_failures"]:
        message = "samples are missing: run the study again"
        raise InputError(message, source=folder / "results.json")
    samples = _samples(folder / "samples.jsonl")
    dead_ends = sum(sums[DEAD_END] for sums in samples.values())
    return StudyRun(
        configuration,
        tuple(_kernel(record, samples) for record in document["kernels"]),
        tuple(config["k"]),
        document["seed"],
        overall["verifier_calls"],
        _failures(overall["failures"], dead_ends),
        overall["findings"],
        overall["unparsable"],
        document["dataset"]["hash"],
        document["versions"],
        config["revision"],
        config["prompt"],
        config["options"],
    )


def _failures(counts: Mapping[str, int], dead_ends: int) -> dict[str, int]:
    """Samples by kind of failure; dead ends are taken out of those without an answer."""
    found = Counter(counts)
    found.update({DEAD_END: dead_ends, FailureKind.NO_ANSWER: -dead_ends})
    return {str(kind): count for kind, count in found.items() if count}


def _samples(path: Path) -> dict[tuple[str, str], Counter[str]]:
    """Sums over the samples of each function, by split and id."""
    found: dict[tuple[str, str], Counter[str]] = {}
    for number, line in enumerate(read_text(path).splitlines(), 1):
        document = parse_json(line, path, number)
        try:
            sums = found.setdefault((document["split"], document["id"]), Counter())
            sums["seconds"] += document["allocate_seconds"]
            details = document["details"]
            sums.update({name: details[name] for name in _COUNTED if name in details})
            sums[DEAD_END] += (document["message"] or "").startswith("dead end: ")
        except (AttributeError, KeyError, TypeError):
            raise InputError("expected a sample of evaluate", source=path, line=number) from None
    return found


def _kernel(
    record: Mapping[str, Any], samples: Mapping[tuple[str, str], Counter[str]]
) -> KernelResult:
    sums = samples[record["split"], record["id"]]
    measured = (
        *("registers", "label_registers", "bound", "occupancy", "label_occupancy"),
        *("identity_copies", "bank_conflicts"),
    )
    return KernelResult(
        record["id"],
        record["task"],
        record["n_virtual_registers"],
        record["samples"],
        record["valid"],
        *(record[name] for name in measured),
        dead_ends=sums.get("backtracks"),
        tokens=sums["prompt_tokens"] + sums["completion_tokens"],
        seconds=float(sums["seconds"]),
    )
