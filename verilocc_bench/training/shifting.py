"""Prompts of `state` and `candidates` with all register numbers moved alike.

First fit uses low numbers far more often than high ones. A model that has
rarely seen R248 cannot say it. The right choice does not change when every
register of a prompt moves by one distance that keeps alignment and banks.
"""

from __future__ import annotations

import re
from random import Random

from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.targets import Target

__all__ = ["shifted"]

STEP = 16
"""Distances are multiples of this: of every tuple's alignment, and of the number of banks."""


def shifted(turn: Turn, target: Target, generator: Random) -> Turn:
    """The turn with the registers of each file moved by a distance that the file has room for.

    Runs of free registers that would go beyond a file end with it: what was
    long enough stays so.
    """
    counts = {file.name: file.count for file in target.files if not file.unit_names}
    pattern = re.compile(rf"\b({'|'.join(counts)})(\d+)(?:\+(\d+))?")
    query, newline, offers = turn.prompt.partition("\n")
    width = int(query.split()[2])
    lowest: dict[str, int] = {}
    highest: dict[str, int] = {}
    for name, first, length in pattern.findall(f"{offers} {turn.completion}"):
        lowest[name] = min(int(first), lowest.get(name, int(first)))
        needed = min(int(length or 1), width)
        highest[name] = max(int(first) + needed - 1, highest.get(name, 0))
    distances = {
        name: STEP
        * generator.randint(-(lowest[name] // STEP), (counts[name] - 1 - highest[name]) // STEP)
        for name in lowest
    }

    def moved(found: re.Match[str]) -> str:
        name, first, length = found.groups()
        start = int(first) + distances[name]
        if length is None:
            return f"{name}{start}"
        return f"{name}{start}+{min(int(length), counts[name] - start)}"

    return Turn(query + newline + pattern.sub(moved, offers), pattern.sub(moved, turn.completion))
