"""Prompts of `state` and `candidates` with all register numbers moved by one distance.

First fit uses low numbers far more often than high ones, and a model that has
rarely seen R248 cannot say it. The right choice stays the same when every
register of a prompt moves by one distance that keeps alignment and banks.
"""

from __future__ import annotations

import re
from random import Random

from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.targets import Target

STEP = 16
"""All distances are multiples of this, which is a multiple of all alignments and bank counts."""


def shifted(turn: Turn, target: Target, generator: Random) -> Turn:
    """The turn with the registers of each file moved by a distance for which the file has room.

    A run of bases that would go beyond the last legal base ends there.
    """
    counts = {file.name: file.count for file in target.files if not file.unit_names}
    pattern = re.compile(rf"(\.\.)?\b({'|'.join(counts)})(\d+)\b")
    query, newline, offers = turn.prompt.partition("\n")
    width = int(query.split()[2])
    steps = {name: int(step) for name, step in re.findall(r"(\S+)/(\d+)", query)}
    last = {
        name: (count - width) // steps.get(name, 1) * steps.get(name, 1)
        for name, count in counts.items()
    }
    places: dict[str, list[int]] = {}
    for end, name, number in pattern.findall(f"{offers} {turn.completion}"):
        if not end:  # a run has to begin within the file
            places.setdefault(name, []).append(int(number))
    distances = {
        name: STEP * generator.randint(-(min(own) // STEP), max(last[name] - max(own), 0) // STEP)
        for name, own in places.items()
    }

    def moved(found: re.Match[str]) -> str:
        end, name, number = found.groups()
        place = int(number) + distances[name]
        return f"{end}{name}{min(place, last[name])}" if end else f"{name}{place}"

    return Turn(query + newline + pattern.sub(moved, offers), pattern.sub(moved, turn.completion))
