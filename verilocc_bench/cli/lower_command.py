"""`verilocc-bench lower`."""

from __future__ import annotations

import argparse
import json

from verilocc_bench.api.answers import answer_of_file
from verilocc_bench.backends import backend_of
from verilocc_bench.cli.instance import is_wrong, load_instance
from verilocc_bench.cli.output_stream import summary_stream
from verilocc_bench.files import STANDARD_OUTPUT, write_output


def run(options: argparse.Namespace) -> int:
    """Writes the machine code and prints a summary.

    The status is 1, and nothing is written, for a wrong answer.
    """
    stream = summary_stream(options.output, json=options.json)
    problem = load_instance(options, lambda found: found.check_output(options.output))
    backend, kernel = backend_of(problem.target), problem.kernel()
    answer = answer_of_file(problem, options.answer)
    backend.check_answer(answer, options.answer)
    if is_wrong(problem, answer, options):
        return 1
    lowered = backend.lower(kernel, answer, options.output)
    write_output(options.output, lowered.data)
    if options.json:
        print(json.dumps(lowered.document, indent=2))
        return 0
    wrote = () if options.output == STANDARD_OUTPUT else (f"wrote {options.output}",)
    print("\n".join((*lowered.lines, *wrote)), file=stream)
    return 0
