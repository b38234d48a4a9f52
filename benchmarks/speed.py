"""How fast the package is, with LLVM's own times on the same functions beside it.

    python benchmarks/speed.py [--build] [--json]

Everything runs on one core, in one process after the other; times are the
least of several runs. `--build` also compiles ten kernels and says where the
time goes. llc's columns are the wall time of its whole process, and of its
greedy allocation alone as its own timers report it; without llc 22 they are
left out.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tabulate import tabulate
from timing import MILLISECONDS, least

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.dataset import RawRow, Row, embedded_path, load_rows, read_parquet
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import parse_function
from verilocc_bench.targets import get_target
from verilocc_bench.verification import FastVerifier

KERNELS_SHOWN = 8


def find_llc() -> str | None:
    for name in ("llc-22", "llc"):
        path = shutil.which(name)
        if path is None:
            continue
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        if re.search(r"LLVM version 22\.", version.stdout):
            return path
    return None


def llc_times(llc: str, row: Row, mir: str) -> tuple[float, float | None]:
    """Milliseconds of llc from machine IR through allocation: the process, greedy alone."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.mir")
        path.write_text(mir)
        command = [llc, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={row.arch}", "-O3"]
        command += ["-start-before=greedy", "-stop-after=virtregrewriter,2", "-o", os.devnull]
        whole = least(lambda: subprocess.run([*command, path], check=True, capture_output=True), 3)
        timed = subprocess.run(
            [*command, "-time-passes", path], check=True, capture_output=True, text=True
        )
    lines = [line for line in timed.stderr.splitlines() if "Greedy Register Allocator" in line]
    # The wall time is the last time before the name; the three rounds add up.
    seconds = [float(re.findall(r"(\d+\.\d+) \(", line)[-1]) for line in lines]
    return whole, sum(seconds) * MILLISECONDS if seconds else None


def allocation_time(name: str, problem: AllocationProblem, runs: int) -> float | None:
    """Milliseconds of an allocator; None where it finds no answer."""
    allocator = BUILT_IN[name]
    try:
        return least(lambda: allocator.allocate(Request(problem)), runs)
    except AllocationFailed:
        return None


def kernel_row(row: Row, raw: str | None, llc: str | None) -> dict[str, Any]:
    label = row.label
    problem = AllocationProblem.from_text(row.normalized)
    verifier = FastVerifier(problem)
    verifier.verify(label)

    def cold() -> None:
        FastVerifier(AllocationProblem.from_text(row.normalized)).verify(label)

    found: dict[str, Any] = {
        "kernel": f"{row.kernel} {row.arch}",
        "instructions": row.n_instructions,
        "parse": least(lambda: parse_function(row.normalized)),
        "analyse": least(lambda: AllocationProblem(problem.function).liveness),
        "parse + analyse + verify": least(cold),
        "verify again": least(lambda: verifier.verify(label), 20),
        "linear-scan": allocation_time("linear-scan", problem, 5),
        "graph-coloring": allocation_time("graph-coloring", problem, 2),
    }
    if raw is not None:

        def from_machine_ir() -> None:
            module = parse_mir(raw)
            normalize_machine_function(module.functions[0], module, get_target(row.arch))

        found["MIR to IR"] = least(from_machine_ir, 3)
        if llc is not None:
            found["llc process"], found["llc greedy"] = llc_times(llc, row, raw)
    return found


def evaluation() -> dict[str, float]:
    found = {}
    for model in ("linear-scan", "graph-coloring", "compiler"):
        command = [sys.executable, "-m", "verilocc_bench", "evaluate", "--model", model, "--json"]
        found[f"evaluate --model {model}, all of mini"] = least(
            lambda command=command: subprocess.run(command, check=True, capture_output=True), 3
        )
    command = [sys.executable, "-m", "verilocc_bench", "--help"]
    found["--help"] = least(lambda: subprocess.run(command, check=True, capture_output=True))
    return found


def build() -> str:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "verilocc_bench", "build", "--sweep", "default"]
        command += ["--limit", "10", "--jobs", "1", "--output", f"{folder}/d"]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
    return run.stderr.strip().splitlines()[-1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = sorted(load_rows("mini").rows, key=lambda row: row.n_instructions, reverse=True)
    raw = {
        raw.id: raw.content
        for path in embedded_path().glob("raw/data/*/*/*.parquet")
        for raw in read_parquet(path, RawRow)
        if raw.format == "mir"
    }
    llc = find_llc()
    chosen = rows[:: max(1, len(rows) // KERNELS_SHOWN)][:KERNELS_SHOWN]
    kernels = [kernel_row(row, raw.get(row.id), llc) for row in chosen]
    document: dict[str, Any] = {"kernels_ms": kernels, "processes_ms": evaluation()}
    if options.build:
        document["build"] = build()
    if options.json:
        print(json.dumps(document, indent=1))
        return
    print("Milliseconds, one core\n")
    print(tabulate(kernels, headers="keys", floatfmt=".2f"))
    print()
    print(tabulate(document["processes_ms"].items(), headers=("process", "ms"), floatfmt=".0f"))
    if options.build:
        print(f"\nbuild of ten kernels: {document['build']}")


if __name__ == "__main__":
    main()
