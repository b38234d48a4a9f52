"""Register allocators: the protocol and the built-in ones."""

from verilocc_bench.allocators.graph_coloring import graph_coloring
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.protocol import (
    AllocationInterrupted,
    Allocator,
    Assistance,
    Example,
    FailureKind,
    Feedback,
    LabelUse,
    PromptIdentity,
    Request,
    Response,
    SpeaksInTokens,
    answer_from_assignment,
)
from verilocc_bench.allocators.registry import BUILT_IN
from verilocc_bench.allocators.searching import SearchAllocator
from verilocc_bench.allocators.single import SingleAllocator
from verilocc_bench.edits import Answer, NamedAssignment

__all__ = [
    "BUILT_IN",
    "AllocationInterrupted",
    "Allocator",
    "Answer",
    "Assistance",
    "Example",
    "FailureKind",
    "Feedback",
    "LabelUse",
    "NamedAssignment",
    "PromptIdentity",
    "Request",
    "Response",
    "SearchAllocator",
    "SingleAllocator",
    "SpeaksInTokens",
    "answer_from_assignment",
    "graph_coloring",
    "linear_scan",
]
