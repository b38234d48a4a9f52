"""Writes an answers file: two samples for the first kernel of each family of one architecture.

python write_answers.py [ARCHITECTURE] > answers.jsonl
"""

from __future__ import annotations

import json
import sys

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits.answer_files import answer_to_json


def main(architecture: str) -> None:
    """Prints one JSON object a line; the lines of one id are its samples, in their order."""
    families: set[str] = set()
    for row in load_rows("mini").rows:
        if row.arch != architecture or row.family in families:
            continue
        families.add(row.family)
        request = Request(AllocationProblem.from_text(row.normalized))
        for name in ("linear-scan", "graph-coloring"):
            print(json.dumps(answer_to_json(row.id, BUILT_IN[name].allocate(request))))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "gfx942")
