"""`verilocc-bench selftest`."""

from __future__ import annotations

import argparse
import json
import sys

from tqdm import tqdm

from verilocc_bench.dataset import load_rows
from verilocc_bench.selftest.campaign import Campaign, Outcome
from verilocc_bench.selftest.table import document, render

__all__ = ["run"]

DEFAULT_MUTANTS = 20_000
INTERRUPTED = 130


def run(options: argparse.Namespace) -> int:
    """Prints the table; the status is 0 where the judges agree, 1 where they do not."""
    mutants, seconds = options.mutants, options.seconds
    if mutants is None and seconds is None:
        mutants = DEFAULT_MUTANTS
    rows = tuple(load_rows(options.dataset).rows)
    campaign = Campaign(options.seed, rows, mutants=mutants, seconds=seconds, smt=options.smt)
    outcome = campaign.run(_Progress(mutants, seconds))
    if options.json:
        print(json.dumps(document(outcome, options.seed), indent=2))
    else:
        print(render(outcome))
    if outcome.kinds:
        return 1
    return INTERRUPTED if outcome.interrupted else 0


class _Progress:
    """A bar on standard error, by answers or by seconds."""

    def __init__(self, mutants: int | None, seconds: float | None) -> None:
        self.by_mutants = mutants is not None
        self.total = mutants or seconds or 0
        self.bar = tqdm(
            total=self.total,
            unit="answer" if self.by_mutants else "s",
            file=sys.stderr,
            disable=None,
            bar_format=None if self.by_mutants else "{percentage:3.0f}%|{bar}| {postfix}",
        )

    def __call__(self, outcome: Outcome) -> None:
        done = outcome.mutants if self.by_mutants else outcome.seconds
        self.bar.update(min(done, self.total) - self.bar.n)
        if outcome.mutants % 100 == 0:
            disagreements = sum(outcome.kinds.values())
            self.bar.set_postfix_str(f"{outcome.mutants} answers, {disagreements} disagreements")
