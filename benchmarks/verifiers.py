"""The judges side by side on the same kernels in one run, with LLVM's own times.

    python benchmarks/verifiers.py [--smt-pairs N] [--json]

Milliseconds on one core, the least of several runs, with the label as answer.
*cold*: from the normalized text to the verdict. *warm*: a further answer for
the same function. Z3 is left out if a function has more colliding pairs than
--smt-pairs. llc's columns come from its own timers: greedy register allocation
on the raw machine IR, and the machine verifier on the assigned one.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from speed import find_llc
from tabulate import tabulate
from timing import MILLISECONDS, least

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import RawRow, Row, embedded_path, load_rows, read_parquet
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.smt import SMTVerifier
from verilocc_bench.verification.symbolic import SymbolicChecker

KERNELS_SHOWN = 10
GREEDY = "Greedy Register Allocator"
VERIFIER = "Verify generated machine code"


def llc_timer(llc: str, row: Row, machine_ir: str, options: list[str], name: str) -> float:
    """Milliseconds of one of llc's passes, all its runs together, the least of three."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "x.mir")
        path.write_text(machine_ir)
        command = [llc, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={row.arch}", "-O3", "-time-passes"]
        found = []
        for _ in range(3):
            timed = subprocess.run(
                [*command, *options, "-o", os.devnull, path],
                check=True,
                capture_output=True,
                text=True,
            )
            lines = [line for line in timed.stderr.splitlines() if name in line]
            # The wall time is the last time before the name; several rounds add up.
            found.append(sum(float(re.findall(r"(\d+\.\d+) \(", line)[-1]) for line in lines))
    return min(found) * MILLISECONDS


def is_small(problem: AllocationProblem, pairs: int) -> bool:
    """True if at most this many pairs of registers may collide."""
    try:
        SMTVerifier(problem, maximum_pairs=pairs)
    except InputError:
        return False
    return True


def kernel_row(row: Row, raw: str | None, llc: str | None, smt_pairs: int) -> dict[str, Any]:
    label = row.label
    assert label is not None
    problem = AllocationProblem.from_text(row.normalized)
    verifier = FastVerifier(problem)
    assert verifier.verify(label).valid
    checker = SymbolicChecker(problem.function)

    def independent_cold() -> None:
        function = parse_function(row.normalized)
        assert not SymbolicChecker(function).check(label)

    warm = least(lambda: verifier.verify(label), 30)
    found: dict[str, Any] = {
        "kernel": f"{row.arch} {row.kernel}",
        "instructions": row.n_instructions,
        "registers": row.n_virtual_registers,
        "fast cold": least(
            lambda: FastVerifier(AllocationProblem.from_text(row.normalized)).verify(label), 3
        ),
        "fast warm": warm,
        "M instructions/s": row.n_instructions / warm / 1000,
        "independent cold": least(independent_cold, 3),
        "independent warm": least(lambda: checker.check(label), 3),
    }
    if is_small(problem, smt_pairs):
        found["Z3 build"] = least(lambda: SMTVerifier(problem), 1)
        smt = SMTVerifier(problem)
        found["Z3 answer"] = least(lambda: smt.verify(label), 2)
        found["Z3 / fast"] = found["Z3 answer"] / warm
    if raw is not None and llc is not None:
        stop = ["-start-before=greedy", "-stop-after=virtregrewriter,2"]
        found["llc greedy"] = llc_timer(llc, row, raw, stop, GREEDY)
        check = ["-run-pass=none", "-verify-machineinstrs"]
        found["llc verifier"] = llc_timer(llc, row, raw, check, VERIFIER)
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
    step = max(1, len(rows) // KERNELS_SHOWN)
    llc = find_llc()
    table = [kernel_row(row, raw.get(row.id), llc, options.smt_pairs) for row in rows[::step]]
    if options.json:
        print(json.dumps(table, indent=1))
    else:
        print("Milliseconds, one core\n")
        print(tabulate(table, headers="keys", floatfmt=".2f"))


if __name__ == "__main__":
    main()
