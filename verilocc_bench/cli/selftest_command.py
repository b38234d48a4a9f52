"""`verilocc-bench selftest`."""

from __future__ import annotations

import argparse
import json
import sys

from tqdm import tqdm

from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.selftest import small_scope
from verilocc_bench.selftest.campaign import Campaign, CampaignOutcome
from verilocc_bench.selftest.campaign_table import document, render
from verilocc_bench.selftest.executed_cases import ExecutedCases

DEFAULT_MUTANTS = 20_000
INTERRUPTED = 130


def run(options: argparse.Namespace) -> int:
    """Prints the table; the status is 0 if the judges agree, 1 if they do not."""
    random = {"--mutants": options.mutants, "--seconds": options.seconds}
    small = {
        "--families": options.families,
        "--instructions": options.instructions,
        "--jobs": options.jobs,
        "--resume": options.resume,
    }
    for name, value in (random if options.small_scope else small).items():
        if value is not None:
            which = "not with" if options.small_scope else "for"
            raise InputError(f"{name} is {which} --small-scope")
    return _enumerate(options) if options.small_scope else _corrupt(options)


def _corrupt(options: argparse.Namespace) -> int:
    """Random functions and real kernels, with corrupted answers."""
    mutants, seconds = options.mutants, options.seconds
    if mutants is None and seconds is None:
        mutants = DEFAULT_MUTANTS
    rows = tuple(load_rows(options.dataset).rows)
    machine_code = ExecutedCases(options.execute, options.dataset) if options.execute else None
    campaign = Campaign(
        options.seed,
        rows,
        mutants=mutants,
        seconds=seconds,
        smt=options.smt,
        machine_code=machine_code,
    )
    outcome = campaign.run(_Progress(mutants, seconds))
    if options.json:
        print(json.dumps(document(outcome, options.seed), indent=2))
    else:
        print(render(outcome))
    if outcome.kinds:
        return 1
    return INTERRUPTED if outcome.interrupted else 0


def _enumerate(options: argparse.Namespace) -> int:
    """All answers to all small functions."""
    families = small_scope.FAMILIES
    for name in options.families or ():
        if name not in families:
            raise InputError(f"no family {name[:40]!r}; there are {', '.join(families)}")
    most = small_scope.MAXIMUM_INSTRUCTIONS
    instructions = options.instructions or most
    if instructions > most:
        raise InputError(f"--instructions: expected 1 to {most}, not {instructions}")
    enumeration = small_scope.Enumeration(
        [family for name, family in families.items() if name in (options.families or families)],
        instructions=instructions,
        smt=options.smt,
        state_path=options.resume,
    )
    with tqdm(
        total=len(enumeration.chunks),
        initial=enumeration.state.done,
        unit="part",
        file=sys.stderr,
        disable=None,
    ) as bar:

        def progress(state: small_scope.EnumerationState) -> None:
            bar.update(state.done - bar.n)
            if state.done % 100 == 0 and not bar.disable:
                counts = state.total.counts
                bar.set_postfix_str(f"{counts['answers']:,} answers")

        state = enumeration.run(options.jobs or 1, progress)
    if options.json:
        print(json.dumps(small_scope.document(enumeration), indent=2))
    else:
        print(small_scope.render(enumeration))
    if state.total.disagreements:
        return 1
    return INTERRUPTED if enumeration.interrupted else 0


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

    def __call__(self, outcome: CampaignOutcome) -> None:
        done = outcome.mutants if self.by_mutants else outcome.seconds
        self.bar.update(min(done, self.total) - self.bar.n)
        if outcome.mutants % 100 == 0:
            disagreements = sum(outcome.kinds.values())
            self.bar.set_postfix_str(f"{outcome.mutants} answers, {disagreements} disagreements")
