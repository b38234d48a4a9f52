"""`verilocc-bench allocate`."""

from __future__ import annotations

import argparse
import json
import sys

from verilocc_bench.allocators import AllocationInterrupted, Response
from verilocc_bench.api.working import prepared_for
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.cli.output_stream import tell_objective
from verilocc_bench.cli.verify_command import words_of_valid
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import judge, resolve_model, settings_kind, settled_samples
from verilocc_bench.files import is_stream, write_output
from verilocc_bench.settings.command_line import check_flags, read_settings
from verilocc_bench.settings.language_model import LanguageModelSettings


def run(options: argparse.Namespace) -> int:
    """Writes the answer; the status is 1 without one, or with a wrong one."""
    problem = load_instance(options)
    kind = settings_kind(options.model)
    check_flags(options, [options.model], [kind])
    settings = read_settings(options, kind)
    if isinstance(settings, LanguageModelSettings) and settings.few_shot:
        raise InputError("--few-shot is for evaluate, which has a dataset to take examples from")
    tell_objective(options, options.model, settings)
    allocator = resolve_model(options.model, settings)
    prepared = prepared_for(problem, allocator)
    try:
        ((_, judged),) = settled_samples([(prepared, 0)], allocator, options.seed)
    except AllocationInterrupted as interruption:
        judged = judge(prepared.verifier, Response(interruption.answer), 0)
        print(f"{options.model}: interrupted; this is its best answer so far", file=sys.stderr)
    finally:
        allocator.close()
    complaint = f"verilocc-bench allocate: {options.model}"
    sample = judged.sample
    if judged.answer is None or judged.verdict is None:
        print(f"{complaint}: {sample.failure}: {sample.message}", file=sys.stderr)
        return 1
    text = json.dumps(answer_to_json(problem.id, judged.answer)) + "\n"
    write_output(options.output, text)
    if not judged.valid:
        count = sample.findings_count
        plural = "" if count == 1 else "s"
        print(f"{complaint}: a wrong answer, {count} finding{plural}: see verify", file=sys.stderr)
    elif options.output is not None and not is_stream(options.output):
        edited = judged.answer.has_edits
        print(words_of_valid(problem, judged.verdict, edited=edited), file=sys.stderr)
        print(f"wrote {options.output}", file=sys.stderr)
    return 0 if judged.valid else 1
