"""The evaluation harness: asking, judging, storing, metrics, results."""

from verilocc_bench.evaluation.asking import settled_samples
from verilocc_bench.evaluation.configuration import RunConfiguration
from verilocc_bench.evaluation.evaluation import Evaluation, evaluate_together, run_folders
from verilocc_bench.evaluation.judging import judge
from verilocc_bench.evaluation.models import (
    PredictedFailure,
    parse_prediction,
    resolve_model,
    settings_kind,
)
from verilocc_bench.evaluation.prepared import PreparedProblem, PreparedRow
from verilocc_bench.evaluation.results import results_json
from verilocc_bench.evaluation.table import (
    TableStyle,
    allocator_label,
    check_columns,
    failure_notes,
    results_tables,
    wrapped,
)

__all__ = [
    "Evaluation",
    "PredictedFailure",
    "PreparedProblem",
    "PreparedRow",
    "RunConfiguration",
    "TableStyle",
    "allocator_label",
    "check_columns",
    "evaluate_together",
    "failure_notes",
    "judge",
    "parse_prediction",
    "resolve_model",
    "results_json",
    "results_tables",
    "run_folders",
    "settings_kind",
    "settled_samples",
    "wrapped",
]
