"""`verilocc-bench bound`: how few registers a function can do with, and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import groupby

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import (
    LowerBound,
    lower_bound,
    proves_infeasible,
    why_infeasible,
)
from verilocc_bench.analysis.lower_bounds.infeasibility import describe_place, describe_shape
from verilocc_bench.analysis.lower_bounds.json_form import from_json, to_json
from verilocc_bench.api.working import check_bound
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.cli.output_stream import summary_stream
from verilocc_bench.files import read_json, write_output


def run(options: argparse.Namespace) -> int:
    """Prints a lower bound with its proof, or checks one that was written before."""
    summary = summary_stream(options.output, json=options.json)
    problem = load_instance(options)
    if options.check is None:
        bound = lower_bound(problem, solver=options.solver)
    else:
        bound = from_json(read_json(options.check), problem)
    # The checker has seen every bound that is printed, whoever made it.
    check_bound(problem, bound)
    document = {
        "id": problem.id,
        **to_json(bound),
        "infeasible": proves_infeasible(problem, bound),
    }
    text = json.dumps(document, indent=None if options.output else 2)
    if options.output is not None:
        write_output(options.output, text + "\n")
    if options.json:
        print(text)
    else:
        print("\n".join(_lines(problem, bound)), file=summary)
    return 0


def _lines(problem: AllocationProblem, bound: LowerBound) -> Iterator[str]:
    if proves_infeasible(problem, bound):
        yield f"{problem.id}: no valid assignment exists, proof checked"
        yield why_infeasible(problem, bound)
    else:
        what = "registers" if bound.group == "vector" else f"registers of {bound.group}"
        yield f"{problem.id}: at least {bound.value} {what} ({bound.kind.value}), proof checked"
    if not bound.refutations:
        return
    first = bound.refutations[0]
    yield f"no assignment keeps to {describe_shape(first.shape)}:"
    for clique in first.cliques:
        count = len(clique.lanes) + len(clique.fixed)
        place = describe_place(problem, clique)
        yield f"  {place}: {count} lanes that cannot share registers"
        names = [f"{file}{unit}" for file, unit in clique.fixed]
        names += [
            f"%{register}." + ",".join(str(lane) for _, lane in lanes)
            for register, lanes in groupby(clique.lanes, key=lambda lane: lane[0])
        ]
        yield f"    {' '.join(names)}"
