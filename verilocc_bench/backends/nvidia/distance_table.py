"""The least distances at which one instruction may overwrite what another reads or writes.

NVIDIA publishes no such distances. The table holds the least that ptxas relies on in its
own code: one cell for each class of the earlier access, class of the later write and
register file, with the number of pairs behind it and the closest pair as an example. Only
plain distances count (issue_distances), and no pair of instructions under two different
predicates, of which perhaps only one ever takes effect. A kind of pair
without a cell is not allowed below HORIZON cycles.

The table is data: `make distances` mines it anew.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from verilocc_bench.backends.nvidia.architectures import ARCHITECTURES
from verilocc_bench.backends.nvidia.hazards import HazardKind
from verilocc_bench.backends.nvidia.issue_distances import HORIZON


class PairKind(NamedTuple):
    """The kind of a pair: what the later write must not do yet, and to which register file."""

    hazard: HazardKind
    earlier: str
    later: str
    file: str


RAISED: Mapping[PairKind, int] = {
    PairKind(HazardKind.WRITE_AFTER_WRITE, "uniform", "uniform", "UR"): 8,
    PairKind(HazardKind.WRITE_AFTER_WRITE, "UIMAD", "uniform", "UR"): 7,
    PairKind(HazardKind.WRITE_AFTER_WRITE, "ULDC", "uniform", "UR"): 3,
}
"""Least distances that stand in for smaller mined ones.

On sm_80 the fast UMOV and the slow UIADD3, ULOP3 and the like are one class, and its closest
pairs have the fast one first. On sm_90 each is a class: these are its distances of a slow one
before a fast one."""


@dataclass(frozen=True, slots=True)
class Cell:
    """The least distance of a kind, the number of pairs, and the closest pair in words."""

    cycles: int
    pairs: int
    example: str


@dataclass(frozen=True, slots=True)
class DistanceTable:
    """The mined cells, and the corpus that they are mined from, as JSON."""

    cells: Mapping[PairKind, Cell]
    corpus: Mapping[str, Any]

    def least(self, kind: PairKind) -> int:
        """The least allowed distance of a kind; HORIZON for an unknown one."""
        cell = self.cells.get(kind)
        return HORIZON if cell is None else max(cell.cycles, RAISED.get(kind, 0))


@cache
def distance_table(architecture: str) -> DistanceTable:
    """The package's table of an architecture; an empty one, which allows nothing, without."""
    file = ARCHITECTURES[architecture].distances
    if file is None:
        return DistanceTable({}, {})
    text = resources.files(__package__).joinpath(file).read_text(encoding="utf-8")
    return table_from_json(json.loads(text))


def table_from_json(document: Mapping[str, Any]) -> DistanceTable:
    """The table of a document that table_to_json made."""
    cells = {
        PairKind(HazardKind(hazard), earlier, later, file): Cell(cycles, pairs, example)
        for hazard, earlier, later, file, cycles, pairs, example in document["cells"]
    }
    return DistanceTable(cells, document["corpus"])
