"""The evaluation harness: asking, judging, storing, metrics, results."""

from verilocc_bench.evaluate.asking import settled_samples
from verilocc_bench.evaluate.configuration import RunConfiguration
from verilocc_bench.evaluate.evaluation import Evaluation, evaluate, evaluate_together
from verilocc_bench.evaluate.judging import judge
from verilocc_bench.evaluate.models import (
    PredictedFailure,
    Predictions,
    parse_prediction,
    resolve_model,
    settings_kind,
)
from verilocc_bench.evaluate.prepared import PreparedProblem, PreparedRow
from verilocc_bench.evaluate.records import Judged, Outcome, RowResult, Sample
from verilocc_bench.evaluate.results import results_json
from verilocc_bench.evaluate.table import allocator_label, failure_notes, results_tables

__all__ = [
    "Evaluation",
    "Judged",
    "Outcome",
    "PredictedFailure",
    "Predictions",
    "PreparedProblem",
    "PreparedRow",
    "RowResult",
    "RunConfiguration",
    "Sample",
    "allocator_label",
    "evaluate",
    "evaluate_together",
    "failure_notes",
    "judge",
    "parse_prediction",
    "resolve_model",
    "results_json",
    "results_tables",
    "settings_kind",
    "settled_samples",
]
