"""The places where code can be inserted, and their weights."""

from __future__ import annotations

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import DEEPEST, LOOP_WEIGHT
from verilocc_bench.edits import VectorPlaces, last_place
from verilocc_bench.targets import MaskChange


class Sites:
    """The insertion places of one function; `masked` is True for moves of vector registers."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.function, self.target = problem.function, problem.target
        self.depths, self._edge_depth = problem.loop_depths, problem.edge_depth
        self._places = VectorPlaces(problem.function, problem.target)
        self._last_places: dict[int, int] = {}
        self._ranges: dict[tuple[int, bool], range] = {}

    def _range(self, block: int, masked: bool) -> range:
        """The indices of a block before which code can be inserted."""
        key = block, masked
        if key not in self._ranges:
            self._ranges[key] = self._find_range(block, masked)
        return self._ranges[key]

    def _find_range(self, block: int, masked: bool) -> range:
        instructions = self.function.blocks[block].instructions
        if not masked:
            return range(len(instructions) + 1)
        first, end = 0, len(instructions) + 1
        for index, instruction in enumerate(instructions):
            change = self.target.mask_change(instruction)
            if change & MaskChange.NARROWS:
                end = min(end, index + 1)
            if change & MaskChange.WIDENS:
                first = index + 1
        # The remaining objections depend on the block alone.
        if first < end and not any(self._places.objections(block, first)):
            return range(first, end)
        return range(0)

    def before(self, block: int, index: int, *, masked: bool) -> bool:
        """True if code can be inserted before an instruction, or at the end of a block."""
        if index not in self._range(block, masked):
            return False
        if block not in self._last_places:
            self._last_places[block] = last_place(self.function, self.target, block)
        return index <= self._last_places[block]

    def on_edge(self, source: int, *, masked: bool) -> bool:
        """True if code can be inserted on the edges out of a block."""
        return len(self.function.blocks[source].instructions) in self._range(source, masked)

    def weight(self, block: int) -> int:
        """The weight of one lane in a block."""
        return int(LOOP_WEIGHT ** min(self.depths[block], DEEPEST))

    def edge_weight(self, source: int, target: int) -> int:
        """The weight of one lane on an edge."""
        return int(LOOP_WEIGHT ** min(self._edge_depth(source, target), DEEPEST))
