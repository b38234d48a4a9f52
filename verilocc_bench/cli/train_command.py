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
    if options.notes and options.jobs > 1:
        raise InputError("--jobs means nothing to --notes")
    for package in ("torch", "transformers", "accelerate"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "model", "training")
    with reserved_stdout() as stdout:  # the Trainer prints its losses
        train = _train_notes if options.notes else _train
        folder = train(options)
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


def _train_notes(options: argparse.Namespace) -> Path:
    from verilocc_bench.training.notes.recipe import NotesRecipe
    from verilocc_bench.training.notes.run import train_notes
    from verilocc_bench.training.recipe_files import find_recipe_file, read_document

    recipe = read_document(NotesRecipe, find_recipe_file(options.recipe, folder="notes"))
    return train_notes(
        recipe, options.dataset, options.output, revision=options.revision, base=options.base
    )
