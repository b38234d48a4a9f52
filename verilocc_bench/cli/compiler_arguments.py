"""The options of the commands that stand between a user's code and a compiler."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from verilocc_bench.cli.argument_types import names, natural, output_folder
from verilocc_bench.settings.command_line import add_settings


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


def add_llc_options(parser: argparse.ArgumentParser) -> None:
    """Adds what `llc` takes of its own."""
    parser.usage = "%(prog)s [OPTIONS --] LLC_ARGUMENTS..."
    parser.add_argument(
        "--model", default="best", metavar="M", help="an allocator (default: %(default)s)"
    )
    parser.add_argument("--seed", type=natural, default=0, help="seed")
    parser.add_argument("--quiet", action="store_true", help="say nothing of what is done")
    parser.add_argument(
        "arguments",
        metavar="LLC_ARGUMENTS",
        nargs="*",
        help="llc's own arguments; options of this command come before them, and -- in between",
    )
    add_settings(parser)


def with_separator(arguments: Sequence[str]) -> list[str]:
    """The command line with `--` before llc's own arguments, if it is of this command.

    Without `--` all arguments are llc's.
    """
    found = list(arguments)
    if found[:1] == ["llc"] and "--" not in found and found[1:] not in (["--help"], ["-h"]):
        found.insert(1, "--")
    return found
