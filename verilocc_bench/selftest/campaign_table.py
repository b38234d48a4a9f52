"""The outcome of a self-test as a table and as a JSON document."""

from __future__ import annotations

import platform
from typing import Any

from tabulate import tabulate

from verilocc_bench import __version__
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.selftest.campaign import CampaignOutcome, Tally
from verilocc_bench.selftest.sources import operators
from verilocc_bench.settings.judges import FAST, INDEPENDENT, JUDGES, SMT

NOTHING = "-"


def render(outcome: CampaignOutcome) -> str:
    """The table by operator, the totals, and every disagreement."""
    judges = [FAST, INDEPENDENT] + [SMT] * (SMT in outcome.total.killed)
    headers = ["operator", "mutants", "valid", "wrong", "legality", "shown", "not shown"]
    headers += [f"by {judge}" for judge in judges] + [f"kill rate {judge}" for judge in judges]
    named = [(n, outcome.tallies[n]) for n in operators() if n in outcome.tallies]
    rows = [_row(name, tally, judges) for name, tally in named]
    rows.append(_row("all", outcome.total, judges))
    align = ["left"] + ["right"] * (len(headers) - 1)
    parts = [tabulate(rows, headers=headers, colalign=align)]
    parts += [_findings_table(outcome), summary(outcome)]
    parts += [f"DISAGREEMENT: {disagreement}" for disagreement in outcome.disagreements]
    return "\n\n".join(parts)


def _row(name: str, tally: Tally, judges: list[str]) -> list[str]:
    counts = (
        tally.mutants,
        tally.valid,
        tally.wrong,
        tally.legality,
        tally.shown,
        tally.not_shown,
    )
    looked = [judge for judge in judges if judge in tally.killed]
    killed = [str(tally.killed[judge]) if judge in looked else NOTHING for judge in judges]
    rates = [
        f"{tally.killed_shown[judge] / tally.shown_to[judge]:.2%}"
        if tally.shown_to[judge]
        else NOTHING
        for judge in judges
    ]
    return [name, *map(str, counts), *killed, *rates]


def _findings_table(outcome: CampaignOutcome) -> str:
    """In how many answers each judge finds each kind of mistake."""
    counts = outcome.findings
    known = [name + edits for edits in ("", " (edits)") for name in JUDGES]
    judges = [judge for judge in known if any(judge in each for each in counts.values())]
    rows = [
        [kind, *(counts[kind].get(judge, NOTHING) for judge in judges)]
        for kind in FindingKind
        if kind in counts
    ]
    align = ["left"] + ["right"] * len(judges)
    return tabulate(rows, headers=["finding", *judges], colalign=align if rows else None)


def summary(outcome: CampaignOutcome) -> str:
    """A summary in one line."""
    found = ", ".join(f"{kind}: {count}" for kind, count in sorted(outcome.kinds.items()))
    executed = f", {outcome.executed} answers executed" if outcome.executed else ""
    text = (
        f"{outcome.mutants} answers for {outcome.functions} generated functions and "
        f"{outcome.kernels} visits to kernels, {outcome.answered} answers of allocators for "
        f"{outcome.asked} functions{executed}; {found or 'no disagreement'}"
    )
    if outcome.beyond_analysis:
        text += f"; {outcome.beyond_analysis} with guards beyond analysis"
    return text + ("; interrupted" if outcome.interrupted else "")


def document(outcome: CampaignOutcome, seed: int) -> dict[str, Any]:
    """The outcome as one JSON document."""
    return {
        "versions": {"verilocc-bench": __version__, "python": platform.python_version()},
        "seed": seed,
        "functions": outcome.functions,
        "kernels": outcome.kernels,
        "asked": outcome.asked,
        "answered": outcome.answered,
        "beyond_analysis": outcome.beyond_analysis,
        "seconds": outcome.seconds,
        "interrupted": outcome.interrupted,
        "operators": {
            name: outcome.tallies[name].to_json() for name in operators() if name in outcome.tallies
        },
        "findings": {
            kind.value: dict(sorted(outcome.findings[kind].items()))
            for kind in FindingKind
            if kind in outcome.findings
        },
        "total": outcome.total.to_json(),
        "disagreement_counts": dict(sorted(outcome.kinds.items())),
        "disagreements": [each.to_json() for each in outcome.disagreements],
    }
