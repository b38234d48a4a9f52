"""Asks every judge about every compiler's label of a dataset.

    python benchmarks/label_judges.py DATASET [--splits S,…] [--smt-registers N] [--paths N]

The fast check, the independent checker, the random executor (so many paths a
label) and Z3 (functions of up to so many virtual registers). Prints a table by
architecture and label source; the status is 1 where any judge refuses a label.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable

from tabulate import tabulate
from tqdm import tqdm

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.verify import FastVerifier
from verilocc_bench.verify.executor import Executor
from verilocc_bench.verify.smt import SMTVerifier
from verilocc_bench.verify.symbolic import SymbolicChecker

STEPS = 20_000


def executes(problem: AllocationProblem, answer: Answer, paths: int) -> bool:
    bases = {}
    for number in range(len(problem.function.virtual_registers)):
        base = parse_register_name(problem.target, answer[f"%{number}"])
        assert base is not None
        bases[number] = (base.file, base.index)
    executor = Executor(problem.function, problem.target, bases)
    return all(executor.run(seed, STEPS) is None for seed in range(paths))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--splits", default="train,validation,test")
    parser.add_argument("--smt-registers", type=int, default=150)
    parser.add_argument("--paths", type=int, default=20)
    options = parser.parse_args()
    rows = []
    for split in options.splits.split(","):
        try:
            rows += load_rows(options.dataset, split=split).rows
        except InputError as error:
            print(f"no split {split}: {error}", file=sys.stderr)
    accepted: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    seconds: Counter[str] = Counter()
    refused = 0
    for row in tqdm(rows, unit=" kernels"):
        problem = AllocationProblem.from_text(row.normalized)
        fast, symbolic = FastVerifier(problem), SymbolicChecker(problem.function)
        small = len(problem.function.virtual_registers) <= options.smt_registers
        smt = SMTVerifier(problem) if small else None
        for source, label in {row.label_source: row.label or {}, **row.other_labels}.items():
            count = accepted[row.arch, source]
            count["labels"] += 1
            judges: dict[str, Callable[[Answer], bool]] = {
                "fast": lambda label, fast=fast: fast.verify(label).valid,
                "independent": lambda label, symbolic=symbolic: not symbolic.check(label),
                "executor": lambda label, problem=problem: executes(problem, label, options.paths),
            }
            if smt is not None:
                count["Z3 asked"] += 1
                judges["Z3"] = lambda label, smt=smt: smt.verify(label).valid
            for name, judge in judges.items():
                started = time.perf_counter()
                accepts = judge(label)
                seconds[name] += time.perf_counter() - started
                count[name] += accepts
                if not accepts:
                    refused += 1
                    print(f"{name} refuses {source} on {row.id}", file=sys.stderr)
    table = [
        (*key, *(count[c] for c in ("labels", "fast", "independent", "executor", "Z3", "Z3 asked")))
        for key, count in sorted(accepted.items())
    ]
    headers = ("architecture", "label", "labels", "fast", "independent", "executor", "Z3", "of")
    print(tabulate(table, headers=headers))
    print({name: round(value, 1) for name, value in seconds.items()}, "seconds in all")
    print(f"{len(rows)} kernels, {refused} refusals")
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
