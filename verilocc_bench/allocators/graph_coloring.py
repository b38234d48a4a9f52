"""Graph colouring with tuples: simplify, then select optimistically.

After Briggs, Cooper and Torczon, "Improvements to Graph Coloring Register
Allocation" (TOPLAS 1994), with the colourability test of Smith, Ramsey and
Holloway, "A Generalized Algorithm for Graph-Coloring Register Allocation"
(PLDI 2004): a node surely finds a base if its neighbours, wherever they lie,
block fewer bases than its class has. If no node is sure, the narrowest and
shortest-lived one goes onto the stack first, so wide and long-lived registers
are coloured early. It does not spill: a node without a colour fails.

Simplification counts interference of whole virtual registers. Selection works
lane by lane, like the other allocators. Cost: linear in the edges of the
interference graph, times the logarithm of its nodes.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from verilocc_bench.allocators.first_fit import first_fit
from verilocc_bench.analysis import AllocationProblem, iterate_bits
from verilocc_bench.analysis.interference import interference_sets, live_spans
from verilocc_bench.ir import Assignment, RegisterClass


def graph_coloring(problem: AllocationProblem) -> Assignment:
    """An assignment by graph colouring. Raises AllocationFailed if no colour is left."""
    return first_fit(problem, coloring_order(problem))


def coloring_order(problem: AllocationProblem) -> list[int]:
    """The nodes in the order of colouring: the last one that simplification removes comes first."""
    classes = problem.function.virtual_registers
    distinct = list(dict.fromkeys(classes))
    kind = [distinct.index(c) for c in classes]
    blocked = [[_blocked(node, neighbour) for neighbour in distinct] for node in distinct]
    neighbours = [list(iterate_bits(mask)) for mask in interference_sets(problem.liveness)]
    sizes = [size for _, _, size in live_spans(problem.liveness)]
    colours = [len(problem.placements.legal[c]) for c in classes]
    squeeze = []
    for node in range(len(classes)):
        blocked_by = blocked[kind[node]]
        squeeze.append(sum([blocked_by[kind[other]] for other in neighbours[node]]))

    def priority(node: int) -> tuple[bool, int, int, int]:
        return squeeze[node] >= colours[node], classes[node].width, sizes[node], node

    heap = [priority(node) for node in range(len(classes))]
    heapify(heap)
    removed = [False] * len(classes)
    order: list[int] = []
    while heap:
        entry = heappop(heap)
        node = entry[3]
        if removed[node] or entry != priority(node):
            continue
        removed[node] = True
        order.append(node)
        for other in neighbours[node]:
            if removed[other]:
                continue
            unsure = squeeze[other] >= colours[other]
            squeeze[other] -= blocked[kind[other]][kind[node]]
            if unsure and squeeze[other] < colours[other]:
                heappush(heap, priority(other))
    return order[::-1]


def _blocked(node: RegisterClass, neighbour: RegisterClass) -> int:
    """The most bases of class `node` that one register of class `neighbour` can block."""
    most = 0
    for own in node.ranges:
        for other in neighbour.ranges:
            if own.file == other.file:
                span = neighbour.width + node.width - 1
                most = max(most, -(-span // own.step))
    return most
