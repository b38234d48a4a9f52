"""Prints the tables of docs/allocation-study.md, and draws its plots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine_code
from benchmarks.allocation_study import tables
from benchmarks.allocation_study.plots import draw_plots
from benchmarks.allocation_study.running import Study, read_study
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json, read_text


@dataclass(frozen=True, slots=True)
class Sources:
    """What the steps of the study have written; all but the first may be missing."""

    study: Path
    runnable: Path | None = None
    machine_code: Path | None = None
    compiler_times: Path | None = None


def report(sources: Sources, images: Path) -> None:
    """Prints the tables of a study and draws its plots. Raises InputError for an empty study."""
    study = read_study(sources.study)
    found = [each for _, each in sorted(study.measurements.items()) if each.lost is None]
    if not found:
        message = "expected at least one kernel that was measured"
        raise InputError(message, source=sources.study)
    draw_plots(found, images)
    parts = [
        ("What was asked", _sample(study)),
        ("How far from optimal", tables.optimality_table(found)),
        ("All allocators", tables.allocator_table(found)),
        ("What proves it", tables.bound_table(found)),
        ("Bank conflicts", tables.conflict_table(found)),
        ("Copies", tables.copy_table(found)),
        ("Time", tables.time_table(found)),
        ("Tight budgets", tables.tight_table(found)),
        *_further_tables(study, sources),
    ]
    print("\n\n".join(f"## {title}\n\n{text}" for title, text in parts))


def _sample(study: Study) -> str:
    """What the file's head says, and the kernels that are left out."""
    lines = [f"- {name}: {value}" for name, value in study.head.items()]
    lost = [each for each in study.measurements.values() if each.lost is not None]
    lines += [f"- `{each.id}` ({each.arch}) is left out: {each.lost}" for each in lost]
    return "\n".join(lines)


def _further_tables(study: Study, sources: Sources) -> Iterator[tuple[str, str]]:
    """The tables of what was measured besides."""
    if sources.compiler_times is not None:
        records = _records(sources.compiler_times)
        yield "LLVM's own time", tables.compiler_time_table(records, study.measurements)
    if sources.runnable is not None:
        records = _records(sources.runnable)
        yield "Answers that run", tables.runnable_table(records, study.measurements)
    if sources.machine_code is not None:
        lines = machine_code.summary(_records(sources.machine_code))
        yield "The cost of code", "\n".join(lines)


def _records(path: Path) -> list[Mapping[str, Any]]:
    lines = enumerate(read_text(path).splitlines(), start=1)
    return [parse_json(line, path, number) for number, line in lines]
