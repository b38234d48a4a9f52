"""A register allocator in an installed package."""

from __future__ import annotations

from verilocc_bench.allocators import Answer, Assistance, Request, answer_from_assignment
from verilocc_bench.allocators.first_fit import first_fit
from verilocc_bench.analysis.interference import live_spans


class WidestFirst:
    """First fit in the order of widths, the widest first, and then of first points."""

    name = "widest-first"
    assistance = Assistance.TEXT
    deterministic = True

    def allocate(self, request: Request) -> Answer:
        """The answer for request.problem; first_fit raises AllocationFailed."""
        problem = request.problem
        classes = problem.function.virtual_registers
        starts = [start for start, _, _ in live_spans(problem.liveness)]
        order = sorted(range(len(classes)), key=lambda r: (-classes[r].width, starts[r], r))
        return answer_from_assignment(problem, first_fit(problem, order))
