"""The options of the commands that stand between a user's code and a compiler."""

from __future__ import annotations

import argparse
from pathlib import Path

from verilocc_bench.cli.argument_types import names, output_folder


def add_capture_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `capture` takes."""
    parser.add_argument(
        "--arch", type=names, required=True, metavar="A,…", help="compile for these architectures"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=output_folder,
        required=True,
        metavar="DIR",
        help="write the dataset there; a new or empty folder",
    )
    parser.add_argument(
        "--license",
        default="NOASSERTION",
        metavar="SPDX",
        help="the license of the kernels (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("script", metavar="SCRIPT", type=Path, help="a Python script with kernels")
    parser.add_argument(
        "arguments",
        metavar="ARGS",
        nargs="*",
        help="the script's own arguments, after --; the options above come before SCRIPT",
    )
