"""Register allocators: the protocol and the built-in baselines."""

from verilocc_bench.allocators.graph_coloring import graph_coloring
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.protocol import (
    Allocator,
    Answer,
    AnyAnswer,
    Assistance,
    Request,
    answer_from_assignment,
)
from verilocc_bench.allocators.registry import BUILT_IN, LabelReplay

__all__ = [
    "BUILT_IN",
    "Allocator",
    "Answer",
    "AnyAnswer",
    "Assistance",
    "LabelReplay",
    "Request",
    "answer_from_assignment",
    "graph_coloring",
    "linear_scan",
]
