"""The cost of scoring: 100 samples of every kernel of mini against one, and a resumed run.

    python -m benchmarks.evaluation [--samples 100]

Every sample is the compiler's answer; two of three have the register of
another value somewhere. Each run is a process of its own on one core, one after
the other on one machine. The last column is the ratio of their times.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tabulate import tabulate

from verilocc_bench.dataset import load_rows


def write_answers(path: Path, samples: int) -> None:
    generator = random.Random(0)
    with path.open("w") as file:
        for row in load_rows("mini").rows:
            assert row.label is not None
            names = sorted(row.label)
            for _ in range(samples):
                answer = dict(row.label)
                if generator.random() < 2 / 3:
                    answer[generator.choice(names)] = answer[generator.choice(names)]
                file.write(json.dumps({"id": row.id, "assignment": answer}) + "\n")


def seconds(*arguments: str) -> float:
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    command = [sys.executable, "-m", "verilocc_bench", "evaluate", *arguments]
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=100)
    samples = parser.parse_args().samples
    with tempfile.TemporaryDirectory() as folder:
        answers = Path(folder) / "answers.jsonl"
        write_answers(answers, samples)
        model = ["--model", f"predictions:{answers}", "--samples"]
        kept = [*model, str(samples), "--output-path", str(Path(folder) / "run")]
        runs = {
            "1 sample a kernel": seconds(*model, "1"),
            f"{samples} samples a kernel": seconds(*model, str(samples)),
            f"{samples} samples, kept": seconds(*kept),
            f"{samples} samples, resumed": seconds(*kept),
        }
        first = next(iter(runs.values()))
        rows = [(name, f"{time:.1f}", f"{time / first:.1f}") for name, time in runs.items()]
        kernels = len(load_rows("mini").rows)
        megabytes = answers.stat().st_size / 1e6
        print(f"{kernels} kernels, {megabytes:.0f} MB of answers, one core")
        headers = ("run", "seconds", "times the first")
        print(tabulate(rows, headers, disable_numparse=True, colalign=("left", "right", "right")))


if __name__ == "__main__":
    main()
