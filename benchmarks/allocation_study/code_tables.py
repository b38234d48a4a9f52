"""The whole sample as machine code: answers that run on sm_80, and what code costs on AMD."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.allocation_study.records import Measurement
from benchmarks.allocation_study.tables import markdown
from verilocc_bench.backends.nvidia.write_back import RunVerdict

Records = Sequence[Mapping[str, Any]]

_HEADERS = (
    *("family", "kernels", "ptxas", "`best`", "`best --runnable`", "as many as `best`", "more"),
    *("fewer than ptxas", "more", "hazards of `best`", "of `--runnable`"),
    *("run by the compiler's own rules", "values destroyed: `best`", "`--runnable`"),
)


def runnable_table(records: Records, study: Mapping[str, Measurement]) -> str:
    """Registers and verdicts of `best` and of `best --runnable`, beside ptxas's, by family."""
    families = sorted({study[each["id"]].family for each in records})
    groups = [(name, [e for e in records if study[e["id"]].family == name]) for name in families]
    return markdown(_HEADERS, [_runnable(*group) for group in (*groups, ("all", records))])


def _runnable(family: str, own: Records) -> tuple[object, ...]:
    by_rules = RunVerdict.BY_THE_RULES.value, RunVerdict.COMPILERS_OWN.value
    return (
        family,
        len(own),
        *(f"{sum(each[key] for each in own):,}" for key in ("compiler", "plain", "runnable")),
        sum(each["runnable"] == each["plain"] for each in own),
        sum(each["runnable"] > each["plain"] for each in own),
        sum(each["runnable"] < each["compiler"] for each in own),
        sum(each["runnable"] > each["compiler"] for each in own),
        f"{sum(each['plain_hazards'] for each in own):,}",
        sum(each["hazards"] for each in own),
        sum(each["verdict"] in by_rules for each in own),
        f"{sum(each['plain_destroyed'] for each in own):,}",
        sum(each["destroyed"] for each in own),
    )
