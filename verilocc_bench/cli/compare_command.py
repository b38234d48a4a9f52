"""`verilocc-bench compare`: two assignments of one kernel by their machine code."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from verilocc_bench.api.answers import answer_of_file
from verilocc_bench.api.problems import Problem
from verilocc_bench.backends import CodeComparison, ComparedAllocation, backend_of
from verilocc_bench.cli.comparison_document import comparison_text
from verilocc_bench.cli.instance import is_wrong, load_instance
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.gpu_measurement import read_measurement
from verilocc_bench.files import write_atomically


def run(options: argparse.Namespace) -> int:
    """Prints the comparison, and with --output writes all files that are needed to repeat it.

    The status is 1, and nothing is written, if one of the answers is wrong.
    """
    folder: Path | None = options.output
    if folder is not None and folder.exists() and not folder.is_dir():
        raise InputError("expected a folder", source=folder)
    problem = load_instance(options, lambda found: found.check_comparison())
    backend, kernel = backend_of(problem.target), problem.kernel()
    sides = compared_sides(problem, options)
    if sides is None:
        return 1
    comparison = backend.compare(kernel, sides, with_files=folder is not None)
    if options.execute:
        comparison.document["executed"] = _executed(options)
    if options.measured is not None:
        comparison.document["measured"] = _measured(options, comparison)
    document = json.dumps(comparison.document, indent=2)
    if folder is not None:
        for name, data in comparison.files.items():
            write_atomically(folder / name, data)
        write_atomically(folder / "comparison.json", document + "\n")
    print(document if options.json else comparison_text(comparison.document))
    if folder is not None and not options.json:
        print(f"wrote {folder}")
    return 0


def _measured(options: argparse.Namespace, comparison: CodeComparison) -> dict[str, Any]:
    """The figures of a measurement of these two sides, marked as unverified."""
    problem = load_instance(options)
    answer = answer_of_file(problem, options.answer)
    figure = read_measurement(options.measured).figure(problem.id, answer)
    found, expected = figure["names"][1], comparison.document["other"]["name"]
    if found != expected:
        raise InputError(
            f"the measurement is beside {found!r}, not {expected!r}", source=options.measured
        )
    return figure


def _executed(options: argparse.Namespace) -> dict[str, dict[str, int]]:
    """How many instructions of each kind the waves of each side execute."""
    from verilocc_bench.cli.run_command import executor_for, lines_of

    problem = load_instance(options)
    executor = executor_for(problem, options)
    done = {"answer": executor.execute(answer_of_file(problem, options.answer))}
    if options.other is not None:
        done["other"] = executor.execute(answer_of_file(problem, options.other))
    elif problem.label is not None:
        done["other"] = executor.execute(Answer(problem.label))
    else:
        done["other"] = executor.own
    for name, side in done.items():
        if not side.accepted:
            raise InputError(f"{name}: executed, it gives {lines_of(side)[0]}")
    return {name: dict(side.counts) for name, side in done.items()}


def compared_sides(
    problem: Problem, options: argparse.Namespace
) -> tuple[ComparedAllocation, ComparedAllocation] | None:
    """The answer and the other side; None, after a message, if one of them is wrong."""
    backend = backend_of(problem.target)
    answer = answer_of_file(problem, options.answer)
    backend.check_answer(answer, options.answer)
    if is_wrong(problem, answer, options):
        return None
    if options.other is not None:
        other = answer_of_file(problem, options.other)
        backend.check_answer(other, options.other)
        side = ComparedAllocation(options.other.name, other)
    elif problem.label is not None:
        side = ComparedAllocation(problem.label_source, Answer(problem.label))
    elif backend.own_allocation is not None:
        side = ComparedAllocation(backend.own_allocation, None)
    else:
        raise InputError("it has no label: name a second answer", source=options.instance)
    if side.answer is not None and is_wrong(problem, side.answer, options, side.name):
        return None
    return ComparedAllocation("answer", answer), side
