"""Register allocators: the protocol and the built-in baselines."""

from verilocc_bench.allocator_options import (
    AllocatorOptions,
    Decoding,
    FeedbackKind,
    Objective,
    SamplingStrategy,
)
from verilocc_bench.allocators.graph_coloring import graph_coloring
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.protocol import (
    AllocationInterrupted,
    Allocator,
    Assistance,
    BatchAllocator,
    DetailedAllocator,
    Example,
    FailureKind,
    Feedback,
    Request,
    Response,
    answer_from_assignment,
    answers_batches,
)
from verilocc_bench.allocators.registry import BUILT_IN, LabelReplay, sees_labels
from verilocc_bench.allocators.searching import SearchAllocator
from verilocc_bench.edits import Answer, NamedAssignment

__all__ = [
    "BUILT_IN",
    "AllocationInterrupted",
    "Allocator",
    "AllocatorOptions",
    "Answer",
    "Assistance",
    "BatchAllocator",
    "Decoding",
    "DetailedAllocator",
    "Example",
    "FailureKind",
    "Feedback",
    "FeedbackKind",
    "LabelReplay",
    "NamedAssignment",
    "Objective",
    "Request",
    "Response",
    "SamplingStrategy",
    "SearchAllocator",
    "answer_from_assignment",
    "answers_batches",
    "graph_coloring",
    "linear_scan",
    "sees_labels",
]
