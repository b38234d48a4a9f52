"""Answers for NVIDIA that run by the compiler's own rules, and the judges that say so.

    python -m benchmarks.runnable answers [--dataset mini] [--architecture sm_80] \\
        --measured FILE.jsonl

asks `best` with and without `--runnable` about all its rows, and goes on from `--measured`.
It prints a table: the registers beside ptxas's own, what `lower` says, and what the timing
model says.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.commands import run_command
from benchmarks.machine_code import read
from benchmarks.timing_model import TimingModel
from benchmarks.timing_operations import registers_of
from verilocc_bench.api import problems
from verilocc_bench.api.working import allocate, verify
from verilocc_bench.backends.nvidia.distance_table import distance_table
from verilocc_bench.backends.nvidia.kernel import SassKernel
from verilocc_bench.backends.nvidia.lower import write_answer
from verilocc_bench.backends.nvidia.write_back import LoweredCubin

Record = dict[str, Any]


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    answers = commands.add_parser("answers")
    answers.set_defaults(action=_answers)
    answers.add_argument("--dataset", default="mini")
    answers.add_argument("--split", default="test")
    answers.add_argument("--architecture", default="sm_80")
    answers.add_argument("--limit", type=int)
    answers.add_argument("--measured", type=Path, required=True)
    return run_command(parser, arguments)


def _measure(options: argparse.Namespace) -> list[Record]:
    """The records of all rows, those that are there already not made again."""
    rows = problems.load_problems(options.dataset, split=options.split, arch=options.architecture)
    path: Path = options.measured
    known: dict[str, Record] = {each["id"]: each for each in read(path)}
    with path.open("a", encoding="utf-8") as file:
        for row in tqdm(rows[: options.limit], unit="kernel"):
            if row.id not in known:
                known[row.id] = {"id": row.id, "title": row.title, **_answer(row)}
                file.write(json.dumps(known[row.id]) + "\n")
                file.flush()
    return [known[row.id] for row in rows[: options.limit]]


def distances(architecture: str) -> dict[tuple[str, str, str, str], int]:
    """The table of an architecture as the timing model reads it."""
    cells = distance_table(architecture).cells.items()
    return {(kind.hazard.value, *kind[1:]): cell.cycles for kind, cell in cells}


def _answers(options: argparse.Namespace) -> None:
    records = _measure(options)
    print("| kernel | instructions | ptxas | `best` | `best --runnable` | lower | timing model |")
    print("|---|---|---|---|---|---|---|")
    for each in records:
        print(
            f"| {each['title']} | {each['instructions']} | {each['compiler']} | {each['plain']} "
            f"({each['plain_hazards']} hazards) | {each['runnable']} | {each['verdict']} "
            f"| {each['destroyed']} values destroyed |"
        )


def _answer(row: problems.Problem) -> Record:
    kernel: SassKernel = row.kernel()
    assert row.label is not None
    compiler = verify(row, row.label)
    plain, runnable = allocate(row, "best"), allocate(row, "best", runnable=True)
    lowered = {name: write_answer(kernel, a) for name, a in (("a", plain), ("b", runnable))}
    model = TimingModel(kernel.code.function, distances(row.target.name))
    return {
        "instructions": len(kernel.code.function.instructions),
        "compiler": _registers(compiler.registers_used),
        "plain": _registers(verify(row, plain).registers_used),
        "plain_hazards": len(lowered["a"].hazards),
        "plain_destroyed": _destroyed(model, lowered["a"]),
        "runnable": _registers(verify(row, runnable).registers_used),
        "hazards": len(lowered["b"].hazards),
        "verdict": lowered["b"].verdict.value,
        "destroyed": _destroyed(model, lowered["b"]),
        "cleared": lowered["b"].cleared_reuse_marks,
    }


def _destroyed(model: TimingModel, lowered: LoweredCubin) -> int:
    return len(model.destroyed(registers_of(lowered.function)))


def _registers(used: Mapping[str, int] | None) -> int:
    """The registers of a valid answer in the scored file."""
    assert used is not None
    return used["R"]


if __name__ == "__main__":
    sys.exit(main())
