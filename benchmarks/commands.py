"""The frame of a study's commands."""

from __future__ import annotations

import argparse
import sys

from verilocc_bench.errors import VerilocError


def run_command(parser: argparse.ArgumentParser, arguments: list[str] | None) -> int:
    """Runs the `action` of the options, and says in one line what stops it."""
    options = parser.parse_args(arguments)
    try:
        options.action(options)
    except VerilocError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("interrupted: the same command goes on", file=sys.stderr)
        return 130
    return 0
