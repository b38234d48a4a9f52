"""`verilocc-bench allocate`."""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import replace

from verilocc_bench.allocators import LabelReplay, Request
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.evaluate import answer_to_json, ask, resolve_model
from verilocc_bench.files import write_atomically
from verilocc_bench.verify import Verifier

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Writes the answer; the status is 1 where there is none, or a wrong one."""
    instance = load_instance(options)
    allocator = resolve_model(options.model)
    request = Request(instance.problem, seed=options.seed)
    if isinstance(allocator, LabelReplay):
        request = replace(request, label=instance.label, alternatives=instance.alternatives)
    sample, answer = ask(allocator, request, Verifier(instance.problem))
    complaint = f"verilocc-bench allocate: {options.model}"
    if answer is None or sample.verdict is None:
        print(f"{complaint}: {sample.failure}: {sample.message}", file=sys.stderr)
        return 1
    text = json.dumps(answer_to_json(instance.problem.id, answer)) + "\n"
    if options.output is None:
        print(text, end="")
    else:
        write_atomically(options.output, text)
    if not sample.valid:
        count = sample.findings_count
        plural = "" if count == 1 else "s"
        print(f"{complaint}: a wrong answer, {count} finding{plural}: see verify", file=sys.stderr)
    return 0 if sample.valid else 1
