"""`verilocc-bench evaluate`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from verilocc_bench.cli.output_stream import reserved_stdout, tell_objective
from verilocc_bench.cli.terminal import table_style
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import (
    Evaluation,
    RunConfiguration,
    allocator_label,
    check_columns,
    evaluate_together,
    failure_notes,
    results_json,
    results_tables,
    settings_kind,
    wrapped,
)
from verilocc_bench.evaluation.summary import OVERALL
from verilocc_bench.settings.command_line import check_flags, read_settings

UNAVAILABLE = 69
"""EX_UNAVAILABLE of sysexits.h."""


def run(options: argparse.Namespace) -> int:
    """Evaluates the models and prints one table, or JSON."""
    configurations = _configurations(options)
    style = table_style(options)
    check_columns(style.columns or (), options.k)
    with reserved_stdout() as stdout:
        found = evaluate_together(
            configurations,
            output_path=options.output_path,
            resume=options.resume,
            jobs=options.jobs,
            machine_code=options.machine_code,
        )
        if options.json:
            print(results_json(found[0].document), end="", file=stdout)
        else:
            print(results_tables([each.document for each in found], style), file=stdout)
            for each in found:
                # Why answers are missing or wrong.
                for note in failure_notes(allocator_label(each.document["config"]), each.results):
                    print(wrapped(note, style.width), file=stdout)
            _print_how_to_see_failures(found, options.output_path)
    overall = [each.document["results"][OVERALL] for each in found]
    if all(each["infrastructure_failures"] and not each["samples"] for each in overall):
        print(
            "verilocc-bench evaluate: no answer: a server or the machine failed every time",
            file=sys.stderr,
        )
        return UNAVAILABLE
    return 0


def _print_how_to_see_failures(found: Sequence[Evaluation], output_path: Path | None) -> None:
    """Prints the command that shows the first failure, with its findings or its traceback."""
    failed = (
        row.row.id
        for each in found
        for row in each.results
        for sample in row.samples
        if sample.kind is not None and sample.counted
    )
    first = next(failed, None)
    if first is not None:
        folder = output_path or "DIR"
        when = "" if output_path else " (after a run with --output-path DIR)"
        print(f"see one: verilocc-bench failures {folder} --id {first}{when}", file=sys.stderr)


def _configurations(options: argparse.Namespace) -> list[RunConfiguration]:
    """One configuration for each model, from the flags of the command line."""
    if options.json and len(options.model) > 1:
        raise InputError("--json prints one document: give one --model")
    if len(set(options.model)) != len(options.model):
        raise InputError("the same --model is given twice")
    kinds = [settings_kind(model) for model in options.model]
    configurations = [
        RunConfiguration(
            model=model,
            settings=read_settings(options, kind),
            dataset=options.dataset,
            revision=options.revision,
            splits=options.split,
            track=options.track,
            budget=options.budget,
            archs=options.arch,
            families=options.family,
            limit=options.limit,
            samples=options.samples,
            ks=options.k,
            seed=options.seed,
        )
        for model, kind in zip(options.model, kinds, strict=True)
    ]
    if options.output_path is None and not options.resume:
        raise InputError("--no-resume is for --output-path")
    check_flags(options, options.model, kinds)
    for configuration in configurations:
        tell_objective(options, configuration.model, configuration.settings)
    return configurations
