"""What `lower` and `compare` say of a wrong answer."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer
from verilocc_bench.verification import Verifier


def is_wrong(
    problem: AllocationProblem,
    answer: Answer,
    options: argparse.Namespace,
    source: str | Path | None = None,
) -> bool:
    """True if the answer is wrong. Then it prints why; with --json, the whole verdict.

    `source` names the answer if it is another than the options' own.
    """
    verdict = Verifier(problem).verify(answer)
    if verdict.valid:
        return False
    if options.json:
        print(json.dumps(verdict.to_json(), indent=2))
    first, count = verdict.findings[0], len(verdict.findings)
    print(
        f"verilocc-bench {options.command}: {source or options.answer}: "
        f"a wrong answer for {options.instance}, {count} finding{'s' if count != 1 else ''}, "
        f"first: {first.kind.value}: {first.message}",
        file=sys.stderr,
    )
    return True
