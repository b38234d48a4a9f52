"""Mines the table of distances from code of ptxas.

Two accesses of one register in ptxas's own code show that their distance is far enough.
They count if the distance is plain: neither a wait nor a jump lies between, of which
ptxas might know that they take longer than their stall counts. They do not count if the
two instructions stand under two different predicates, for perhaps only one ever takes
effect. Nor do they count if it would not matter that they meet: where nobody uses the
later value, or what the earlier reader makes of it. ptxas keeps no distance there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.used_values import used_values
from verilocc_bench.backends.nvidia.distance_table import Cell, DistanceTable, PairKind
from verilocc_bench.backends.nvidia.hazards import HazardKind
from verilocc_bench.backends.nvidia.issue_distances import (
    HORIZON,
    RecentPair,
    RegisterAccess,
    recent_pairs,
    timed_accesses,
)
from verilocc_bench.backends.nvidia.records import SassFunction


@dataclass(frozen=True, slots=True)
class Evidence:
    """The pairs of one kind and one distance in a kernel; `example` is the first of them.

    If they are not `plain`, they do not count for the table. Then `cycles` is the
    sum of the stall counts.
    """

    kind: PairKind
    cycles: int
    plain: bool
    pairs: int
    example: str


def evidence(name: str, function: SassFunction) -> list[Evidence]:
    """The pairs of accesses to one register in a kernel. `name` stands in the examples.

    Raises RejectedKernel if the control flow cannot be analysed.
    """
    found: dict[tuple[PairKind, int, bool], tuple[int, str]] = {}
    for kind, pair in _own_pairs(function):
        plain = pair.plain if _comparable(function, pair) else None
        key = (kind, pair.cycles if plain is None else plain, plain is not None)
        if key in found:
            count, example = found[key]
            found[key] = count + 1, example
        else:
            found[key] = 1, _example(name, function, pair)
    return [Evidence(*key, *value) for key, value in sorted(found.items())]


def mine(kernels: Iterable[Iterable[Evidence]], corpus: Mapping[str, Any]) -> DistanceTable:
    """The table of the least plain distances; of two examples the first counts."""
    cells: dict[PairKind, Cell] = {}
    for kernel in kernels:
        for each in kernel:
            if each.plain:
                old = cells.get(each.kind, Cell(HORIZON, 0, ""))
                closest: Cell | Evidence = each if each.cycles < old.cycles else old
                cells[each.kind] = Cell(closest.cycles, old.pairs + each.pairs, closest.example)
    return DistanceTable(cells, corpus)


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


def _own_pairs(function: SassFunction) -> Iterator[tuple[PairKind, RecentPair]]:
    """The pairs of accesses to one register by the function's own registers, below HORIZON."""
    timed = [timed_accesses(each, function.architecture) for each in function.instructions]
    values = used_values(function)
    accessed = [_registers((*each.reads, *each.writes)) for each in timed]
    overwritten = [_registers(each.overwrites) for each in timed]
    for pair in recent_pairs(function):
        if accessed[pair.earlier].isdisjoint(overwritten[pair.later]):
            continue
        first, second = timed[pair.earlier], timed[pair.later]
        if values.matters[pair.earlier]:
            for kind in _shared(HazardKind.WRITE_AFTER_READ, first.reads, second.overwrites):
                yield kind, pair
        used = [
            each
            for each in second.overwrites
            if values.is_used(pair.later, each.file, each.register)
        ]
        for kind in _shared(HazardKind.WRITE_AFTER_WRITE, first.writes, used):
            yield kind, pair


def _comparable(function: SassFunction, pair: RecentPair) -> bool:
    """True unless the two instructions stand under two different predicates."""
    first = function.instructions[pair.earlier].guard
    second = function.instructions[pair.later].guard
    return first is None or second is None or first == second


def _registers(accesses: Iterable[RegisterAccess]) -> frozenset[tuple[str, int]]:
    return frozenset((each.file, each.register) for each in accesses)


def _shared(
    hazard: HazardKind, earlier: Iterable[RegisterAccess], later: Iterable[RegisterAccess]
) -> Iterator[PairKind]:
    for one in earlier:
        for other in later:
            if (one.file, one.register) == (other.file, other.register):
                yield PairKind(hazard, one.access, other.access, one.file)


def _example(name: str, function: SassFunction, pair: RecentPair) -> str:
    first, second = (function.instructions[index] for index in (pair.earlier, pair.later))
    return f"{name}: {first.opcode} at {first.address:#x}, {second.opcode} at {second.address:#x}"
