"""Allocators by the names that `--model` takes."""

from verilocc_bench.evaluation.models.predictions import (
    PredictedFailure,
    Predictions,
    failure_to_json,
    parse_prediction,
    read_predictions,
)
from verilocc_bench.evaluation.models.resolve import (
    OWN,
    PLUG_IN_GROUP,
    resolve_model,
    settings_kind,
)

__all__ = [
    "OWN",
    "PLUG_IN_GROUP",
    "PredictedFailure",
    "Predictions",
    "failure_to_json",
    "parse_prediction",
    "read_predictions",
    "resolve_model",
    "settings_kind",
]
