"""The evaluation harness: asking, judging, the ledger, metrics, results."""

from verilocc_bench.evaluate.asking import ask, judge
from verilocc_bench.evaluate.few_shot import load_few_shot
from verilocc_bench.evaluate.ledger import LEDGER, Ledger
from verilocc_bench.evaluate.models import (
    ModelDescription,
    Predictions,
    describe_model,
    resolve_model,
)
from verilocc_bench.evaluate.output import write_run
from verilocc_bench.evaluate.parallel import complete_runs
from verilocc_bench.evaluate.prepared import PreparedProblem, PreparedRow
from verilocc_bench.evaluate.records import Judged, Outcome, RowResult, Sample
from verilocc_bench.evaluate.results import Configuration, make_results, results_json
from verilocc_bench.evaluate.runner import Run, RunSettings, SplitRow, settle
from verilocc_bench.evaluate.table import failure_notes, results_tables

__all__ = [
    "LEDGER",
    "Configuration",
    "Judged",
    "Ledger",
    "ModelDescription",
    "Outcome",
    "Predictions",
    "PreparedProblem",
    "PreparedRow",
    "RowResult",
    "Run",
    "RunSettings",
    "Sample",
    "SplitRow",
    "ask",
    "complete_runs",
    "describe_model",
    "failure_notes",
    "judge",
    "load_few_shot",
    "make_results",
    "resolve_model",
    "results_json",
    "results_tables",
    "settle",
    "write_run",
]
