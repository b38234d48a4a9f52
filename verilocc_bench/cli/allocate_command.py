"""`verilocc-bench allocate`."""

from __future__ import annotations

import argparse
import json
import sys

from verilocc_bench.allocators import AllocationInterrupted, Response, answers_batches
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.cli.model_options import allocator_options, check_used
from verilocc_bench.edits.answer_files import answer_to_json
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate import PreparedProblem, RunSettings, judge, resolve_model, settle
from verilocc_bench.files import write_output

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Writes the answer; the status is 1 where there is none, or a wrong one."""
    instance = load_instance(options)
    asked = allocator_options(options)
    check_used(options, [options.model])
    if asked.few_shot:
        raise InputError("--few-shot is for evaluate, which has a dataset to take examples from")
    allocator = resolve_model(options.model, asked)
    prepared = PreparedProblem(instance.problem, instance.label, instance.alternatives)
    settings = RunSettings.make(1, options.seed, asked)
    try:
        ((_, judged),) = settle([(prepared, 0)], allocator, settings)
    except AllocationInterrupted as interruption:
        judged = judge(prepared.verifier, Response(interruption.answer), 0)
        print(f"{options.model}: interrupted; this is its best answer so far", file=sys.stderr)
    finally:
        if answers_batches(allocator):
            allocator.close()
    complaint = f"verilocc-bench allocate: {options.model}"
    sample = judged.sample
    if judged.answer is None or judged.verdict is None:
        print(f"{complaint}: {sample.failure}: {sample.message}", file=sys.stderr)
        return 1
    text = json.dumps(answer_to_json(instance.problem.id, judged.answer)) + "\n"
    write_output(options.output, text)
    if not judged.valid:
        count = sample.findings_count
        plural = "" if count == 1 else "s"
        print(f"{complaint}: a wrong answer, {count} finding{plural}: see verify", file=sys.stderr)
    return 0 if judged.valid else 1
