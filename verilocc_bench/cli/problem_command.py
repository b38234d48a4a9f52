"""`verilocc-bench problem`: what a file or an id holds, and the compiler's answer to it."""

from __future__ import annotations

import argparse
import json

from verilocc_bench.analysis.lower_bounds import lower_bound
from verilocc_bench.api.problems import Problem
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.cli.output_stream import summary_stream
from verilocc_bench.files import write_output
from verilocc_bench.verification import Verifier


def run(options: argparse.Namespace) -> int:
    """Prints the facts of a problem; with --output also writes it as a row in JSON."""
    stream = summary_stream(options.output, json=options.json)
    problem = load_instance(options)
    document = _document(problem)
    if options.output is not None:
        row: dict[str, object] = {"normalized": problem.normalized}
        if problem.label is not None:
            row |= {"assignment": dict(problem.label), "label_source": problem.label_source}
        write_output(options.output, json.dumps(row) + "\n")
    if options.json:
        print(json.dumps(document, indent=2))
        return 0
    width = max(map(len, document))
    for name, value in document.items():
        text = str(value)
        if isinstance(value, dict):
            text = ", ".join(f"{key} {count}" for key, count in value.items())
        print(f"{name.replace('_', ' '):{width}}  {text}", file=stream)
    return 0


def _document(problem: Problem) -> dict[str, object]:
    function = problem.function
    found: dict[str, object] = {
        "title": problem.title,
        "id": problem.id,
        "architecture": problem.arch,
        "instructions": function.instruction_count,
        "blocks": len(function.blocks),
        "virtual_registers": len(function.virtual_registers),
        "budget": {file.name: file.count for file in function.files},
        "lower_bound": lower_bound(problem, solver=False).value,
    }
    if problem.label is None:
        return found | {"compiler": f"no answer: {problem.label_absence or 'none is known'}"}
    verdict = Verifier(problem).verify(problem.label)
    return found | {"compiler": problem.label_source, "its_answer": str(verdict)}
