"""`verilocc-bench evaluate`."""

from __future__ import annotations

import argparse
import sys

from verilocc_bench.cli.output_stream import reserved_stdout
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import (
    RunConfiguration,
    allocator_label,
    evaluate_together,
    failure_notes,
    results_json,
    results_tables,
    settings_kind,
)
from verilocc_bench.evaluation.summary import OVERALL
from verilocc_bench.settings.command_line import check_flags, read_settings

UNAVAILABLE = 69
"""EX_UNAVAILABLE of sysexits.h."""


def run(options: argparse.Namespace) -> int:
    """Evaluates the models and prints one table, or JSON."""
    configurations = _configurations(options)
    with reserved_stdout() as stdout:
        found = evaluate_together(
            configurations,
            output_path=options.output_path,
            resume=options.resume,
            jobs=options.jobs,
        )
        if options.json:
            print(results_json(found[0].document), end="", file=stdout)
        else:
            print(results_tables([each.document for each in found]), file=stdout)
            for each in found:
                for note in failure_notes(allocator_label(each.document["config"]), each.results):
                    print(note, file=stdout)
            if any(s.traceback for each in found for row in each.results for s in row.samples):
                folder = options.output_path or "DIR, after a run with --output-path DIR"
                print(f"tracebacks: verilocc-bench failures {folder}", file=sys.stderr)
    overall = [each.document["results"][OVERALL] for each in found]
    if all(each["infrastructure_failures"] and not each["samples"] for each in overall):
        print(
            "verilocc-bench evaluate: no answer: a server or the machine failed every time",
            file=sys.stderr,
        )
        return UNAVAILABLE
    return 0


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
    return configurations
