"""`verilocc-bench show`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from verilocc_bench.allocators import NamedAssignment
from verilocc_bench.api.answers import answer_of_file
from verilocc_bench.api.problems import Problem
from verilocc_bench.api.working import usual_assignment
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.errors import InputError
from verilocc_bench.files import STANDARD_OUTPUT
from verilocc_bench.report.drawing import checked_format, write_drawing
from verilocc_bench.report.occupation import occupation_of


def run(options: argparse.Namespace) -> int:
    """Draws the instance under one answer or two, or under its label or linear scan's answer.

    The status is 1 if an answer is wrong. It is drawn, with what is wrong marked.
    """
    checked_format(options.output)
    problem = load_instance(options)
    occupations = [
        occupation_of(problem, answer, source) for source, answer in _answers(options, problem)
    ]
    title = problem.title
    if len(occupations) == 1:
        title = f"{title}, registers by {occupations[0].source}"
    write_drawing(problem, occupations, title, options.output)
    if options.output != STANDARD_OUTPUT:
        print(f"wrote {options.output}", file=sys.stderr)
    for occupation in occupations:
        if not occupation.valid:
            print(
                f"verilocc-bench show: {occupation.source}: a wrong answer for {options.instance}, "
                f"findings: {occupation.findings_count:,}, the first "
                f"{occupation.clashes[0].finding.kind.value}: "
                f"{occupation.clashes[0].finding.message}",
                file=sys.stderr,
            )
    return int(not all(occupation.valid for occupation in occupations))


def _answers(
    options: argparse.Namespace, problem: Problem
) -> Iterator[tuple[str, NamedAssignment]]:
    if options.answer is None:
        yield usual_assignment(problem)
        return
    paths: list[Path] = [path for path in (options.answer, options.other) if path is not None]
    same_name = len({path.name for path in paths}) < len(paths)
    for path in paths:
        answer = answer_of_file(problem, path)
        if answer.has_edits:
            raise InputError("answers with edits cannot be drawn", source=path)
        yield str(path) if same_name else path.name, answer.assignment
