"""The code that allocation inserts into a function, in units for answers and compilers.

A lane is a 32-bit unit that is copied, spilled, reloaded or made again. Weights
are 10 to the power of loop depth.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import assert_never

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.analysis.bank_conflicts import LOOP_WEIGHT
from verilocc_bench.edits import (
    Action,
    Answer,
    EditedFunction,
    Move,
    Reload,
    Rematerialize,
    Spill,
    edit_function,
)
from verilocc_bench.ir import VirtualLanes


class InsertedKind(StrEnum):
    """The kinds of inserted instructions.

    Scalar spills go to lanes of a VGPR or to memory. An accumulator copy has an
    AGPR on at least one side.
    """

    VECTOR_COPY = "vector_copy"
    ACCUMULATOR_COPY = "accumulator_copy"
    SCALAR_COPY = "scalar_copy"
    VECTOR_SPILL = "vector_spill"
    VECTOR_RELOAD = "vector_reload"
    SCALAR_SPILL = "scalar_spill"
    SCALAR_RELOAD = "scalar_reload"
    REMATERIALIZED = "rematerialized"


@dataclass(frozen=True, slots=True)
class InsertedCode:
    """Instructions, and the 32-bit lanes they move; weighted by 10 to the power of loop depth."""

    instructions: int = 0
    lanes: int = 0
    weighted_instructions: int = 0
    weighted_lanes: int = 0

    @classmethod
    def one(cls, lanes: int, weight: int) -> InsertedCode:
        """One instruction of so many lanes, in a block of that weight."""
        return cls(1, lanes, weight, weight * lanes)

    def __add__(self, other: InsertedCode) -> InsertedCode:
        return InsertedCode(
            self.instructions + other.instructions,
            self.lanes + other.lanes,
            self.weighted_instructions + other.weighted_instructions,
            self.weighted_lanes + other.weighted_lanes,
        )

    def __bool__(self) -> bool:
        return self.instructions > 0


def add_up(counts: Iterable[InsertedCode]) -> InsertedCode:
    """The sum; zero without summands."""
    return sum(counts, start=InsertedCode())


def count_inserted(problem: AllocationProblem, answer: Answer) -> dict[InsertedKind, InsertedCode]:
    """The code that a valid answer inserts, by kind, without moves that are identities.

    An edge has the weight of the shallower of its two blocks. A parallel move
    counts one instruction for each of its pairs.
    """
    edited, findings = edit_function(problem.function, problem.target, answer.edits)
    assert not findings
    files = _Files(problem, answer)
    found: dict[InsertedKind, InsertedCode] = {}
    for action, depth in _actions(edited, problem.loop_depths):
        for kind, lanes in files.inserted(action):
            one = InsertedCode.one(lanes, LOOP_WEIGHT**depth)
            found[kind] = found.get(kind, InsertedCode()) + one
    return {kind: found[kind] for kind in InsertedKind if kind in found}


def _actions(edited: EditedFunction, depths: tuple[int, ...]) -> Iterator[tuple[Action, int]]:
    """Every insertion with its loop depth."""
    for (block, _), actions in edited.before.items():
        yield from ((action, depths[block]) for action in actions)
    for (source, target), actions in edited.on_edge.items():
        yield from ((action, min(depths[source], depths[target])) for action in actions)


class _Files:
    """The files of an answer's lanes."""

    def __init__(self, problem: AllocationProblem, answer: Answer) -> None:
        self.vector_files = {*problem.target.vector_files}
        self.bases = {
            int(name[1:]): base
            for name, text in answer.assignment.items()
            if (base := parse_register_name(problem.target, text)) is not None
        }

    def place(self, lanes: VirtualLanes) -> tuple[str, int]:
        base = self.bases[lanes.register]
        return base.file, base.index + lanes.first

    def inserted(self, action: Action) -> Iterator[tuple[InsertedKind, int]]:
        """The kind and the lanes of each action of an insertion."""
        match action:
            case Move(pairs):
                for destination, source in pairs:
                    here, there = self.place(destination), self.place(source)
                    if here != there:
                        yield self.copy_kind(here[0], there[0]), destination.count
            case Spill(_, lanes):
                vector = self.place(lanes)[0] in self.vector_files
                yield _SPILL_KINDS[vector], lanes.count
            case Reload(lanes, _):
                vector = self.place(lanes)[0] in self.vector_files
                yield _RELOAD_KINDS[vector], lanes.count
            case Rematerialize(lanes):
                yield InsertedKind.REMATERIALIZED, lanes.count
            case _:
                assert_never(action)

    def copy_kind(self, destination: str, source: str) -> InsertedKind:
        if "a" in (destination, source):
            return InsertedKind.ACCUMULATOR_COPY
        if self.vector_files & {destination, source}:
            return InsertedKind.VECTOR_COPY
        return InsertedKind.SCALAR_COPY


_SPILL_KINDS = {True: InsertedKind.VECTOR_SPILL, False: InsertedKind.SCALAR_SPILL}
_RELOAD_KINDS = {True: InsertedKind.VECTOR_RELOAD, False: InsertedKind.SCALAR_RELOAD}
