"""Allocators by the names that `--model` takes."""

from verilocc_bench.evaluate.models.resolve import PLUG_IN_GROUP, Predictions, resolve_model

__all__ = ["PLUG_IN_GROUP", "Predictions", "resolve_model"]
