"""Writes the document: the questions, the results, and what remains unknown."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import machine_code
from benchmarks.allocation_study import prose, tables
from benchmarks.allocation_study.code_tables import runnable_table
from benchmarks.allocation_study.plots import draw_plots
from benchmarks.allocation_study.questions import QUICK_WHERE_COSTLY
from benchmarks.allocation_study.records import Measurement
from benchmarks.allocation_study.running import Study, read_study
from benchmarks.allocation_study.summary import summary_sentences
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json, read_text, write_atomically


@dataclass(frozen=True, slots=True)
class Sources:
    """What the steps of the study have written; all but the first may be missing."""

    study: Path
    runnable: Path | None = None
    machine_code: Path | None = None
    compiler_times: Path | None = None


def report(sources: Sources, output: Path, images: Path) -> None:
    """Writes the document of a study and its plots. Raises InputError for an empty study."""
    study = read_study(sources.study)
    if not any(each.lost is None for each in study.measurements.values()):
        message = "expected at least one kernel that was measured"
        raise InputError(message, source=sources.study)
    text = _document(study, sources, os.path.relpath(images, output.parent))
    draw_plots(_measured(study), images)
    write_atomically(output, text)


def _measured(study: Study) -> list[Measurement]:
    return [each for _, each in sorted(study.measurements.items()) if each.lost is None]


def _document(study: Study, sources: Sources, images: str) -> str:
    found = _measured(study)
    parts = [
        prose.TITLE,
        *summary_sentences(found),
        "## What was asked",
        _sample_words(study),
        prose.METHOD,
        "## How far from optimal",
        prose.OPTIMAL,
        tables.optimality_table(found),
        _image(images, "allocation-gaps.svg", "Share of kernels by registers above the bound"),
        _image(images, "allocation-savings.svg", "Kernels by registers saved"),
        "All allocators, against the compiler that made the label:",
        tables.allocator_table(found),
        "## What proves it",
        prose.PROOFS,
        tables.bound_table(found),
        "## Bank conflicts",
        prose.CONFLICTS,
        tables.conflict_table(found),
        _exceptions(found),
        _image(images, "allocation-conflicts.svg", "Bank conflicts before and after"),
        "## Copies",
        prose.COPIES,
        tables.copy_sentence(found),
        "## Time",
        prose.TIME,
        tables.time_table(found),
        *_compiler_time_parts(study, sources),
        _image(images, "allocation-times.svg", "Seconds of best by size"),
        "## Tight budgets",
        prose.TIGHT,
        tables.tight_table(found),
        _image(images, "allocation-tight-budgets.svg", "Share solved against time"),
        *_code_parts(study, sources),
        "## What is not known",
        prose.UNKNOWN,
        "## To repeat it",
        prose.REPEAT,
    ]
    return "\n\n".join(parts) + "\n"


def _image(folder: str, name: str, words: str) -> str:
    return f"![{words}]({folder}/{name})"


def _sample_words(study: Study) -> str:
    head, found = study.head, _measured(study)
    lost = [each for each in study.measurements.values() if each.lost is not None]
    named = ", ".join(f"{name} {version}" for name, version in head["versions"].items())
    costly = sum("tabu-search" not in each.answers for each in found)
    splits = ", ".join(f"`{name}`" for name in sorted({each.split for each in found}))
    words = [
        f"{len(found)} kernels of the {head['dataset']['kernels']:,} of the assign track "
        f"(dataset `{head['dataset']['digest']}`; splits: {splits}): of each architecture and "
        f"family at most {head['sample']['kernels_per_cell']}, evenly spaced by their number of "
        "virtual registers.",
        f"Labels: {', '.join(sorted({each.label_source for each in found}))}.",
        f"Versions: {named}. Processor: {head['machine']['processor']}.",
    ]
    if len(study.measurements) < head["sample"]["kernels"]:
        words.append(
            f"The whole sample has {head['sample']['kernels']} kernels; measured is a part of it "
            "that mixes cells and sizes in the same way."
        )
    if costly:
        names = ", ".join(f"`{name}`" for name in QUICK_WHERE_COSTLY)
        words.append(
            f"{costly} kernels keep more than 90 scalar registers busy at once or have more than "
            f"2,000 virtual registers, and search may take minutes there: of these {names} and "
            "`best` alone were asked."
        )
    if lost:
        reasons = ", ".join(f"`{each.id}` ({each.arch}): {each.lost}" for each in lost)
        words.append(f"{len(lost)} kernels are left out, beyond the limit of time: {reasons}.")
    return " ".join(words)


def _exceptions(found: Sequence[Measurement]) -> str:
    """Kernels where a search ends with more conflicts than another answer has."""
    objective, best, compiler = "best bank-conflicts", "best", "compiler"
    return " ".join(
        [
            _more(found, objective, best, "the objective", "`best` for registers")
            + "It has more registers to choose from, and no more steps.",
            _more(found, best, compiler, "`best` for registers", "the compiler")
            + "Fewer registers leave less freedom.",
        ]
    )


def _more(found: Sequence[Measurement], here: str, there: str, name: str, other: str) -> str:
    """The kernels on which one answer has more conflicts than another, the largest excess first."""
    pairs = [
        (after - before, f"`{each.id[:8]}` ({each.arch}: {after} for {before})")
        for each in found
        if here in each.answers
        for after in (each.answers[here].conflicts,)
        for before in (each.answers[there].conflicts,)
        if after is not None and before is not None and after > before
    ]
    if not pairs:
        return f"Nowhere does {name} end with more conflicts than {other}. "
    named = ", ".join(words for _, words in sorted(pairs, reverse=True)[:5])
    return (
        f"On {len(pairs)} of {len(found)} kernels {name} ends with more conflicts than {other}, "
        f"most on {named}. "
    )


def _compiler_time_parts(study: Study, sources: Sources) -> list[str]:
    """LLVM's own times beside those of `best`, if they were measured."""
    if sources.compiler_times is None:
        return []
    records = _records(sources.compiler_times)
    return [prose.COMPILER_TIME, tables.compiler_time_table(records, study.measurements)]


def _code_parts(study: Study, sources: Sources) -> list[str]:
    """The sections about the sample as machine code, for what was measured of it."""
    parts = []
    if sources.runnable is not None:
        answers = _records(sources.runnable)
        table = runnable_table(answers, study.measurements)
        parts += ["## Answers that run", prose.RUNNABLE, table]
    if sources.machine_code is not None:
        table = "\n".join(machine_code.summary(_records(sources.machine_code)))
        parts += ["## The cost of code", prose.MACHINE_CODE, table]
    return parts


def _records(path: Path) -> list[Mapping[str, Any]]:
    lines = enumerate(read_text(path).splitlines(), start=1)
    return [parse_json(line, path, number) for number, line in lines]
