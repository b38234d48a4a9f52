"""`verilocc-bench normalize`."""

from __future__ import annotations

import argparse
import json

from verilocc_bench.cli.instance import normalize_file
from verilocc_bench.errors import InputError
from verilocc_bench.files import STANDARD_OUTPUT, write_output
from verilocc_bench.ir import print_function

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Prints or writes the normalized text, and the map to the original names."""
    if options.map is not None and options.map == (options.output or STANDARD_OUTPUT):
        raise InputError("the map and the text go to one place: give two files", source=options.map)
    normalized = normalize_file(options.file, options)
    text = print_function(normalized.function)
    if options.map is not None:
        names = {f"%{number}": name for number, name in enumerate(normalized.original_names)}
        write_output(options.map, json.dumps(names, indent=0) + "\n")
    write_output(options.output, text)
    return 0
