"""Allocators by the names that `--model` takes."""

from verilocc_bench.evaluate.models.description import (
    ModelDescription,
    describe_model,
    used_options,
)
from verilocc_bench.evaluate.models.predictions import (
    PredictedFailure,
    Predictions,
    failure_to_json,
    parse_prediction,
    read_predictions,
)
from verilocc_bench.evaluate.models.resolve import (
    PLUG_IN_GROUP,
    is_language_model,
    resolve_model,
)

__all__ = [
    "PLUG_IN_GROUP",
    "ModelDescription",
    "PredictedFailure",
    "Predictions",
    "describe_model",
    "failure_to_json",
    "is_language_model",
    "parse_prediction",
    "read_predictions",
    "resolve_model",
    "used_options",
]
