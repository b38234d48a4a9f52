"""`verilocc-bench bound`: how few registers a function can do with, and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from itertools import groupby

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.lower_bounds import (
    Clique,
    LowerBound,
    check_certificate,
    lower_bound,
)
from verilocc_bench.analysis.lower_bounds.json_form import from_json, to_json
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.cli.output_stream import summary_stream
from verilocc_bench.files import read_json, write_output

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Prints a lower bound with its proof, or checks one that was written before."""
    summary = summary_stream(options.output, json=options.json)
    problem = load_instance(options).problem
    if options.check is None:
        bound = lower_bound(problem, solver=options.solver)
    else:
        bound = from_json(read_json(options.check), problem)
    # What is printed is always what the checker has seen, whoever made it.
    check_certificate(problem, bound)
    text = json.dumps({"id": problem.id, **to_json(bound)}, indent=None if options.output else 2)
    if options.output is not None:
        write_output(options.output, text + "\n")
    if options.json:
        print(text)
    else:
        print("\n".join(_lines(problem, bound)), file=summary)
    return 0


def _lines(problem: AllocationProblem, bound: LowerBound) -> Iterator[str]:
    what = "registers" if bound.group == "vector" else f"registers of {bound.group}"
    yield f"{problem.id}: at least {bound.value} {what} ({bound.kind.value}), proof checked"
    if not bound.refutations:
        return
    first = bound.refutations[0]
    limits = ", ".join(f"{file} {limit}" for file, limit in first.shape)
    yield f"no assignment keeps to {limits}:"
    for clique in first.cliques:
        lanes = len(clique.lanes) + len(clique.fixed)
        yield f"  {_place(problem, clique)}: {lanes} lanes that cannot share registers"
        yield f"    {' '.join(_names(clique))}"


def _place(problem: AllocationProblem, clique: Clique) -> str:
    if clique.instruction < 0:
        return "at the entry"
    instruction = problem.function.blocks[clique.block].instructions[clique.instruction]
    return f"after bb{clique.block} instruction {clique.instruction} ({instruction.opcode})"


def _names(clique: Clique) -> Iterator[str]:
    yield from (f"{file}{unit}" for file, unit in clique.fixed)
    for register, lanes in groupby(clique.lanes, key=lambda lane: lane[0]):
        yield f"%{register}." + ",".join(str(lane) for _, lane in lanes)
