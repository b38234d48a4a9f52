"""The options of `train`."""

from __future__ import annotations

import argparse

from verilocc_bench.cli.argument_types import output_folder, positive


def add_train_options(parser: argparse.ArgumentParser) -> None:
    """Adds them to the parser of the command."""
    parser.add_argument("recipe", metavar="RECIPE", help="a YAML file")
    parser.add_argument(
        "--dataset", required=True, help="mini, a folder, or a dataset id on the Hub"
    )
    parser.add_argument("--revision", help="revision of a dataset on the Hub")
    places = parser.add_mutually_exclusive_group(required=True)
    places.add_argument(
        "-o", "--output", type=output_folder, metavar="DIR", help="the folder of the run"
    )
    places.add_argument(
        "--export",
        type=output_folder,
        metavar="FOLDER",
        help="train nothing: write tokens, weights and a launcher for another machine",
    )
    parser.add_argument(
        "--base", metavar="MODEL", help="begin with this model, a folder or a Hub id"
    )
    parser.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="processes that make the examples"
    )
    parser.add_argument(
        "--report-to",
        metavar="SERVICE,…",
        default="",
        help="log the run with trackio, wandb, tensorboard, … of transformers",
    )
