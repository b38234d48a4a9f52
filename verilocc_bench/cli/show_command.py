"""`verilocc-bench show`."""

from __future__ import annotations

import argparse
import sys

from verilocc_bench.allocators import NamedAssignment
from verilocc_bench.api.answers import answer_of_file
from verilocc_bench.api.problems import Problem
from verilocc_bench.api.working import usual_assignment
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.errors import InputError
from verilocc_bench.files import STANDARD_OUTPUT
from verilocc_bench.report.picture import draw_assignment
from verilocc_bench.verification import FastVerifier


def run(options: argparse.Namespace) -> int:
    """Draws the instance under the given answer, its label, or linear scan's answer.

    The status is 1, and nothing drawn, for a wrong answer.
    """
    problem = load_instance(options)
    source, answer = _answer(options, problem)
    verdict = FastVerifier(problem).verify(answer)
    if not verdict.valid:
        print(
            f"verilocc-bench show: {source}: a wrong answer for {options.instance}, "
            f"{len(verdict.findings)} findings, first: {verdict.findings[0].message}",
            file=sys.stderr,
        )
        return 1
    draw_assignment(problem, answer, f"{problem.title}, registers by {source}", options.output)
    if options.output != STANDARD_OUTPUT:
        print(f"wrote {options.output}", file=sys.stderr)
    return 0


def _answer(options: argparse.Namespace, problem: Problem) -> tuple[str, NamedAssignment]:
    if options.answer is None:
        return usual_assignment(problem)
    answer = answer_of_file(problem, options.answer)
    if answer.has_edits:
        raise InputError("answers with edits cannot be drawn", source=options.answer)
    return options.answer.name, answer.assignment
