"""`verilocc-bench show`."""

from __future__ import annotations

import argparse
import sys

from verilocc_bench.allocators import NamedAssignment, Request
from verilocc_bench.cli.instance import Instance, load_instance, read_answer_for
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.evaluation import resolve_model
from verilocc_bench.files import STANDARD_OUTPUT
from verilocc_bench.report.picture import draw_assignment
from verilocc_bench.verification import FastVerifier


def run(options: argparse.Namespace) -> int:
    """Draws the instance under the given answer, its label, or linear scan's answer.

    The status is 1, and nothing drawn, for a wrong answer.
    """
    instance = load_instance(options)
    source, answer = _answer(options, instance)
    verdict = FastVerifier(instance.problem).verify(answer)
    if not verdict.valid:
        print(
            f"verilocc-bench show: {source}: a wrong answer for {options.instance}, "
            f"{len(verdict.findings)} findings, first: {verdict.findings[0].message}",
            file=sys.stderr,
        )
        return 1
    draw_assignment(
        instance.problem, answer, f"{instance.title}, registers by {source}", options.output
    )
    if options.output != STANDARD_OUTPUT:
        print(f"wrote {options.output}", file=sys.stderr)
    return 0


def _answer(options: argparse.Namespace, instance: Instance) -> tuple[str, NamedAssignment]:
    if options.answer is not None:
        answer = read_answer_for(instance.problem, options.answer)
        if answer.has_edits:
            raise InputError("answers with edits cannot be drawn", source=options.answer)
        return options.answer.name, answer.assignment
    if instance.label is not None and FastVerifier(instance.problem).verify(instance.label).valid:
        return instance.label_source, instance.label
    try:
        answer = resolve_model("linear-scan").allocate(Request(instance.problem))
        return "linear-scan", answer.assignment
    except AllocationFailed as error:
        raise InputError(
            f"there is no valid label, and linear-scan has no answer: {error}"
        ) from None
