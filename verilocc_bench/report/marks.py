"""Colours and marks that tell runs apart, in every plot."""

from __future__ import annotations

COLOURS = ("#2f7fc1", "#d9730d", "#1f9d74", "#a55ec4", "#d1495b", "#8f7d1a")
MARKS = (("o", "●"), ("s", "■"), ("^", "▲"), ("D", "◆"), ("v", "▼"), ("P", "✚"))
"""Matplotlib's marks, and the characters that look like them."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "triangle-down", "cross")
"""Vega's names of the same marks."""


def mark_of(place: int) -> tuple[str, str]:
    """(colour, character) of the run at that place in its section."""
    return COLOURS[place % len(COLOURS)], MARKS[place % len(MARKS)][1]
