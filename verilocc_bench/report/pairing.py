"""Which run is better, and how sure that is: runs paired over the same kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.comparison import Interval, RunComparison, compare_runs
from verilocc_bench.evaluation.metrics import (
    bootstrap_interval,
    geometric_mean,
    mean,
    share_interval,
)
from verilocc_bench.evaluation.table import NONE, number, percent
from verilocc_bench.report.runs import ComparableRuns, ReportedRun

SURE = "sure"
NOT_SURE = "not sure"
EQUAL = "equal"


@dataclass(frozen=True, slots=True)
class CommonFigures:
    """A run's figures over kernels that all runs have.

    `asked` counts the kernels that all runs were asked, `solved` the ones that
    all solved. `pass_at_1` is over the former, `registers_ratio`, against the
    label, over the latter with a label. Intervals are of 95 %.
    """

    run: ReportedRun
    asked: int
    pass_at_1: float | None
    pass_interval: Interval
    solved: int
    registers_ratio: float | None
    registers_interval: Interval


@dataclass(frozen=True, slots=True)
class Ranking:
    """The runs of a section, the best first, and each other one paired with the best.

    The order is by pass@1 over the kernels that all were asked, then by registers
    over those that all solved, then by each run's own. A pair is None if the two
    have no kernel in common.
    """

    figures: tuple[CommonFigures, ...]
    pairs: tuple[RunComparison | None, ...]

    @property
    def best(self) -> ReportedRun:
        """The first run."""
        return self.figures[0].run


def rank_runs(section: ComparableRuns) -> Ranking:
    """Ranks the runs of a section over the kernels that they have in common."""
    found = sorted(_common_figures(section), key=_order)
    best = found[0].run
    pairs: list[RunComparison | None] = []
    for figures in found[1:]:
        try:
            pairs.append(compare_runs(best.document, figures.run.document))
        except InputError:
            pairs.append(None)
    return Ranking(tuple(found), tuple(pairs))


def _order(figures: CommonFigures) -> tuple[float, ...]:
    last = float("inf")
    own = figures.run.overall["registers_ratio"]
    shares = [last if figures.pass_at_1 is None else -figures.pass_at_1]
    return (*shares, *(last if r is None else r for r in (figures.registers_ratio, own)))


def _common_figures(section: ComparableRuns) -> list[CommonFigures]:
    kernels = [
        {(k["split"], k["id"]): k for k in run.kernels if k["samples"]} for run in section.runs
    ]
    asked = sorted(set.intersection(*(set(found) for found in kernels)))
    solved = [key for key in asked if all(found[key]["registers"] for found in kernels)]
    return [
        _figures_of(run, [found[key] for key in asked], [found[key] for key in solved])
        for run, found in zip(section.runs, kernels, strict=True)
    ]


def _figures_of(
    run: ReportedRun, asked: Sequence[Mapping[str, Any]], solved: Sequence[Mapping[str, Any]]
) -> CommonFigures:
    shares = [kernel["valid"] / kernel["samples"] for kernel in asked]
    ratios = [
        kernel["registers"] / kernel["label_registers"]
        for kernel in solved
        if kernel["label_registers"]
    ]
    seed = int(run.document["seed"])
    return CommonFigures(
        run,
        len(asked),
        mean(shares),
        share_interval(shares),
        len(solved),
        geometric_mean(ratios),
        bootstrap_interval(ratios, seed, geometric_mean),
    )


SIGNIFICANT = 0.05


def certainty(interval: Interval, nothing: float, count: int) -> str:
    """If an interval says that there is a difference: it does where it leaves `nothing` out.

    An interval has no width where all `count` kernels differ by the same amount. A sign test
    decides then.
    """
    low, high = interval
    if low is None or high is None:
        return NOT_SURE
    if low == high == nothing:
        return EQUAL
    if low == high and 2 * 0.5**count > SIGNIFICANT:
        return NOT_SURE
    return NOT_SURE if low <= nothing <= high else SURE


def answer_lines(ranking: Ranking) -> list[str]:
    """The answer to "which is better, and how sure?", a sentence for each run but the best."""
    lines = []
    for figures, pair in zip(ranking.figures[1:], ranking.pairs, strict=True):
        other = figures.run.name
        if pair is None:
            lines.append(f"{ranking.best.name} and {other} have no kernel in common.")
        else:
            lines.append(_pair_line(ranking.best.name, other, pair))
    return lines


def _pair_line(best: str, other: str, pair: RunComparison) -> str:
    """One pair in words. Differences are of the other less the best."""
    count = len(pair.functions)
    low, high = pair.pass_interval
    turned = (None, None) if low is None or high is None else (-high, -low)
    gap = percent_interval(-pair.pass_difference, turned)
    match certainty(pair.pass_interval, 0.0, count):
        case "sure":
            first = f"{best} is valid more often than {other}: by {gap} over {count} common kernels"
        case "equal":
            first = f"{best} and {other} are valid equally often on each of {count} common kernels"
        case _:
            first = (
                f"{best} and {other} do not surely differ in validity "
                f"(difference {gap}, common kernels: {count})"
            )
    return f"{first}; {_registers_words(best, other, pair)}."


def _registers_words(best: str, other: str, pair: RunComparison) -> str:
    both = pair.solved["both"]
    if not both or pair.registers_ratio is None:
        return "no kernel is solved by both"
    counts = pair.registers
    ratio = ratio_interval(pair.registers_ratio, pair.registers_interval)
    told = (
        f"over {both} kernels that both solved, {other} uses {ratio} times the registers: fewer on "
        f"{counts['fewer']}, more on {counts['more']} (sign test p = {pair.sign_test:.2g})"
    )
    match certainty(pair.registers_interval, 1.0, both):
        case "equal":
            return f"over {both} kernels that both solved they use the same registers"
        case "sure":
            winner = best if pair.registers_ratio > 1 else other
            return f"{told}; in the mean {winner} surely needs fewer"
        case _:
            return f"{told}, which is not a sure difference"


def percent_interval(value: float | None, interval: Interval) -> str:
    """A share with its interval, such as `12.5 % (4.2–20.8)`."""
    low, high = interval
    if value is None or low is None or high is None:
        return percent(value)
    return f"{percent(value).replace('-', '−')} ({_hundredths(low)} to {_hundredths(high)})"


def _hundredths(value: float) -> str:
    return f"{100 * value + 0.0:.1f}".replace("-", "−")


def ratio_interval(value: float | None, interval: Interval) -> str:
    """A ratio with its interval, such as `1.013 (1.004 to 1.023)`."""
    low, high = interval
    if value is None or low is None or high is None:
        return NONE
    return f"{number(value, 3)} ({low:.3f} to {high:.3f})"
