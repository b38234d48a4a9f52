"""`verilocc-bench train`."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from pathlib import Path

from verilocc_bench.cli.output_stream import reserved_stdout
from verilocc_bench.errors import InputError, MissingExtraError


def run(options: argparse.Namespace) -> int:
    """Trains a model by a recipe; goes on where an earlier run of it was interrupted."""
    if options.jobs < 1:
        raise InputError(f"--jobs {options.jobs}: expected at least 1")
    for package in ("torch", "transformers", "accelerate"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "model", "training")
    with reserved_stdout() as stdout:  # the Trainer prints its losses
        folder = _train(options)
        advice = f"score it with: verilocc-bench evaluate --model {folder}"
        print(f"the model is in {folder}; {advice}", file=stdout)
    return 0


def _train(options: argparse.Namespace) -> Path:
    from verilocc_bench.training import find_recipe, train

    return train(
        find_recipe(options.recipe, base=options.base),
        options.dataset,
        options.output,
        revision=options.revision,
        jobs=options.jobs,
    )
