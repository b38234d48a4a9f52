"""How fast the package is, with LLVM's own times on the same functions beside it.

    python -m benchmarks.speed [--smt-pairs N] [--json]

Everything runs on one core, in one process after the other; times are milliseconds, the
least of several runs, with the label as the answer. *cold*: from the normalized text to the
verdict. *warm*: a further answer for the same function. Z3 is left out if a function has
more colliding pairs than --smt-pairs. llc's columns come from its own timers: greedy register
allocation on the raw machine IR, and the machine verifier on the assigned one; without
llc they are left out.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tabulate import tabulate

from benchmarks.allocation_study.compiler_times import GREEDY, pass_seconds
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.tools import AFTER_ALLOCATION, find_llc
from verilocc_bench.dataset import RawRow, Row, embedded_path, load_rows, read_parquet
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.targets import get_target
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.smt import SMTVerifier
from verilocc_bench.verification.symbolic import SymbolicChecker

KERNELS_SHOWN = 10
MILLISECONDS = 1000
VERIFIER = "Verify generated machine code"


def least(action: Callable[[], Any], runs: int = 5) -> float:
    """The least time of an action, in milliseconds."""
    found = []
    for _ in range(runs):
        started = time.perf_counter()
        action()
        found.append(time.perf_counter() - started)
    return min(found) * MILLISECONDS


def llc_times(llc: Path, row: Row, machine_ir: str) -> dict[str, float]:
    """Milliseconds of llc's allocation and of its verifier, each the least of three runs."""
    found = {}
    options = {
        GREEDY: ["-start-before=greedy", AFTER_ALLOCATION],
        VERIFIER: ["-run-pass=none", "-verify-machineinstrs"],
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.mir")
        path.write_text(machine_ir)
        command = [str(llc), "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={row.arch}", "-O3"]
        command += ["-time-passes", "-o", os.devnull, str(path)]
        for name, own in options.items():
            runs = [
                subprocess.run([*command, *own], check=True, capture_output=True, text=True)
                for _ in range(3)
            ]
            found[name] = MILLISECONDS * min(pass_seconds(run.stderr)[name] for run in runs)
    return found


def allocation_time(name: str, problem: AllocationProblem, runs: int) -> float | None:
    """Milliseconds of an allocator; None where it finds no answer."""
    try:
        return least(lambda: BUILT_IN[name].allocate(Request(problem)), runs)
    except AllocationFailed:
        return None


def smt_times(problem: AllocationProblem, row: Row, pairs: int) -> dict[str, float]:
    """Milliseconds of Z3; none if more than this many pairs of registers may collide."""
    label = row.label
    assert label is not None
    try:
        smt = SMTVerifier(problem, maximum_pairs=pairs)
    except InputError:
        return {}
    build = least(lambda: SMTVerifier(problem, maximum_pairs=pairs), 1)
    return {"Z3 build": build, "Z3 answer": least(lambda: smt.verify(label), 2)}


def kernel_row(row: Row, raw: str | None, llc: Path | None, smt_pairs: int) -> dict[str, Any]:
    label = row.label
    assert label is not None
    problem = AllocationProblem.from_text(row.normalized)
    verifier = FastVerifier(problem)
    assert verifier.verify(label).valid
    checker = SymbolicChecker(problem.function)

    def cold() -> None:
        FastVerifier(AllocationProblem.from_text(row.normalized)).verify(label)

    def independent_cold() -> None:
        assert not SymbolicChecker(parse_function(row.normalized)).check(label)

    found: dict[str, Any] = {
        "kernel": f"{row.arch} {row.kernel}",
        "instructions": row.n_instructions,
        "registers": row.n_virtual_registers,
        "parse": least(lambda: parse_function(row.normalized)),
        "analyse": least(lambda: AllocationProblem(problem.function).liveness),
        "fast cold": least(cold),
        "fast warm": least(lambda: verifier.verify(label), 30),
        "independent cold": least(independent_cold, 3),
        "independent warm": least(lambda: checker.check(label), 3),
        **smt_times(problem, row, smt_pairs),
        "linear-scan": allocation_time("linear-scan", problem, 5),
        "graph-coloring": allocation_time("graph-coloring", problem, 2),
    }
    if raw is not None:

        def from_machine_ir() -> None:
            module = parse_mir(raw)
            normalize_machine_function(module.functions[0], module, get_target(row.arch))

        found["MIR to IR"] = least(from_machine_ir, 3)
        if llc is not None:
            times = llc_times(llc, row, raw)
            found["llc greedy"], found["llc verifier"] = times[GREEDY], times[VERIFIER]
    return found


def processes() -> dict[str, float]:
    """Milliseconds of whole commands."""
    commands = {
        f"evaluate --model {model}, all of mini": ["evaluate", "--model", model, "--json"]
        for model in ("linear-scan", "graph-coloring", "compiler")
    }
    found = {}
    for name, arguments in {**commands, "--help": ["--help"]}.items():
        command = [sys.executable, "-m", "verilocc_bench", *arguments]
        found[name] = least(
            lambda command=command: subprocess.run(command, check=True, capture_output=True), 3
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--smt-pairs", type=int, default=100_000)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions)
    raw = {
        raw.id: raw.content
        for path in embedded_path().glob("raw/data/*/*/*.parquet")
        for raw in read_parquet(path, RawRow)
        if raw.format == "mir"
    }
    try:
        llc = find_llc()
    except InputError:
        llc = None
    chosen = rows[:: max(1, len(rows) // KERNELS_SHOWN)]
    kernels = [kernel_row(row, raw.get(row.id), llc, options.smt_pairs) for row in chosen]
    document: dict[str, Any] = {"kernels_ms": kernels, "processes_ms": processes()}
    if options.json:
        print(json.dumps(document, indent=1))
        return
    print("Milliseconds, one core\n")
    print(tabulate(kernels, headers="keys", floatfmt=".2f"))
    print()
    print(tabulate(document["processes_ms"].items(), headers=("process", "ms"), floatfmt=".0f"))


if __name__ == "__main__":
    main()
