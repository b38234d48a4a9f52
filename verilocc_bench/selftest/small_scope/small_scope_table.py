"""The outcome of the enumeration as a table and as a JSON document."""

from __future__ import annotations

import platform
from typing import Any

from tabulate import tabulate

from verilocc_bench import __version__
from verilocc_bench.selftest.small_scope.enumeration import Enumeration
from verilocc_bench.selftest.small_scope.small_scope_judging import ORACLE, JudgingOutcome
from verilocc_bench.settings.judges import FAST, INDEPENDENT, SMT

COUNTS = ("functions", "answers", "illegal", "tied", "wrong values", "valid", "shown", "idle")


def render(enumeration: Enumeration) -> str:
    """The table by family, a summary line, and the first disagreements."""
    state = enumeration.state
    judges = [FAST, INDEPENDENT, ORACLE] + [SMT] * enumeration.smt
    headers = ["family", *COUNTS, *(f"accepted by {judge}" for judge in judges), "disagreements"]
    named = [*state.families.items(), ("all", state.total)]
    rows = [
        [
            name,
            *(f"{outcome.counts[count]:,}" for count in COUNTS),
            *(f"{outcome.accepted[judge]:,}" for judge in judges),
            f"{outcome.disagreements.total():,}",
        ]
        for name, outcome in named
    ]
    align = ["left"] + ["right"] * (len(headers) - 1)
    parts = [tabulate(rows, headers=headers, colalign=align, disable_numparse=True)]
    parts.append(_summary(enumeration, state.total))
    parts += [f"DISAGREEMENT: {text}" for _, text in state.total.told]
    return "\n\n".join(parts)


def _summary(enumeration: Enumeration, total: JudgingOutcome) -> str:
    found = ", ".join(f"{kind}: {n:,}" for kind, n in sorted(total.disagreements.items()))
    text = (
        f"{total.counts['answers']:,} answers to {total.counts['functions']:,} functions; "
        f"{found or 'no disagreement'}"
    )
    if enumeration.smt:
        text += f"; {len(total.questions):,} different sets of constraints for Z3"
    if not enumeration.complete:
        text += f"; {enumeration.state.done:,} of {len(enumeration.chunks):,} parts"
    return text + ("; interrupted" if enumeration.interrupted else "")


def document(enumeration: Enumeration) -> dict[str, Any]:
    """The outcome as one JSON document."""
    state = enumeration.state
    return {
        "versions": {"verilocc-bench": __version__, "python": platform.python_version()},
        "complete": enumeration.complete,
        "interrupted": enumeration.interrupted,
        "parts": state.done,
        "seconds": state.seconds,
        "families": {name: _outcome(outcome) for name, outcome in state.families.items()},
        "total": _outcome(state.total),
        "disagreements": [text for _, text in state.total.told],
    }


def _outcome(outcome: JudgingOutcome) -> dict[str, Any]:
    return {
        **{count.replace(" ", "_"): outcome.counts[count] for count in (*COUNTS, "executed")},
        "accepted": dict(sorted(outcome.accepted.items())),
        "smt_questions": len(outcome.questions),
        "disagreement_counts": dict(sorted(outcome.disagreements.items())),
    }
