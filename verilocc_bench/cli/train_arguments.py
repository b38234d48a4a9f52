"""The options of `train`."""

from __future__ import annotations

import argparse

from verilocc_bench.cli.argument_types import output_folder


def add_train_options(parser: argparse.ArgumentParser) -> None:
    """Adds them to the parser of the command."""
    parser.add_argument("recipe", metavar="RECIPE", help="a YAML file")
    parser.add_argument(
        "--dataset", required=True, help="mini, a folder, or a dataset id on the Hub"
    )
    parser.add_argument("--revision", help="revision of a dataset on the Hub")
    parser.add_argument(
        "-o",
        "--output",
        type=output_folder,
        required=True,
        metavar="DIR",
        help="the folder of the run",
    )
    parser.add_argument(
        "--base", metavar="MODEL", help="begin with this model, a folder or a Hub id"
    )
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="processes that make the examples"
    )
