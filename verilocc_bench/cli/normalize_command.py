"""`verilocc-bench normalize`."""

from __future__ import annotations

import argparse
import json

from verilocc_bench.cli.instance import normalize_file
from verilocc_bench.files import write_atomically
from verilocc_bench.ir import print_function

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Prints or writes the normalized text, and the map to the original names."""
    normalized = normalize_file(options.file, options)
    text = print_function(normalized.function)
    if options.map is not None:
        names = {f"%{number}": name for number, name in enumerate(normalized.original_names)}
        write_atomically(options.map, json.dumps(names, indent=0) + "\n")
    if options.output is None:
        print(text, end="")
    else:
        write_atomically(options.output, text)
    return 0
