"""The command: reads two datasets and runs of `evaluate`, and writes the page and its picture."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.expert_study.document import write_study
from verilocc_bench.errors import InputError


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.expert_study")
    parser.add_argument(
        "experts", nargs="+", help="the dataset of experts' kernels, or samples of it"
    )
    parser.add_argument("--sweep", default="mini", help="our own kernels (default: mini)")
    parser.add_argument("--results", type=Path, help="a folder with runs of evaluate on experts'")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the page")
    parser.add_argument("--images", type=Path, required=True, help="the picture's folder")
    options = parser.parse_args()
    try:
        write_study(options)
    except InputError as error:
        print(f"expert_study: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
