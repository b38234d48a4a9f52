"""`verilocc-bench lower`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from verilocc_bench.backends import backend_of, backend_of_file
from verilocc_bench.cli.instance import (
    load_instance,
    read_answer_for,
    read_kernel,
    read_raw_kernel,
)
from verilocc_bench.cli.output_stream import summary_stream
from verilocc_bench.cli.wrong_answer import is_wrong
from verilocc_bench.files import STANDARD_OUTPUT, read_data, write_output


def run(options: argparse.Namespace) -> int:
    """Writes the machine code and prints a summary.

    The status is 1, and nothing is written, for a wrong answer.
    """
    stream = summary_stream(options.output, json=options.json)
    path = Path(options.instance)
    if path.is_file():
        data = read_data(path)
        backend = backend_of_file(data)
        backend.check_output(options.output)
        kernel = read_kernel(path, data, options)
    else:
        instance = load_instance(options)
        backend = backend_of(instance.problem.target)
        backend.check_output(options.output)
        kernel = read_raw_kernel(instance, options)
    answer = read_answer_for(kernel.problem, options.answer)
    backend.check_answer(answer, options.answer)
    if is_wrong(kernel.problem, answer, options):
        return 1
    lowered = backend.lower(kernel, answer, options.output)
    write_output(options.output, lowered.data)
    if options.json:
        print(json.dumps(lowered.document, indent=2))
        return 0
    wrote = () if options.output == STANDARD_OUTPUT else (f"wrote {options.output}",)
    print("\n".join((*lowered.lines, *wrote)), file=stream)
    return 0
