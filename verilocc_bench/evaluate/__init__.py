"""The evaluation harness: tasks, runner, metrics, results."""

from verilocc_bench.answers import (
    answer_to_json,
    parse_answer,
    read_answer,
    read_predictions,
)
from verilocc_bench.evaluate.models import Predictions, resolve_model
from verilocc_bench.evaluate.results import Configuration, make_results, results_json
from verilocc_bench.evaluate.runner import RowResult, Sample, ask, evaluate_row, evaluate_rows
from verilocc_bench.evaluate.table import failure_notes, results_table

__all__ = [
    "Configuration",
    "Predictions",
    "RowResult",
    "Sample",
    "answer_to_json",
    "ask",
    "evaluate_row",
    "evaluate_rows",
    "failure_notes",
    "make_results",
    "parse_answer",
    "read_answer",
    "read_predictions",
    "resolve_model",
    "results_json",
    "results_table",
]
