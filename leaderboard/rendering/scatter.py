"""Where the entries of a table stand: how often they are valid, and at what cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from leaderboard.rendering.entries import BoardEntry, EntryFigures, Scope

WIDTH, HEIGHT = 560, 250
LEFT, RIGHT, TOP, BOTTOM = 56, 20, 14, 44
TICKS = 5
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
SCORE = "score of valid answers"


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark on an axis, with its words."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Spot:
    """An entry in the plot; `low` and `high` are the ends of its interval."""

    rank: int
    name: str
    path: str
    base_line: bool
    x: float
    y: float
    low: float
    high: float
    told: str


@dataclass(frozen=True, slots=True)
class ScatterPlot:
    """Validity (across) against quality (up), as places in a picture of WIDTH by HEIGHT.

    `best` says where the best answers of valid ones are: at the top or the bottom.
    """

    width: int
    height: int
    left: int
    bottom: int
    spots: tuple[Spot, ...]
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    title: str
    best: str


def scatter_plot(
    entries: Sequence[BoardEntry],
    ranks: Sequence[int],
    figures: Mapping[str, Mapping[str, EntryFigures | None]],
) -> ScatterPlot | None:
    """The plot of a table's entries over all kernels; None for fewer than two of them."""
    found = []
    for rank, entry in zip(ranks, entries, strict=True):
        each = figures.get(Scope().key, {}).get(entry.path)
        if each is None or not each.passed:
            continue
        _, share, low, high = each.passed[0]
        quality = each.spill_cost
        if each.score is not None and share:
            quality = each.score[0] / share
        if quality is not None:
            ends = (share if low is None else low, share if high is None else high)
            found.append((rank, entry, share, quality, ends))
    if len(found) < 2:
        return None
    xs = round_scale([end for *_, ends in found for end in ends], 1.0)
    split = found[0][1].is_split
    ys = round_scale([quality for *_, quality, _ in found] if split else [0.0, 1.0], None)
    spots = []
    for rank, entry, share, quality, (low, high) in found:
        words = f"spill cost {quality:,.1f}" if split else f"{SCORE} {quality:.3f}"
        name = str(entry.submission["name"])
        spots.append(
            Spot(
                rank=rank,
                name=name,
                path=entry.path,
                base_line=entry.is_base_line,
                x=_across(xs, share),
                y=up(ys, quality),
                low=_across(xs, low),
                high=_across(xs, high),
                told=f"{rank}. {name}: pass@1 {100 * share:.1f} %, {words}",
            )
        )
    return ScatterPlot(
        WIDTH,
        HEIGHT,
        LEFT,
        HEIGHT - BOTTOM,
        tuple(spots),
        tuple(Tick(_across(xs, value), f"{100 * value:.4g} %") for value in xs),
        tuple(Tick(up(ys, value), f"{value:,.4g}") for value in ys),
        "spill cost a kernel" if split else SCORE,
        "bottom" if split else "top",
    )


def round_scale(values: Sequence[float], most: float | None) -> list[float]:
    """Round numbers from below the least value to above the greatest, or to `most`."""
    low, high = min(values), max(values)
    spread = max(high - low, 0.02 * max(abs(high), 1e-9))
    power = 10.0 ** math.floor(math.log10(spread / TICKS))
    step = power * next(each for each in STEPS if each * power * TICKS >= spread)
    first = math.floor(low / step + 1e-9)
    last = math.ceil(high / step - 1e-9)
    if first == last:
        first -= 1
    found = [round(place * step, 12) for place in range(first, last + 1)]
    return [value for value in found if most is None or value <= most + 1e-9]


def _across(scale: Sequence[float], value: float) -> float:
    part = (value - scale[0]) / (scale[-1] - scale[0])
    return round(LEFT + 10 + part * (WIDTH - LEFT - RIGHT - 10), 1)


def up(scale: Sequence[float], value: float) -> float:
    """The height of a value in the picture; greater values are nearer to the top."""
    part = (value - scale[0]) / (scale[-1] - scale[0])
    return round(HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM), 1)
