"""An allocator as an object: asks several others and keeps the answer with the fewest registers."""

from __future__ import annotations

from verilocc_bench.allocators import BUILT_IN, Answer, Assistance, Request
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.verification import Verifier


class BestOf:
    """The best answer of some built-in allocators.

    `assistance` says what the allocator sees. `deterministic` says that all
    samples of a function are equal, so that it is asked once.
    """

    assistance = Assistance.TEXT
    deterministic = True

    def __init__(self, *names: str) -> None:
        self.name = f"best of {', '.join(names)}"
        self.allocators = [BUILT_IN[name] for name in names]

    def allocate(self, request: Request) -> Answer:
        """The answer for request.problem. Raises AllocationFailed if there is none."""
        verifier = Verifier(request.problem)
        found: list[tuple[int, int, Answer]] = []
        for place, allocator in enumerate(self.allocators):
            try:
                answer = allocator.allocate(request)
            except AllocationFailed:
                continue  # the others may have one
            verdict = verifier.verify(answer)
            if verdict.valid and verdict.registers_used is not None:
                found.append((verdict.registers_used["vector"], place, answer))
        if not found:
            raise AllocationFailed("all of them failed")
        return min(found)[2]


best_of_two = BestOf("linear-scan", "graph-coloring")
