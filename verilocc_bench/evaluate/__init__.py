"""The evaluation harness: asking, judging, the ledger, metrics, results."""

from verilocc_bench.evaluate.asking import ask, judge
from verilocc_bench.evaluate.few_shot import FewShot, load_few_shot
from verilocc_bench.evaluate.fingerprints import fingerprint
from verilocc_bench.evaluate.ledger import LEDGER, Ledger
from verilocc_bench.evaluate.models import (
    ModelDescription,
    PredictedFailure,
    Predictions,
    describe_model,
    parse_prediction,
    resolve_model,
    used_options,
)
from verilocc_bench.evaluate.output import RESULTS, write_run
from verilocc_bench.evaluate.parallel import complete_runs
from verilocc_bench.evaluate.prepared import PreparedProblem, PreparedRow
from verilocc_bench.evaluate.records import Judged, Outcome, RowResult, Sample
from verilocc_bench.evaluate.results import Configuration, make_results, results_json
from verilocc_bench.evaluate.runner import Run, RunSettings, SplitRow, settle
from verilocc_bench.evaluate.table import allocator_label, failure_notes, results_tables

__all__ = [
    "LEDGER",
    "RESULTS",
    "Configuration",
    "FewShot",
    "Judged",
    "Ledger",
    "ModelDescription",
    "Outcome",
    "PredictedFailure",
    "Predictions",
    "PreparedProblem",
    "PreparedRow",
    "RowResult",
    "Run",
    "RunSettings",
    "Sample",
    "SplitRow",
    "allocator_label",
    "ask",
    "complete_runs",
    "describe_model",
    "failure_notes",
    "fingerprint",
    "judge",
    "load_few_shot",
    "make_results",
    "parse_prediction",
    "resolve_model",
    "results_json",
    "results_tables",
    "settle",
    "used_options",
    "write_run",
]
