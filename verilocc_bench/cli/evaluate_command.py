"""`verilocc-bench evaluate`."""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from tqdm import tqdm

from verilocc_bench.dataset import Dataset, Row, is_local, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate import (
    Configuration,
    Predictions,
    RowResult,
    evaluate_rows,
    failure_notes,
    make_results,
    resolve_model,
    results_json,
    results_table,
)
from verilocc_bench.files import write_atomically
from verilocc_bench.targets import get_target

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Evaluates each model in turn and prints one table, or JSON."""
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
    dataset = load_rows(
        options.dataset, split=options.split, track=options.track, revision=options.revision
    )
    rows = _select(dataset, options)
    for model in options.model:
        allocator = resolve_model(model)
        if isinstance(allocator, Predictions):
            allocator.check_ids(_known_ids(dataset, options))
    documents, notes = [], []
    for model in options.model:
        results = _evaluate(rows, model, options)
        document = make_results(results, _configuration(model, dataset, options))
        documents.append(document)
        notes += failure_notes(model, results)
        if options.output_path is not None:
            folder = options.output_path
            if len(options.model) > 1:
                folder /= re.sub(r"[^\w.-]+", "_", model)
            _write(folder, document, rows, results)
    if options.json:
        print(results_json(documents[0]), end="")
    else:
        print("\n".join([results_table(documents), *notes]))
    return 0


def _select(dataset: Dataset, options: argparse.Namespace) -> list[Row]:
    families = {row.family for row in dataset.rows}
    for family in options.family or ():
        if family not in families:
            known = ", ".join(sorted(families))
            raise InputError(f"unknown family {family!r}; the dataset has {known}")
    chosen: list[Row] = []
    taken: Counter[tuple[str, str]] = Counter()
    for row in dataset.rows:
        if options.arch is not None and row.arch not in options.arch:
            continue
        if options.family is not None and row.family not in options.family:
            continue
        if options.limit is not None and taken[row.arch, row.family] >= options.limit:
            continue
        taken[row.arch, row.family] += 1
        chosen.append(row)
    if not chosen:
        raise InputError(f"no row of {dataset.name!r} is of these architectures and families")
    return chosen


def _known_ids(dataset: Dataset, options: argparse.Namespace) -> set[str]:
    """The ids of both tracks: one file of answers may serve them together."""
    known = {row.id for row in dataset.rows}
    other = "split" if dataset.track == "assign" else "assign"
    with contextlib.suppress(InputError):  # a dataset may have one track alone
        rows = load_rows(dataset.name, split=dataset.split, track=other, revision=options.revision)
        known |= {row.id for row in rows.rows}
    return known


def _evaluate(rows: list[Row], model: str, options: argparse.Namespace) -> list[RowResult]:
    found = evaluate_rows(
        rows, model, samples=options.samples, seed=options.seed, jobs=options.jobs
    )
    bar = tqdm(found, total=len(rows), unit="kernel", desc=model, disable=None, leave=False)
    return [result for _, result in bar]


def _configuration(model: str, dataset: Dataset, options: argparse.Namespace) -> Configuration:
    return Configuration(
        model=model,
        assistance=resolve_model(model).assistance.value,
        dataset=dataset.name,
        revision=dataset.revision,
        dataset_hash=dataset.hash,
        split=dataset.split,
        track=dataset.track,
        archs=options.arch,
        families=options.family,
        limit=options.limit,
        samples=options.samples,
        k=options.k,
        seed=options.seed,
    )


def _write(
    folder: Path, document: dict[str, Any], rows: list[Row], results: list[RowResult]
) -> None:
    lines = [
        json.dumps(sample.to_json(row), allow_nan=False) + "\n"
        for row, result in zip(rows, results, strict=True)
        for sample in result.samples
    ]
    write_atomically(folder / "samples.jsonl", "".join(lines))
    write_atomically(folder / "results.json", results_json(document))
    print(f"wrote {folder / 'results.json'}", file=sys.stderr)
