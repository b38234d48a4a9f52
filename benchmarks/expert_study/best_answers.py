"""Writes the best known answer to each function of a dataset as a file of answers.

    python -m benchmarks.expert_study.best_answers DATASET -o best.jsonl

`evaluate --model predictions:best.jsonl --machine-code` then says what they are worth as
machine code. Where no answer is better than the label, the label stands.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.expert_study.best_answers")
    parser.add_argument("dataset")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file of answers")
    options = parser.parse_args()
    try:
        rows = load_rows(options.dataset).rows
    except InputError as error:
        print(f"best_answers: {error}", file=sys.stderr)
        return 2
    lines = [{"id": row.id, "assignment": row.best_label or row.label} for row in rows]
    write_atomically(options.output, "".join(json.dumps(line) + "\n" for line in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
