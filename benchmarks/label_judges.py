"""Asks every judge about every compiler's label of a dataset.

    python benchmarks/label_judges.py DATASET [--splits S,…] [--smt-registers N] [--paths N]

The judges are the fast check, the independent checker, the random executor
(--paths paths for each label) and Z3 (functions of up to --smt-registers
virtual registers). Prints a table by architecture and label source. The exit
status is 1 if any judge refuses a label.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict

from tabulate import tabulate
from tqdm import tqdm

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.verification.judges import JUDGES, SMT, Effort, Judges


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
        small = len(problem.function.virtual_registers) <= options.smt_registers
        names = JUDGES if small else tuple(name for name in JUDGES if name != SMT)
        effort = Effort(paths=options.paths, paths_of_accepted=options.paths)
        judges = Judges(problem, names, effort)
        for source, label in {row.label_source: row.label or {}, **row.other_labels}.items():
            count = accepted[row.arch, source]
            count["labels"] += 1
            count["smt asked"] += small
            opinion = judges.ask(label)
            for word in opinion.words:
                seconds[word.judge] += word.seconds
                count[word.judge] += word.accepts
            for told in [f"{w.judge} refuses it" for w in opinion.words if not w.accepts] + [
                *opinion.disagreements()
            ]:
                refused += 1
                print(f"{source} on {row.id}: {told}", file=sys.stderr)
    table = [
        (
            *key,
            *(count[c] for c in ("labels", "fast", "independent", "executor", "smt", "smt asked")),
        )
        for key, count in sorted(accepted.items())
    ]
    headers = ("architecture", "label", "labels", "fast", "independent", "executor", "Z3", "of")
    print(tabulate(table, headers=headers))
    print({name: round(value, 1) for name, value in seconds.items()}, "seconds in all")
    print(f"{len(rows)} kernels, {refused} refusals")
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
