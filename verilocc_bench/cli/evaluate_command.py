"""`verilocc-bench evaluate`."""

from __future__ import annotations

import argparse
import contextlib
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tqdm import tqdm

from verilocc_bench.allocators import Allocator, AllocatorOptions, LabelReplay
from verilocc_bench.cli.model_options import allocator_options
from verilocc_bench.dataset import is_local, load_rows, rows_hash
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate import (
    LEDGER,
    Configuration,
    Ledger,
    ModelDescription,
    Predictions,
    Run,
    RunSettings,
    SplitRow,
    complete_runs,
    describe_model,
    failure_notes,
    load_few_shot,
    make_results,
    resolve_model,
    results_json,
    results_tables,
    write_run,
)
from verilocc_bench.targets import get_target

__all__ = ["run"]


@dataclass(frozen=True, slots=True)
class _Data:
    """The rows that are evaluated, and the hash of all that they were chosen from."""

    rows: tuple[SplitRow, ...]
    hash: str


@dataclass(frozen=True, slots=True)
class _ModelRun:
    run: Run
    description: ModelDescription
    folder: Path | None


def run(options: argparse.Namespace) -> int:
    """Evaluates the models and prints one table, or JSON."""
    _check(options)
    asked = allocator_options(options)
    data = _load(options)
    allocators = [resolve_model(model, asked, options.jobs) for model in options.model]
    for allocator in allocators:
        if isinstance(allocator, Predictions):
            allocator.check_ids(_known_ids(data, options))
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        runs = [_prepare(allocator, data, asked, options, stack) for allocator in allocators]
        documents, notes = _complete(runs, data, asked, options, started)
    if options.json:
        print(results_json(documents[0]), end="")
    else:
        print("\n".join([results_tables(documents), *notes]))
    return 0


def _check(options: argparse.Namespace) -> None:
    if options.json and len(options.model) > 1:
        raise InputError("--json prints one document: give one --model")
    options.k = tuple(sorted({1, *options.k}))
    if len(set(options.model)) != len(options.model):
        raise InputError("the same --model is given twice")
    if options.revision is not None and is_local(options.dataset):
        raise InputError("--revision is for datasets on the Hub", source=options.dataset)
    if max(options.k) > options.samples:
        raise InputError(f"pass@{max(options.k)} needs --samples {max(options.k)} or more")
    for arch in options.arch or ():
        get_target(arch)


def _load(options: argparse.Namespace) -> _Data:
    found: list[SplitRow] = []
    for split in options.split:
        dataset = load_rows(
            options.dataset, split=split, track=options.track, revision=options.revision
        )
        found += [SplitRow(row, split) for row in dataset.rows]
    return _Data(_select(found, options), rows_hash(each.row for each in found))


def _select(rows: list[SplitRow], options: argparse.Namespace) -> tuple[SplitRow, ...]:
    families = {each.row.family for each in rows}
    for family in options.family or ():
        if family not in families:
            known = ", ".join(sorted(families))
            raise InputError(f"unknown family {family!r}; the dataset has {known}")
    chosen: list[SplitRow] = []
    taken: Counter[tuple[str, str]] = Counter()
    for each in rows:
        row = each.row
        if options.arch is not None and row.arch not in options.arch:
            continue
        if options.family is not None and row.family not in options.family:
            continue
        if options.limit is not None and taken[row.arch, row.family] >= options.limit:
            continue
        taken[row.arch, row.family] += 1
        chosen.append(each)
    if not chosen:
        raise InputError(f"no row of {options.dataset!r} is of these architectures and families")
    return tuple(chosen)


def _known_ids(data: _Data, options: argparse.Namespace) -> set[str]:
    """The ids of both tracks and all splits: one file of answers may serve them together."""
    known: set[str] = set()
    for track in ("assign", "split"):
        for split in dict.fromkeys([*options.split, "train", "validation", "test"]):
            with contextlib.suppress(InputError):  # a dataset may have one track alone
                found = load_rows(
                    options.dataset, split=split, track=track, revision=options.revision
                )
                known |= {row.id for row in found.rows}
    return known | {each.row.id for each in data.rows}


def _prepare(
    allocator: Allocator,
    data: _Data,
    asked: AllocatorOptions,
    options: argparse.Namespace,
    stack: contextlib.ExitStack,
) -> _ModelRun:
    description = describe_model(allocator, asked)
    rows = [each.row for each in data.rows]
    examples = None
    if asked.few_shot and description.prompt is not None:
        examples = load_few_shot(options.dataset, rows, asked.few_shot, options.revision)
    folder, ledger = _folder(allocator.name, options), None
    if folder is not None:
        sees_labels = isinstance(allocator, LabelReplay) or examples is not None
        settings = description.ledger_settings(options.seed, data.hash if sees_labels else None)
        ledger = Ledger(folder / LEDGER, settings, resume=options.resume)
        stack.callback(ledger.close)
    settings_of_run = RunSettings.make(options.samples, options.seed, asked)
    run = Run(allocator, data.rows, settings_of_run, ledger=ledger, examples=examples)
    return _ModelRun(run, description, folder)


def _folder(model: str, options: argparse.Namespace) -> Path | None:
    folder: Path | None = options.output_path
    if folder is None or len(options.model) == 1:
        return folder
    return folder / re.sub(r"[^\w.-]+", "_", model)


def _complete(
    runs: list[_ModelRun],
    data: _Data,
    asked: AllocatorOptions,
    options: argparse.Namespace,
    started: float,
) -> tuple[list[dict[str, Any]], list[str]]:
    missing = sum(each.run.missing_count for each in runs)
    with tqdm(total=missing, unit="sample", disable=None, leave=False) as bar:
        prepared_rows = complete_runs(
            [each.run for each in runs],
            asked,
            options.jobs,
            bar.update,  # type: ignore[arg-type]
        )
    documents: list[dict[str, Any]] = []
    notes: list[str] = []
    for each in runs:
        results = each.run.results(prepared_rows)
        configuration = _configuration(each.description, data, options)
        timing = each.run.timing.to_json(results, time.perf_counter() - started)
        document = make_results(results, configuration, timing)
        documents.append(document)
        notes += failure_notes(each.description.name, results)
        if each.folder is not None and each.run.ledger is not None:
            write_run(each.folder, document, results, each.run.ledger)
            print(f"wrote {each.folder / 'results.json'}", file=sys.stderr)
    return documents, notes


def _configuration(
    model: ModelDescription, data: _Data, options: argparse.Namespace
) -> Configuration:
    return Configuration(
        model=model,
        dataset=options.dataset,
        revision=options.revision,
        dataset_hash=data.hash,
        split=",".join(options.split),
        track=options.track,
        archs=options.arch,
        families=options.family,
        limit=options.limit,
        samples=options.samples,
        k=options.k,
        seed=options.seed,
    )
