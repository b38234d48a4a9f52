"""`verilocc-bench failures`: the samples of a run without a valid answer, and why."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict

from verilocc_bench.api.results import Failure, load_results
from verilocc_bench.errors import InputError


def run(options: argparse.Namespace) -> int:
    """Prints a line for each failure, and the frames of each traceback once."""
    failures: list[Failure] = list(load_results(options.folder).failures())
    if options.id is not None:
        failures = [failure for failure in failures if failure.id == options.id]
        if not failures:
            raise InputError(f"no failure of {options.id!r}", source=options.folder)
    if options.json:
        for failure in failures:
            print(json.dumps(asdict(failure)))
    else:
        print("\n".join(_lines(failures)) or "no failures")
    return 0


def _lines(failures: list[Failure]) -> Iterator[str]:
    told = set[str]()
    for each in failures:
        where = f"{each.model} on {each.id} ({each.task}), sample {each.sample}"
        yield f"{where}: {each.kind}: {each.message}"
        frames = (each.traceback or "").rpartition("\n")[0]  # the last line has the message
        if frames and frames not in told:
            told.add(frames)
            yield from (f"    {line}" for line in frames.splitlines())
