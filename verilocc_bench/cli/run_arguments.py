"""The options of `verilocc-bench run`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from verilocc_bench.cli.argument_types import (
    add_arrays,
    add_output,
    address,
    natural,
    positive,
    tiles,
)
from verilocc_bench.errors import InputError

FOR_TRACES = ("wave", "visit", "work_group")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `run` takes besides KERNEL and its dataset."""
    parser.add_argument(
        "answer",
        metavar="ANSWER",
        type=Path,
        nargs="?",
        help="a file with one answer, which need not be valid; by default llc's own allocation",
    )
    add_tiles_option(parser)
    parser.add_argument(
        "--fast",
        action="store_true",
        help="loads land at once; by default they land only at the wait that covers them, and "
        "a value that is read too soon is poison",
    )
    parser.add_argument(
        "--trace",
        type=address,
        metavar="ADDRESS",
        help="print a wave's registers before the instruction there, and nothing else",
    )
    parser.add_argument("--wave", type=natural, help="the wave of --trace (default: 0)")
    parser.add_argument("--visit", type=natural, help="how often it came there before (default: 0)")
    parser.add_argument(
        "--work-group",
        type=_work_group,
        metavar="X,Y,Z",
        help="the work-group of --trace (default: 0,0,0)",
    )
    own = parser.add_argument_group(
        "a kernel of one's own", "KERNEL is then a code object (.o, .hsaco, .co)"
    )
    add_arrays(own)
    own.add_argument("--grid", type=sizes, metavar="X,Y,Z", help="how many work-groups")
    own.add_argument(
        "--block",
        type=sizes,
        metavar="X,Y,Z",
        help="work-items of a work-group (default: the most that the kernel allows)",
    )
    add_output(own, "write all arrays there, as .npz")
    parser.add_argument("--json", action="store_true", help="print JSON")


def refuse_options(options: argparse.Namespace, names: Sequence[str], why: str) -> None:
    """Raises InputError if one of these options is given; `why` goes on after its name."""
    for name in names:
        if getattr(options, name) is not None:
            raise InputError(f"--{name.replace('_', '-')} {why}", source=options.instance)


def add_tiles_option(parser: argparse.ArgumentParser) -> None:
    """Adds `--tiles`; None stands for the default of verilocc_bench.execution."""
    parser.add_argument(
        "--tiles",
        type=tiles,
        help="tiles in each dimension of the grid that is executed; from 2 on, the last one is cut "
        "short where the kernel allows it (default: 2)",
    )


def sizes(text: str) -> tuple[int, ...]:
    """Reads up to three numbers from 1 with commas between them."""
    found = tuple(positive(part) for part in text.split(","))
    if len(found) > 3:
        raise argparse.ArgumentTypeError(f"expected up to three numbers, not {text[:40]!r}")
    return found


def _work_group(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) != 3:
        message = f"expected three numbers, such as 1,0,0, not {text[:40]!r}"
        raise argparse.ArgumentTypeError(message)
    x, y, z = map(natural, parts)
    return x, y, z
