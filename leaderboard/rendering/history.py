"""Who led a table when: the dated entries along time, and the quality of the leader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from leaderboard.rendering.entries import BoardEntry, EntryFigures, Scope
from leaderboard.rendering.scatter import BOTTOM, HEIGHT, LEFT, RIGHT, WIDTH, Tick, round_scale, up

MOST_DATES = 4
"""How many days are written along the axis."""


@dataclass(frozen=True, slots=True)
class DatedSpot:
    """An entry in the history: its rank of today, its place, and its words."""

    rank: int
    base_line: bool
    x: float
    y: float
    told: str


@dataclass(frozen=True, slots=True)
class History:
    """Days (across) against the score of entries, or their cost (up), as places in a picture.

    `leader` is the line of the best entry so far, as the points of an SVG polyline.
    """

    width: int
    height: int
    left: int
    bottom: int
    spots: tuple[DatedSpot, ...]
    leader: str
    across: tuple[Tick, ...]
    up: tuple[Tick, ...]
    title: str


def history_plot(
    entries: Sequence[BoardEntry],
    ranks: Sequence[int],
    figures: Mapping[str, Mapping[str, EntryFigures | None]],
) -> History | None:
    """The history of a table, whose entries are sorted by rank, over all kernels.

    Undated base lines count from the beginning. None if the dated entries are of fewer
    than two days.
    """
    found: list[tuple[date | None, int, BoardEntry, float]] = []
    for rank, entry in zip(ranks, entries, strict=True):
        each = figures.get(Scope().key, {}).get(entry.path)
        score = None if each is None or each.score is None else each.score[0]
        figure = each.spill_cost if each is not None and entry.is_split else score
        if figure is not None and (entry.date or entry.is_base_line):
            day = None if entry.date is None else date.fromisoformat(entry.date)
            found.append((day, rank, entry, figure))
    # No stranger's entry is older than the board.
    first = min((day for day, _, entry, _ in found if day and entry.is_base_line), default=None)
    found = [(day and max(day, first or day), n, entry, y) for day, n, entry, y in found]
    days = sorted({day for day, *_ in found if day is not None})
    if len(days) < 2:
        return None
    split = entries[0].is_split
    scale = round_scale([figure for *_, figure in found] if split else [0.0, 1.0], None)

    def across(day: date | None) -> float:
        if day is None:
            return LEFT + 12.0
        part = (day - days[0]) / (days[-1] - days[0])
        return round(LEFT + 40 + part * (WIDTH - LEFT - RIGHT - 50), 1)

    spots, line = [], []
    leading: tuple[int, float] | None = None
    for day, rank, entry, figure in sorted(found, key=lambda each: (each[0] or date.min, each[1])):
        x, y = across(day), up(scale, figure)
        words = f"spill cost {figure:,.1f}" if split else f"score {figure:.3f}"
        told = f"{day or 'no date'}: {rank}. {entry.submission['name']}, {words}"
        spots.append(DatedSpot(rank, entry.is_base_line, x, y, told))
        if leading is None or rank < leading[0]:
            # A step: the leader before it led until this day.
            line += [(x, leading[1])] if leading else []
            line.append((x, y))
            leading = rank, y
    assert leading is not None
    line.append((across(days[-1]) + 10, leading[1]))
    return History(
        WIDTH,
        HEIGHT,
        LEFT,
        HEIGHT - BOTTOM,
        tuple(spots),
        " ".join(f"{x},{y}" for x, y in line),
        tuple(Tick(across(day), day.isoformat()) for day in _written_days(days[0], days[-1])),
        tuple(Tick(up(scale, value), f"{value:,.4g}") for value in scale),
        "spill cost a kernel" if split else "score",
    )


def _written_days(first: date, last: date) -> list[date]:
    """Some days from the first to the last, evenly spread."""
    days = (last - first).days
    count = min(MOST_DATES, days + 1)
    return [first + timedelta(round(days * place / (count - 1))) for place in range(count)]
