"""The built-in allocators, by the names that `--model` knows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from verilocc_bench.allocators.graph_coloring import graph_coloring
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.protocol import Assistance, LabelUse, Request, answer_from_assignment
from verilocc_bench.allocators.search.options import Means
from verilocc_bench.allocators.searching import SearchAllocator
from verilocc_bench.allocators.single import SingleAllocator
from verilocc_bench.allocators.spill_everywhere import spill_everywhere
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment
from verilocc_bench.settings.allocator import AllocatorSettings
from verilocc_bench.settings.search import PlacementSettings


@dataclass(frozen=True)
class BuiltIn(SingleAllocator):
    """An allocator that is a function of the problem alone."""

    name: str
    function: Callable[[AllocationProblem], Assignment | Answer]
    description: str
    settings: AllocatorSettings = field(default_factory=AllocatorSettings)

    revision: ClassVar[None] = None
    assistance: ClassVar[Assistance] = Assistance.TEXT
    deterministic: ClassVar[bool] = True
    label_use: ClassVar[LabelUse] = LabelUse.NONE

    def allocate(self, request: Request) -> Answer:
        """The function's assignment by the names of answers, or its answer with edits."""
        found = self.function(request.problem)
        if isinstance(found, Answer):
            return found
        return Answer(answer_from_assignment(request.problem, found))


@dataclass(frozen=True)
class LabelReplay(SingleAllocator):
    """Answers with a compiler's label.

    `alternative` None means the label of the row itself. Otherwise it is the
    first of the other labels whose source starts with `alternative`.
    """

    name: str
    alternative: str | None
    description: str
    settings: AllocatorSettings = field(default_factory=AllocatorSettings)

    revision: ClassVar[None] = None
    assistance: ClassVar[Assistance] = Assistance.TEXT
    deterministic: ClassVar[bool] = True
    label_use: ClassVar[LabelUse] = LabelUse.REPLAY

    def allocate(self, request: Request) -> Answer:
        """The label. Raises AllocationFailed if the row lacks one of this source."""
        if self.alternative is None:
            if request.label is not None:
                return Answer(request.label)
        else:
            for source, answer in (request.alternatives or {}).items():
                if source.startswith(self.alternative):
                    return Answer(answer)
        raise AllocationFailed("the dataset has no label of this compiler for the function")


def _live_range_splitting(problem: AllocationProblem) -> Assignment | Answer:
    from verilocc_bench.allocators.splitting import split_allocate

    return split_allocate(problem)


def _constraint_programming(problem: AllocationProblem) -> Assignment:
    from verilocc_bench.allocators.exact.exact_allocator import constraint_programming

    return constraint_programming(problem)


BUILT_IN: dict[str, BuiltIn | LabelReplay | SearchAllocator] = {
    allocator.name: allocator
    for allocator in (
        LabelReplay("compiler", None, "replays the compiler's own assignment, the label"),
        LabelReplay("llvm-basic", "llvm-basic", "replays LLVM's basic allocator, where it has one"),
        BuiltIn(
            "linear-scan",
            linear_scan,
            "first fit in the order of first live points",
            PlacementSettings(),
        ),
        BuiltIn(
            "graph-coloring",
            graph_coloring,
            "Chaitin-Briggs colouring for register tuples",
            PlacementSettings(),
        ),
        BuiltIn("spill-everywhere", spill_everywhere, "linear scan, and spill code where it fails"),
        SearchAllocator("first-fit-orders", "the best of first fit in four orders", Means.ORDERS),
        SearchAllocator(
            "annealed-orders", "annealing on the order of first fit", Means.ANNEALED_ORDERS
        ),
        SearchAllocator(
            "tabu-search",
            "tabu search for fewer registers, annealing for fewer bank conflicts",
            Means.TABU,
        ),
        BuiltIn(
            "live-range-splitting",
            _live_range_splitting,
            "no edits where it fits, else the cheapest split, and search for places (split track)",
        ),
        BuiltIn(
            "cp-sat",
            _constraint_programming,
            "constraint programming, within a budget",
            PlacementSettings(),
        ),
        SearchAllocator(
            "best",
            "tabu-search, CP-SAT where that is not proved, and all other ways where it has nothing",
            Means.PORTFOLIO,
            LabelUse.LAST,
        ),
        SearchAllocator(
            "best-or-compiler",
            "best, begun with the compiler's label; says where that stays the best",
            Means.PORTFOLIO,
            LabelUse.FIRST,
        ),
    )
}


ANSWER_ALONE = [
    name
    for name, allocator in BUILT_IN.items()
    if allocator.label_use in (LabelUse.NONE, LabelUse.LAST)
]
"""The allocators that answer from the function alone if a request has no label."""
