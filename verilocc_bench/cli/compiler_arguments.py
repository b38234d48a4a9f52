"""The options of the commands that stand between a user's code and a compiler."""

from __future__ import annotations

import argparse
from pathlib import Path

from verilocc_bench.cli.argument_types import (
    add_arrays,
    add_other,
    add_output,
    names,
    natural,
    positive,
)
from verilocc_bench.cli.run_arguments import sizes


def add_capture_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `capture` takes."""
    parser.add_argument(
        "--arch", type=names, required=True, metavar="A,…", help="compile for these architectures"
    )
    add_output(parser, "write the dataset there; a new or empty folder", folder=True, required=True)
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


def add_measure_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `measure` takes besides KERNEL and its dataset."""
    parser.add_argument(
        "answer", metavar="ANSWER", type=Path, nargs="?", help="a file with one answer"
    )
    add_other(parser)
    add_output(parser, "write the folder there, or add the kernel to it", folder=True)
    parser.add_argument(
        "--tiles",
        type=positive,
        default=4,
        help="tiles in each dimension of the grid, for rows with a reference (default: 4)",
    )
    parser.add_argument(
        "--depth",
        type=positive,
        metavar="N",
        help="blocks of the loop along K or the keys, for rows with a reference (default: a few)",
    )
    own = parser.add_argument_group("a launch of one's own")
    add_arrays(own)
    own.add_argument("--grid", type=sizes, metavar="X,Y,Z", help="how many work-groups or blocks")
    own.add_argument(
        "--threads", type=positive, metavar="N", help="threads of each (default: the row's)"
    )
    own.add_argument(
        "--shared", type=natural, metavar="BYTES", help="bytes of local memory (default: the row's)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
