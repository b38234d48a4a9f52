"""The options of `selftest`."""

from __future__ import annotations

import argparse
from pathlib import Path

from verilocc_bench.cli.argument_types import names, natural, positive


def add_selftest_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `selftest` takes."""
    parser.add_argument("--seconds", type=positive, metavar="N", help="stop after so long")
    parser.add_argument(
        "--mutants",
        type=positive,
        metavar="N",
        help="stop after N answers; by default 20000, unless --seconds is given",
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed")
    parser.add_argument(
        "--dataset", default="mini", help="where real kernels come from besides generated functions"
    )
    parser.add_argument("--smt", action="store_true", help="ask Z3 about generated functions too")
    parser.add_argument(
        "--execute",
        type=natural,
        default=0,
        metavar="N",
        help="run the machine code of N accepted answers to kernels of gfx90a and gfx942, and "
        "compare what it leaves in memory, bit for bit (needs llc of LLVM 22)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    small = parser.add_argument_group(
        "small scope", "all answers to all small functions instead of random ones"
    )
    small.add_argument("--small-scope", action="store_true", help="enumerate them")
    small.add_argument(
        "--families",
        type=names,
        metavar="F,…",
        help="only these families of functions (docs/verification.md)",
    )
    small.add_argument(
        "--instructions",
        type=positive,
        metavar="N",
        help="functions of at most N instructions: 1 to 3, by default 3",
    )
    small.add_argument("--jobs", type=positive, metavar="N", help="N processes; by default 1")
    small.add_argument(
        "--resume",
        type=Path,
        metavar="FILE",
        help="keep in FILE what is done, and go on from there where it exists",
    )
