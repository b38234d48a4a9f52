"""KERNEL on the command line, an id of a dataset or a file, and the answers to it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.api.problems import DatasetPlace, Problem, read_problem
from verilocc_bench.backends import Backend, ReadOptions
from verilocc_bench.edits import Answer
from verilocc_bench.verification import Verifier


def load_instance(
    options: argparse.Namespace, check: Callable[[Backend[Any]], object] = lambda _: None
) -> Problem:
    """The problem that the options name, with its remarks on standard error.

    Raises InputError without one. `check` is called with the back end before any code is read.
    """
    place = DatasetPlace(options.dataset, options.split, options.revision)
    problem = read_problem(options.instance, place, read_options(options), check)
    tell_remarks(options, options.instance, problem.remarks)
    return problem


def tell_remarks(options: argparse.Namespace, source: str | Path, remarks: Sequence[str]) -> None:
    """Prints what a user has to know of some code on standard error."""
    for remark in remarks:
        print(f"verilocc-bench {options.command}: {source}: {remark}", file=sys.stderr)


def read_options(options: argparse.Namespace) -> ReadOptions:
    """The options for reading compiled code, from flags that all such commands have."""
    return ReadOptions(options.arch, options.function, options.max_threads)


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
