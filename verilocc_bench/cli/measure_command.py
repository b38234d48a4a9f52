"""`verilocc-bench measure`: prepares a measurement on one's own GPU, and reads it back."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from verilocc_bench.api.problems import Problem
from verilocc_bench.cli.compare_command import compared_sides
from verilocc_bench.cli.comparison_document import comparison_text
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.cli.run_code_object import read_arrays
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.gpu_measurement import is_measurement, read_measurement
from verilocc_bench.measuring.folder import (
    MeasuredLaunch,
    launch_of_row,
    sizes_of_row,
    write_measurement,
)


def run(options: argparse.Namespace) -> int:
    """Reads the results of a folder, or writes a new folder; the status is 1 for a wrong answer."""
    if options.answer is None and is_measurement(Path(options.instance)):
        measurement = read_measurement(Path(options.instance))
        print(json.dumps(measurement.to_json(), indent=2) if options.json else measurement.text())
        return 0
    if options.answer is None or options.output is None:
        raise InputError("expected KERNEL, ANSWER and --output, or the folder of a measurement")
    problem = load_instance(options)
    sides = compared_sides(problem, options)
    if sides is None:
        return 1
    comparison = write_measurement(problem, sides, _launch(problem, options), options.output)
    if options.json:
        print(json.dumps(comparison.document, indent=2))
        return 0
    print(comparison_text(comparison.document))
    print(
        f"wrote {options.output}: nothing is measured yet; run `python run.py` there on a machine "
        f"with a GPU of {problem.arch}, then `verilocc-bench measure {options.output}`"
    )
    return 0


def _launch(problem: Problem, options: argparse.Namespace) -> MeasuredLaunch:
    if options.arguments is None:
        launch = launch_of_row(problem, options.tiles, options.depth)
        if options.grid is not None:
            raise InputError("--grid is for --arguments")
        return launch
    if options.grid is None:
        raise InputError("--arguments needs --grid")
    threads, shared = sizes_of_row(problem) if problem.row is not None else (None, 0)
    threads = options.threads or threads
    if threads is None:
        raise InputError("--arguments needs --threads: a file does not say it")
    shared = shared if options.shared is None else options.shared
    x, y, z = (*options.grid, 1, 1)[:3]
    arrays = read_arrays(options.arguments)
    return MeasuredLaunch((x, y, z), threads, shared, arguments=arrays)
