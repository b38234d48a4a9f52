"""Register allocators: the protocol and the built-in baselines."""

from verilocc_bench.allocator_options import (
    AllocatorOptions,
    Decoding,
    FeedbackKind,
    SamplingStrategy,
)
from verilocc_bench.allocators.graph_coloring import graph_coloring
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.protocol import (
    Allocator,
    Answer,
    AnyAnswer,
    Assistance,
    BatchAllocator,
    Example,
    FailureKind,
    Feedback,
    Request,
    Response,
    answer_from_assignment,
    answers_batches,
)
from verilocc_bench.allocators.registry import BUILT_IN, LabelReplay

__all__ = [
    "BUILT_IN",
    "Allocator",
    "AllocatorOptions",
    "Answer",
    "AnyAnswer",
    "Assistance",
    "BatchAllocator",
    "Decoding",
    "Example",
    "FailureKind",
    "Feedback",
    "FeedbackKind",
    "LabelReplay",
    "Request",
    "Response",
    "SamplingStrategy",
    "answer_from_assignment",
    "answers_batches",
    "graph_coloring",
    "linear_scan",
]
