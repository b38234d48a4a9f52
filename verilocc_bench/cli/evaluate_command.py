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

from verilocc_bench.allocators import Allocator, AllocatorOptions, sees_labels
from verilocc_bench.cli.model_options import allocator_options, check_used
from verilocc_bench.cli.output_stream import reserved_stdout
from verilocc_bench.dataset import BudgetChoice, Row, is_local, load_rows, rows_hash, tighten
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate import (
    LEDGER,
    RESULTS,
    Configuration,
    FewShot,
    Ledger,
    ModelDescription,
    Predictions,
    PreparedRow,
    Run,
    RunSettings,
    SplitRow,
    allocator_label,
    complete_runs,
    describe_model,
    failure_notes,
    fingerprint,
    load_few_shot,
    make_results,
    resolve_model,
    results_json,
    results_tables,
    write_run,
)
from verilocc_bench.evaluate.summary import OVERALL
from verilocc_bench.files import read_json
from verilocc_bench.targets import get_target

__all__ = ["run"]

UNAVAILABLE = 69
"""EX_UNAVAILABLE of sysexits.h."""


@dataclass(frozen=True, slots=True)
class _Data:
    """The rows that are evaluated, and all that they were chosen from, with a hash of these."""

    rows: tuple[SplitRow, ...]
    every: tuple[Row, ...]
    hash: str


@dataclass(frozen=True, slots=True)
class _ModelRun:
    run: Run
    description: ModelDescription
    folder: Path | None


def run(options: argparse.Namespace) -> int:
    """Evaluates the models and prints one table, or JSON."""
    _check(options)
    asked = allocator_options(options, options.samples)
    check_used(options, options.model)
    data = _load(options)
    allocators = [resolve_model(model, asked, options.jobs) for model in options.model]
    for allocator in allocators:
        if isinstance(allocator, Predictions):
            allocator.check_ids(_known_ids(data, options))
    with reserved_stdout() as stdout:
        documents, notes = _evaluate(allocators, data, asked, options)
        if options.json:
            print(results_json(documents[0]), end="", file=stdout)
        else:
            print("\n".join([results_tables(documents), *notes]), file=stdout)
    overall = [document["results"][OVERALL] for document in documents]
    if all(each["infrastructure_failures"] and not each["samples"] for each in overall):
        print(
            "verilocc-bench evaluate: no answer: a server or the machine failed every time",
            file=sys.stderr,
        )
        return UNAVAILABLE
    return 0


def _evaluate(
    allocators: list[Allocator], data: _Data, asked: AllocatorOptions, options: argparse.Namespace
) -> tuple[list[dict[str, Any]], list[str]]:
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        runs = [_prepare(allocator, data, asked, options, stack) for allocator in allocators]
        try:
            return _complete(runs, data, asked, options, started)
        except KeyboardInterrupt:
            if options.output_path is not None:
                print("all samples so far are kept: the same command goes on", file=sys.stderr)
            raise


def _check(options: argparse.Namespace) -> None:
    if options.json and len(options.model) > 1:
        raise InputError("--json prints one document: give one --model")
    options.k = tuple(sorted({1, *options.k}))
    if len(set(options.model)) != len(options.model):
        raise InputError("the same --model is given twice")
    if options.track == "split" and options.budget is not BudgetChoice.FULL:
        raise InputError("--budget is for the assign track")
    if options.revision is not None and is_local(options.dataset):
        raise InputError("--revision is for datasets on the Hub", source=options.dataset)
    if max(options.k) > options.samples:
        raise InputError(f"pass@{max(options.k)} needs --samples {max(options.k)} or more")
    for arch in options.arch or ():
        get_target(arch)
    if options.output_path is not None:
        # An allocator may change the current folder.
        options.output_path = options.output_path.absolute()
    elif not options.resume:
        raise InputError("--no-resume is for --output-path")


def _load(options: argparse.Namespace) -> _Data:
    found: list[SplitRow] = []
    for split in options.split:
        dataset = load_rows(
            options.dataset, split=split, track=options.track, revision=options.revision
        )
        found += [SplitRow(row, split) for row in dataset.rows]
    every = tuple(each.row for each in found)
    twice = [row_id for row_id, count in Counter(row.id for row in every).items() if count > 1]
    if twice:
        raise InputError(f"row {twice[0]} stands in several of the splits", source=options.dataset)
    return _Data(_tighten(_select(found, options), options.budget), every, rows_hash(every))


def _tighten(rows: tuple[SplitRow, ...], budget: BudgetChoice) -> tuple[SplitRow, ...]:
    """The rows at another budget, but for those that have none such."""
    if budget is not BudgetChoice.FULL:
        for each in rows:
            PreparedRow(each.row)  # raises where the figures that budgets follow from are wrong
    found = [(tighten(each.row, budget), each.split) for each in rows]
    kept = tuple(SplitRow(row, split) for row, split in found if row is not None)
    if len(kept) < len(rows):
        dropped = len(rows) - len(kept)
        print(f"{dropped} of {len(rows)} functions cannot gain occupancy (proved)", file=sys.stderr)
    if not kept:
        raise InputError("no function of these can gain occupancy")
    return kept


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
    examples = None
    seen = data.hash if sees_labels(allocator) else None
    if asked.few_shot and description.prompt is not None:
        examples = load_few_shot(options.dataset, data.every, asked.few_shot, options.revision)
        description.prompt["examples_from"], seen = examples.source, examples.hash
        _note_few(examples, data, asked.few_shot)
    folder, ledger = _folder(allocator.name, options), None
    if folder is not None:
        _check_folder(folder, allocator.name, options)
        settings = description.ledger_settings(options.seed, seen)
        ledger = Ledger(folder / LEDGER, settings, resume=options.resume)
        stack.callback(ledger.close)
        for warning in ledger.warnings():
            print(warning, file=sys.stderr)
    settings_of_run = RunSettings.make(options.samples, options.seed, asked)
    run = Run(allocator, data.rows, settings_of_run, ledger=ledger, examples=examples)
    return _ModelRun(run, description, folder)


def _folder(model: str, options: argparse.Namespace) -> Path | None:
    folder: Path | None = options.output_path
    if folder is None or len(options.model) == 1:
        return folder
    name = re.sub(r"[^\w.-]+", "_", model)
    # Two names may be alike in what a folder can be called.
    return folder / (name if name == model else f"{name}-{fingerprint(model)[:6]}")


def _check_folder(folder: Path, model: str, options: argparse.Namespace) -> None:
    """Raises InputError for a folder with the results of another model."""
    path = folder / RESULTS
    if not options.resume or not path.is_file():
        return
    other = model
    with contextlib.suppress(InputError, LookupError, TypeError):
        other = read_json(path)["config"]["model"]
    if other != model:
        raise InputError(
            f"holds the results of {other!r}: give another --output-path, or --no-resume to "
            "replace them",
            source=path,
        )


def _note_few(examples: FewShot, data: _Data, wanted: int) -> None:
    few = sum(len(examples.examples(each.row)) < wanted for each in data.rows)
    if few:
        print(
            f"for {few} of {len(data.rows)} functions there are fewer than {wanted} solved ones",
            file=sys.stderr,
        )


def _complete(
    runs: list[_ModelRun],
    data: _Data,
    asked: AllocatorOptions,
    options: argparse.Namespace,
    started: float,
) -> tuple[list[dict[str, Any]], list[str]]:
    missing = sum(each.run.missing_count for each in runs)
    every = sum(len(each.run.rows) * each.run.asked for each in runs)
    if missing < every and sys.stderr.isatty():
        print(f"{every - missing} of {every} samples are there already", file=sys.stderr)
    new = [each.run.missing_count > 0 for each in runs]
    with tqdm(total=missing, unit="sample", disable=None, leave=False) as bar:
        prepared_rows = complete_runs(
            [each.run for each in runs],
            asked,
            options.jobs,
            bar.update,  # type: ignore[arg-type]
        )
    documents: list[dict[str, Any]] = []
    notes: list[str] = []
    for each, anything_new in zip(runs, new, strict=True):
        results = each.run.results(prepared_rows)
        configuration = _configuration(each.description, data, options)
        timing = each.run.timing.to_json(results, time.perf_counter() - started)
        document = make_results(results, configuration, timing)
        documents.append(document)
        notes += failure_notes(allocator_label(document["config"]), results)
        if each.folder is not None and each.run.ledger is not None:
            ledger = each.run.ledger
            write_run(each.folder, document, results, ledger, anything_new=anything_new)
            print(f"wrote {each.folder / 'results.json'}", file=sys.stderr)
    return documents, notes


def _configuration(
    model: ModelDescription, data: _Data, options: argparse.Namespace
) -> Configuration:
    name = options.dataset
    if is_local(name) and name.count("/") == 1 and name[0] not in "./":
        name = f"./{name}"  # a folder, which looks like no id on the Hub
    return Configuration(
        model=model,
        dataset=name,
        revision=options.revision,
        dataset_hash=data.hash,
        split=",".join(options.split),
        track=options.track,
        budget=options.budget,
        archs=options.arch,
        families=options.family,
        limit=options.limit,
        samples=options.samples,
        k=options.k,
        seed=options.seed,
    )
