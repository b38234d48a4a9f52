"""Views of the dataset for training: token ids for transformers, arrays for graph networks."""

from verilocc_bench.views.example import IGNORED, TokenizedExample, TokenizedOptions
from verilocc_bench.views.graph import OperandFlag, OperandRole, ProblemGraph
from verilocc_bench.views.graph_views import answer_from_arrays, graph_of
from verilocc_bench.views.on_datasets import tokenize_dataset
from verilocc_bench.views.packing import PackedBlock, pack
from verilocc_bench.views.tokenized import TokenizedView
from verilocc_bench.views.training_turns import training_turns
from verilocc_bench.views.view_report import ExampleOutcome
from verilocc_bench.views.view_rows import parse_label, problem_of
from verilocc_bench.views.vocabulary import UNKNOWN, OpcodeVocabulary

__all__ = [
    "IGNORED",
    "UNKNOWN",
    "ExampleOutcome",
    "OpcodeVocabulary",
    "OperandFlag",
    "OperandRole",
    "PackedBlock",
    "ProblemGraph",
    "TokenizedExample",
    "TokenizedOptions",
    "TokenizedView",
    "answer_from_arrays",
    "graph_of",
    "pack",
    "parse_label",
    "problem_of",
    "tokenize_dataset",
    "training_turns",
]
