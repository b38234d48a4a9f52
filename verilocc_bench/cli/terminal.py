"""How wide the terminal is, and whether it shows colours."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from typing import TextIO

from verilocc_bench.evaluation import TableStyle


def table_style(options: argparse.Namespace) -> TableStyle:
    """How a command prints results on standard output, by its --wide and --columns.

    COLUMNS or the terminal decides the width, else it is 80 characters.
    """
    width = None if options.wide else shutil.get_terminal_size().columns
    return TableStyle(width=width, columns=options.columns, colour=shows_colour(sys.stdout))


def shows_colour(stream: TextIO | None) -> bool:
    """True for a terminal, unless NO_COLOR (https://no-color.org) is set or it is a dumb one."""
    if stream is None or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False
