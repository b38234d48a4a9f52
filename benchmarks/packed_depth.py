"""Kernels whose blocks along K are shorter than what Triton's `kpack` makes of an instruction.

    python benchmarks/packed_depth.py run --output FILE
    python benchmarks/packed_depth.py table FILE…

Triton 3.7.1 widens the operands of a matrix instruction by `kpack`, whatever K a block has. Where a
block is shorter, each product is added twice (or four times), and the accumulator is divided
afterwards, with all that it held before. So each step along K halves the sum of the earlier
ones. (Triton's pull request 10290 mends it in a later version.)

`run` compiles every point of `default` for AMD targets with `kpack` 2 and short blocks, with
`kpack` 2 and again with 1 (and four points with longer blocks for comparison), executes llc's
own allocation, and compares the numbers with the reference and with this explanation. A run that is
started again goes on where it was. Needs the builders' compilers.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tabulate import tabulate

from dataset_builders.building.compile_point import compile_point
from dataset_builders.journal.journal import decode_document
from dataset_builders.journal.results import PointResult, result_from_document
from dataset_builders.sweeps import SweepPoint
from dataset_builders.sweeps.point import Parameters
from dataset_builders.sweeps.registry import sweep_named
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends import backend_of
from verilocc_bench.execution import AnswerExecutor
from verilocc_bench.references.formulas import activate
from verilocc_bench.references.numbers import decode, encode

LONGER_BLOCKS = 4
_DEPTH = re.compile(r"v_mfma_[a-z0-9]+_\d+x\d+x(\d+)")

Numbers = NDArray[np.float64]


def points() -> Iterator[SweepPoint]:
    """Points with `kpack` 2 whose blocks are short for some instruction, and some others."""
    longer = 0
    for point in sweep_named("default").points():
        parameters = json.loads(point.parameters_json)
        if point.arch == "sm_80" or parameters.get("kpack") != 2:
            continue
        depth = parameters["block_k"]
        if depth <= 16 or (parameters["dtype"] == "int8" and depth <= 32):
            yield point
        elif longer < LONGER_BLOCKS and depth == 32 and parameters["matrix_instr_nonkdim"] == 16:
            longer += 1
            yield point


def with_parameters(point: SweepPoint, **changes: Any) -> SweepPoint:
    entries = dict(json.loads(point.parameters_json)) | changes
    return replace(point, parameters=Parameters(tuple(sorted(entries.items()))))


def executed(result: PointResult) -> dict[str, Any]:
    """llc's own allocation of a compiled point against the reference and the explanation."""
    row, raw = result.row, result.raw
    assert row is not None
    assert raw is not None
    problem = AllocationProblem.from_text(row.normalized, row.id)
    kernel = backend_of(row.arch).read_raw(raw.content, problem, row.id)
    executor = AnswerExecutor.of_row(kernel, row, tiles=1, asynchronous=False)
    own = executor.own
    text = "\n".join(i.text for i in executor.load(executor.own_code).program.instructions)
    depth = max((int(found) for found in _DEPTH.findall(text)), default=0)
    (compared,) = [c for c in own.comparisons if c.name == "c"]
    parameters = json.loads(row.params)
    times = max(1, depth * parameters["kpack"] // parameters["block_k"])
    return {
        "row": row.id, "outcome": own.outcome, "instruction_depth": depth, "times": times,
        "error": compared.error, "tolerance": compared.tolerance,
        "error_as_explained": explained_error(executor, own.buffers["c"], parameters, times),
    }  # fmt: skip


def explained_error(
    executor: AnswerExecutor, left: NDArray[Any], parameters: dict[str, Any], times: int
) -> float:
    """The largest difference from what the explanation gives, by the largest number of C."""
    launch = executor.launch
    values = {a.name: a.value for a in launch.arguments if a.name not in launch.buffers}
    m, n, k = (int(values[name]) for name in "MNK")
    a = stored(executor, "a", m, k, transposed=parameters["transpose_a"])
    b = stored(executor, "b", k, n, transposed=parameters["transpose_b"])
    if parameters["precision"] == "bf16x3":
        # Each step along K has an accumulator of its own: first low by high, then high by low.
        (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
        product = a_low @ b_high
        for one, two in ((a_high, b_low), (a_high, b_high)):
            product = product / times + one @ two
    else:
        product = np.zeros((m, n))
        for first in range(0, k, parameters["block_k"]):
            step = slice(first, first + parameters["block_k"])
            product = np.asarray(product / times + a[:, step] @ b[step], np.float64)
            if parameters["out_dtype"] == "int32":
                product = np.floor(product)
    if parameters["bias"]:
        product = product + stored(executor, "bias", 1, n, transposed=False)
    result = activate(product, parameters["activation"])
    if parameters["residual"]:
        result = result + stored(executor, "residual", m, n, transposed=False)
    buffer = launch.buffers["c"]
    got = decode(left.reshape(buffer.initial.shape)[:m, :n], buffer.element)
    return float(np.abs(got - result).max() / np.abs(result).max())


def stored(executor: AnswerExecutor, name: str, m: int, n: int, *, transposed: bool) -> Numbers:
    """The numbers of a matrix in memory, without what lies between its rows."""
    buffer = executor.launch.buffers[name]
    numbers = np.atleast_2d(decode(buffer.initial, buffer.element))
    return np.asarray((numbers.T if transposed else numbers)[:m, :n], np.float64)


def halves(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """The bf16 number next to each number, and the one next to the rest."""
    high = decode(encode(numbers, "bf16"), "bf16")
    return high, decode(encode(numbers - high, "bf16"), "bf16")


def run(output: Path) -> None:
    lines = output.read_text().splitlines() if output.exists() else []
    done = {(json.loads(line)["point"], json.loads(line)["kpack"]) for line in lines}
    for point in points():
        for kpack in (2, 1):
            if (point.key, kpack) in done:
                continue
            changed = with_parameters(point, kpack=kpack)
            result = result_from_document(decode_document(compile_point(changed)))
            about = {"point": point.key, "kpack": kpack, "arch": point.arch}
            about |= {"parameters": json.loads(changed.parameters_json)}
            if result.rejection is not None:
                about |= {"outcome": "rejected", "why": result.rejection}
            else:
                about |= executed(result)
            with output.open("a") as file:
                file.write(json.dumps(about) + "\n")


def table(files: list[Path]) -> None:
    found = [json.loads(line) for path in files for line in path.read_text().splitlines()]
    rows = [
        (
            r["point"], r["kpack"], r["parameters"]["precision"], r["instruction_depth"],
            r["times"], r["outcome"], f"{r['error']:.2g}", f"{r['tolerance']:.0e}",
            f"{r['error_as_explained']:.2g}",
        )
        for r in found
        if "error" in r
    ]  # fmt: skip
    headers = ("point", "kpack", "precision", "K of instruction", "times added", "numbers",
               "error", "tolerance", "error as explained")  # fmt: skip
    print(tabulate(rows, headers))
    print([(r["point"], r["kpack"], r["why"]) for r in found if "error" not in r])


def main() -> None:
    parser = argparse.ArgumentParser(description="kernels with short blocks and kpack 2")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("run").add_argument("--output", type=Path, required=True)
    actions.add_parser("table").add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    if options.action == "run":
        run(options.output)
    else:
        table(options.files)


if __name__ == "__main__":
    main()
