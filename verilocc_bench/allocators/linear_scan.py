"""Linear scan: virtual registers in the order of their first live point.

After Poletto and Sarkar, "Linear Scan Register Allocation" (TOPLAS 1999),
without spilling, and with the lifetime holes of Traub, Holloway and Smith
("Quality and Speed in Linear-scan Register Allocation", PLDI 1998): first
fit over exact live ranges. Among registers that start together, wider ones and
longer ones come first.
"""

from __future__ import annotations

from verilocc_bench.allocators.first_fit import first_fit
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.interference import live_spans
from verilocc_bench.ir import Assignment


def linear_scan(problem: AllocationProblem) -> Assignment:
    """An assignment by linear scan. Raises AllocationFailed if registers run out."""
    return first_fit(problem, scan_order(problem))


def scan_order(problem: AllocationProblem) -> list[int]:
    """Virtual registers by first live point; at the same point the wider and longer ones first."""
    classes = problem.function.virtual_registers
    spans = live_spans(problem.liveness)

    def priority(register: int) -> tuple[int, int, int, int]:
        start, _, size = spans[register]
        return start, -classes[register].width, -size, register

    return sorted(range(len(classes)), key=priority)
