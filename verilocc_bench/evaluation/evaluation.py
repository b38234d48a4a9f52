"""Evaluates allocators: the way from what is asked to results.json.

Every sample goes through three steps: an allocator is asked for it (`asking`),
the verifier judges it (`judging`, which `asking` calls, since a rejected sample may
be asked for again), and it is kept (`storing`). `scheduling` says in which order and
in which process. Then `results` sums a run up.
"""

from __future__ import annotations

import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from verilocc_bench.allocators import Allocator, LabelUse
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.chosen_rows import ChosenRows, choose_rows, known_ids
from verilocc_bench.evaluation.configuration import RunConfiguration, ledger_settings
from verilocc_bench.evaluation.few_shot import load_few_shot
from verilocc_bench.evaluation.fingerprints import fingerprint
from verilocc_bench.evaluation.ledger import LEDGER, Ledger
from verilocc_bench.evaluation.machine_code import check_machine_code, measure_machine_code
from verilocc_bench.evaluation.models import resolve_model
from verilocc_bench.evaluation.records import RowResult
from verilocc_bench.evaluation.results import RESULTS, make_results, write_run
from verilocc_bench.evaluation.scheduling import complete_runs
from verilocc_bench.evaluation.storing import AllocatorRun
from verilocc_bench.files import read_json
from verilocc_bench.model.allocator import LanguageModelAllocator
from verilocc_bench.model.transcripts import TRANSCRIPTS, KeepsTranscripts, Transcripts
from verilocc_bench.settings.language_model import LanguageModelSettings

SECONDS_BETWEEN_FIGURES = 0.2

Tell = Callable[[str], None]
"""Is told what a user should know, one line at a time."""


def _print_to_standard_error(line: str) -> None:
    print(line, file=sys.stderr)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A run that is complete: the document of results.json, and the samples of each row."""

    document: dict[str, Any]
    results: tuple[RowResult, ...]


def evaluate_together(
    configurations: Sequence[RunConfiguration],
    *,
    output_path: Path | None = None,
    resume: bool = True,
    jobs: int = 1,
    tell: Tell = _print_to_standard_error,
    allocators: Sequence[Allocator] | None = None,
    machine_code: bool = False,
) -> list[Evaluation]:
    """Asks allocators about the same functions, judges every answer, and sums up.

    The configurations differ in model and settings alone. With an output path
    every sample is kept there as soon as it is judged; a run that was
    interrupted goes on from there, unless `resume` is False. Several allocators
    have a folder each below it. `jobs` is a number of processes. Raises
    InputError for a model, a dataset or a folder that cannot be used.
    `tell` gets lines for people, such as where the results are. `allocators` has
    one for each configuration; None looks for them by their names. With
    `machine_code` valid answers are taken to machine code, too (`machine_code`).
    """
    # An allocator may change the current folder.
    path = None if output_path is None else output_path.absolute()
    first = configurations[0]
    rows = choose_rows(first)
    if rows.dropped:
        count = len(rows.rows) + rows.dropped
        tell(f"{rows.dropped} of {count} functions cannot gain occupancy (proved)")
    if machine_code:
        check_machine_code([each.row.arch for each in rows.rows], path)
    if allocators is None:
        allocators = [resolve_model(c.model, c.asked_settings(), jobs) for c in configurations]
    for allocator in allocators:
        if first.track not in allocator.tracks:
            raise InputError(f"it does not answer the track '{first.track}'", source=allocator.name)
        allocator.check_ids(partial(known_ids, first, rows.rows))
    started = time.perf_counter()
    with contextlib.ExitStack() as stack:
        runs = []
        folders: Sequence[Path | None] = [None] * len(allocators)
        if path is not None:
            folders = run_folders(path, [each.name for each in allocators])
        for configuration, allocator, folder in zip(
            configurations, allocators, folders, strict=True
        ):
            run = _prepare(configuration, allocator, rows, folder, resume=resume, tell=tell)
            if run.ledger is not None:
                stack.callback(run.ledger.close)
            runs.append((run, folder))
        try:
            completed = _completed(runs, rows.hash, jobs, started, tell, machine_code=machine_code)
            return list(completed)
        except KeyboardInterrupt:
            if path is not None:
                kept, asked = sum(run.kept_count for run, _ in runs), _asked(runs)
                tell(f"{kept} of {asked} samples are kept: the same command goes on")
            raise


def run_folders(path: Path, models: Sequence[str]) -> list[Path]:
    """The folder of each model's run: `path` itself, or one below it each if there are several."""
    if len(models) == 1:
        return [path]
    names = [re.sub(r"[^\w.-]+", "_", model) for model in models]
    # Two names may become the same, and names of dots alone are other folders.
    return [
        path / (name if name == model and name.strip(".") else f"{name}-{fingerprint(model)[:6]}")
        for name, model in zip(names, models, strict=True)
    ]


def _prepare(
    configuration: RunConfiguration,
    allocator: Allocator,
    rows: ChosenRows,
    folder: Path | None,
    *,
    resume: bool,
    tell: Tell,
) -> AllocatorRun:
    """A run with its examples and its ledger, and with the settings that the allocator chose."""
    words = allocator if isinstance(allocator, LanguageModelAllocator) else None
    if words is not None and words.undecided:
        problems = (AllocationProblem.from_text(each.row.normalized) for each in rows.rows)
        tell(f"prompt format {words.choose_format(problems)} fits all kernels")
    configuration = replace(configuration, settings=allocator.settings)
    examples, prompt = None, allocator.prompt
    seen = None if allocator.label_use is LabelUse.NONE else rows.hash
    if prompt is not None and prompt.few_shot:
        examples = load_few_shot(
            configuration.dataset, rows.every, prompt.few_shot, configuration.revision
        )
        prompt, seen = replace(prompt, examples_from=examples.source), examples.hash
        few = sum(len(examples.examples(each.row)) < examples.count for each in rows.rows)
        if few:
            count = len(rows.rows)
            tell(
                f"for {few} of {count} functions there are fewer than {examples.count} solved ones"
            )
    ledger = None
    if folder is not None:
        if resume:
            _check_folder(folder, allocator.name)
        stands_under = ledger_settings(allocator, prompt, configuration.seed, seen)
        ledger = Ledger(folder / LEDGER, stands_under, resume=resume)
        for warning in ledger.warnings():
            tell(warning)
        settings = allocator.settings
        keeps = isinstance(settings, LanguageModelSettings) and settings.log_samples
        if keeps and isinstance(allocator, KeepsTranscripts):
            allocator.transcripts = Transcripts(
                folder / TRANSCRIPTS, ledger.configuration, resume=resume
            )
    return AllocatorRun(
        configuration, allocator, rows.rows, prompt=prompt, examples=examples, ledger=ledger
    )


def _asked(runs: Sequence[tuple[AllocatorRun, Path | None]]) -> int:
    """How many samples the runs ask for, those that are kept included."""
    return sum(len(run.rows) * run.asked for run, _ in runs)


def _check_folder(folder: Path, model: str) -> None:
    """Raises InputError for a folder with the results of another model."""
    path = folder / RESULTS
    if not path.is_file():
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


def _completed(
    runs: Sequence[tuple[AllocatorRun, Path | None]],
    dataset_hash: str,
    jobs: int,
    started: float,
    tell: Tell,
    *,
    machine_code: bool,
) -> Iterator[Evaluation]:
    """Asks, judges and keeps what is missing in the runs; then sums each up, and writes it."""
    missing, every = [run.missing_count for run, _ in runs], _asked(runs)
    if sum(missing) < every and sys.stderr.isatty():
        tell(f"{every - sum(missing)} of {every} samples are there already")
    with tqdm(total=sum(missing), unit="sample", disable=None, leave=False) as bar:
        said, since, shown = 0, time.perf_counter(), 0.0

        def tell_tokens(count: int) -> None:
            # A whole sample of a language model may take minutes.
            nonlocal said, shown
            said, now = said + count, time.perf_counter()
            if now >= shown + SECONDS_BETWEEN_FIGURES:
                shown = now
                bar.set_postfix_str(f"{said:,} tokens, {said / (now - since):,.0f}/s")

        prepared_rows = complete_runs([run for run, _ in runs], jobs, bar.update, tell_tokens)
    for (run, folder), new in zip(runs, missing, strict=True):
        results = run.results(prepared_rows)
        code = None
        if machine_code and folder is not None:
            valid = sum(result.outcome is not None for result in results)
            with tqdm(total=valid, unit="kernel", disable=None, leave=False) as bar:
                bar.set_description("machine code")
                code = measure_machine_code(run, results, folder, jobs, bar.update)
        document = make_results(run, results, dataset_hash, time.perf_counter() - started, code)
        if folder is not None and run.ledger is not None:
            write_run(folder, document, results, run.ledger, anything_new=new > 0)
            tell(f"wrote {folder / RESULTS}")
        yield Evaluation(document, tuple(results))
