"""Corrupts answers for as long as asked, and compares the verifier with the oracle.

python -m tests.fuzz --seconds 600 --seed 1
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter

from tabulate import tabulate

from tests.generated import random_function
from tests.mutation import mutate
from tests.oracle import Oracle
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.verify import FastVerifier


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    deadline = time.monotonic() + options.seconds
    judged: Counter[tuple[str, bool]] = Counter()
    rows = list(load_rows("mini").rows)
    kernels = []
    while time.monotonic() < deadline:
        if rows and len(kernels) < 8:
            row = rows.pop(generator.randrange(len(rows)))
            problem = AllocationProblem.from_text(row.normalized)
            kernels.append((problem, Oracle(problem.function), dict(row.label)))
        for problem, oracle, answer in [*kernels, *_generated(generator)]:
            verifier = FastVerifier(problem)
            for _ in range(50):
                name, mutant = mutate(problem, answer, generator)
                valid = verifier.verify(mutant).valid
                judged[name, valid] += 1
                if valid != oracle.judge(mutant):
                    print(f"DISAGREEMENT: the verifier says {valid}\n{problem.normalized}{mutant}")
                    return 1
    names = sorted({name for name, _ in judged})
    table = [(n, judged[n, False], judged[n, True]) for n in names]
    print(tabulate(table, headers=("operator", "wrong", "still valid")))
    print(f"{sum(judged.values())} corruptions, no disagreement")
    return 0


def _generated(
    generator: random.Random,
) -> list[tuple[AllocationProblem, Oracle, dict[str, str]]]:
    found = []
    for _ in range(20):
        guarded = generator.random() < 0.5
        problem = AllocationProblem(random_function(generator.randrange(1 << 30), guarded=guarded))
        try:
            answer = dict(BUILT_IN["linear-scan"].allocate(Request(problem)))
        except AllocationFailed:
            continue
        if answer:
            found.append((problem, Oracle(problem.function), answer))
    return found


if __name__ == "__main__":
    sys.exit(main())
