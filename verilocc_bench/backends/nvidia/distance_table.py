"""The least distances at which one instruction may overwrite what another reads or writes.

NVIDIA publishes no such distances. The table holds the least that ptxas relies on in its
own code: one cell for each class of the earlier access, class of the later write and
register file, with the number of pairs behind it and the closest pair as an example. Only
plain distances count (issue_distances), and no pair of instructions under two different
predicates, of which perhaps only one ever takes effect. A kind of pair without a cell is
not allowed below HORIZON cycles.

The table is data: `make distances` mines it anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

from verilocc_bench.backends.nvidia.hazards import HazardKind
from verilocc_bench.backends.nvidia.issue_distances import (
    HORIZON,
    RegisterAccess,
    recent_pairs,
    timed_accesses,
)
from verilocc_bench.backends.nvidia.records import SassFunction

TABLE_FILE = "distances.json"


class PairKind(NamedTuple):
    """The kind of a pair: what the later write must not do yet, and to which register file."""

    hazard: HazardKind
    earlier: str
    later: str
    file: str


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
        return HORIZON if cell is None else cell.cycles


class OwnPair(NamedTuple):
    """Two accesses of one register, `cycles` apart; `plain` is as in RecentPair."""

    kind: PairKind
    earlier: int
    later: int
    cycles: int
    plain: int | None


@cache
def distance_table() -> DistanceTable:
    """The table of the package."""
    text = resources.files(__package__).joinpath(TABLE_FILE).read_text(encoding="utf-8")
    return table_from_json(json.loads(text))


def table_from_json(document: Mapping[str, Any]) -> DistanceTable:
    """The table of a document that table_to_json made."""
    cells = {
        PairKind(HazardKind(hazard), earlier, later, file): Cell(cycles, pairs, example)
        for hazard, earlier, later, file, cycles, pairs, example in document["cells"]
    }
    return DistanceTable(cells, document["corpus"])


def table_to_json(table: DistanceTable) -> dict[str, Any]:
    """The table as a document, its cells in order."""
    return {
        "corpus": dict(table.corpus),
        "columns": ["kind", "earlier", "later", "file", "cycles", "pairs", "example"],
        "cells": [
            [kind.hazard.value, *kind[1:], cell.cycles, cell.pairs, cell.example]
            for kind, cell in sorted(table.cells.items())
        ],
    }


def own_pairs(function: SassFunction) -> Iterator[OwnPair]:
    """The pairs of accesses to one register by the function's own registers, below HORIZON."""
    timed = [timed_accesses(instruction) for instruction in function.instructions]
    accessed = [_registers((*each.reads, *each.writes)) for each in timed]
    overwritten = [_registers(each.overwrites) for each in timed]
    for pair in recent_pairs(function):
        if accessed[pair.earlier].isdisjoint(overwritten[pair.later]):
            continue
        first, second = timed[pair.earlier], timed[pair.later]
        for hazard, accesses in (
            (HazardKind.WRITE_AFTER_READ, first.reads),
            (HazardKind.WRITE_AFTER_WRITE, first.writes),
        ):
            for kind in _shared(hazard, accesses, second.overwrites):
                yield OwnPair(kind, pair.earlier, pair.later, pair.cycles, pair.plain)


def is_evidence(function: SassFunction, pair: OwnPair) -> bool:
    """True if the compiler relies on the distance of a pair of its own code."""
    if pair.plain is None:
        return False
    first = function.instructions[pair.earlier].guard
    second = function.instructions[pair.later].guard
    return first is None or second is None or first == second


def mine(kernels: Iterable[tuple[str, SassFunction]], corpus: Mapping[str, Any]) -> DistanceTable:
    """The table of the least plain distances in kernels. Names stand in the examples."""
    cells: dict[PairKind, Cell] = {}
    for name, function in kernels:
        for pair in own_pairs(function):
            if not is_evidence(function, pair) or pair.plain is None:
                continue
            old = cells.get(pair.kind)
            if old is None or pair.plain < old.cycles:
                example = _example(name, function, pair)
                cells[pair.kind] = Cell(pair.plain, 1 + (old.pairs if old else 0), example)
            else:
                cells[pair.kind] = Cell(old.cycles, old.pairs + 1, old.example)
    return DistanceTable(cells, corpus)


def _registers(accesses: Iterable[RegisterAccess]) -> frozenset[tuple[str, int]]:
    return frozenset((each.file, each.register) for each in accesses)


def _shared(
    hazard: HazardKind, earlier: Iterable[RegisterAccess], later: Iterable[RegisterAccess]
) -> Iterator[PairKind]:
    for one in earlier:
        for other in later:
            if (one.file, one.register) == (other.file, other.register):
                yield PairKind(hazard, one.access, other.access, one.file)


def _example(name: str, function: SassFunction, pair: OwnPair) -> str:
    first, second = (function.instructions[index] for index in (pair.earlier, pair.later))
    return (
        f"{name}: {first.opcode} at {first.address:#x}, {second.opcode} at {second.address:#x}"
    )
