"""Trains the recipe `tiny` twice, and compares the model with its recorded results.

    python -m benchmarks.tiny_model [--output DIR] [--write]

It trains on the embedded dataset, in some minutes on two CPU cores. Both runs
must give the same weights, bit for bit, and the model must place as well as
tiny.expected.json says; `--write` writes that file anew. The exit status is 1
if it does not. Interrupted runs go on.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from tabulate import tabulate

from verilocc_bench.files import read_json, write_atomically

EXPECTED = Path(__file__).with_name("tiny.expected.json")
RECIPE, DATASET = "tiny", "mini"
RUNS = ("one", "two")
WEIGHTS = "model.safetensors"

ASKED = {
    "candidates-constrained": ("candidates", "constrained"),
    "state-constrained": ("state", "constrained"),
}
"""How the model is asked: prompt format and decoding."""

FIGURES = ("pass@1", "registers_ratio", "bank_conflicts")

TOLERANCE = {"pass@1": 0.05, "registers_ratio": 0.01, "bank_conflicts": 0.1}
"""The allowed loss from another processor's arithmetic; for conflicts, as a share."""


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tiny_model")
    parser.add_argument("--output", type=Path, default=Path("results", "tiny"))
    parser.add_argument("--write", action="store_true", help="write tiny.expected.json anew")
    options = parser.parse_args(arguments)
    for name in RUNS:
        train = ["train", RECIPE, "--dataset", DATASET, "--output", str(options.output / name)]
        _verilocc_bench(*train)
    weights = {
        name: hashlib.sha256((options.output / name / WEIGHTS).read_bytes()).hexdigest()
        for name in RUNS
    }
    same = len(set(weights.values())) == 1
    print(f"weights of both runs: {'the same' if same else 'they differ'}, {weights[RUNS[0]]}")
    found = {key: _asked(options.output, key) for key in ASKED}
    if options.write:
        written = {"weights": weights[RUNS[0]], "processor": platform.machine(), "results": found}
        write_atomically(EXPECTED, json.dumps(written, indent=2) + "\n")
    document = read_json(EXPECTED)
    if weights[RUNS[0]] != document["weights"]:
        print("other weights than those that were written down: another machine, or other versions")
    expected = document["results"]
    worse = {key for key in ASKED if _is_worse(found[key], expected[key])}
    rows = [
        [key, *(value for name in FIGURES for value in (expected[key][name], found[key][name]))]
        for key in ASKED
    ]
    headers = ["asked", *(f"{name}{end}" for name in FIGURES for end in (", expected", ""))]
    print(tabulate(rows, headers=headers, floatfmt=".3f"))
    for key in sorted(worse):
        print(f"{key}: worse than expected")
    return 0 if same and not worse else 1


def _verilocc_bench(*arguments: str) -> None:
    subprocess.run([sys.executable, "-m", "verilocc_bench", *arguments], check=True)


def _asked(output: Path, key: str) -> dict[str, float]:
    """The figures over all kernels, as evaluate writes them."""
    prompt_format, decoding = ASKED[key]
    _verilocc_bench(
        *("evaluate", "--model", str(output / RUNS[0]), "--dataset", DATASET),
        *("--prompt-format", prompt_format, "--decoding", decoding),
        *("--output-path", str(output / key)),
    )
    overall: dict[str, Any] = read_json(output / key / "results.json")["results"]["overall"]
    return {name: overall[name] for name in FIGURES}


def _is_worse(found: dict[str, float], expected: dict[str, float]) -> bool:
    return (
        found["pass@1"] < expected["pass@1"] - TOLERANCE["pass@1"]
        or found["registers_ratio"] > expected["registers_ratio"] + TOLERANCE["registers_ratio"]
        or found["bank_conflicts"] > expected["bank_conflicts"] * (1 + TOLERANCE["bank_conflicts"])
    )


if __name__ == "__main__":
    sys.exit(main())
