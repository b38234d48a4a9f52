"""`verilocc-bench normalize`."""

from __future__ import annotations

import argparse
import json

from tabulate import tabulate

from verilocc_bench.backends import backend_of_file
from verilocc_bench.cli.instance import read_options, tell_remarks
from verilocc_bench.errors import InputError
from verilocc_bench.files import STANDARD_OUTPUT, read_data, write_output


def run(options: argparse.Namespace) -> int:
    """Prints or writes the normalized text, and the map to the original names.

    With --list it says instead of each function whether it can be read.
    """
    if options.map is not None and options.map == (options.output or STANDARD_OUTPUT):
        raise InputError("the map and the text go to one place: give two files", source=options.map)
    data = read_data(options.file)
    if options.list:
        text = _listing(options, data)
    else:
        backend = backend_of_file(data)
        kernel = backend.read(data, options.file, read_options(options))
        tell_remarks(options, options.file, backend.remarks(kernel))
        text = kernel.problem.normalized
        if options.map is not None:
            names = {f"%{number}": name for number, name in enumerate(kernel.original_names)}
            write_output(options.map, json.dumps(names, indent=0) + "\n")
    write_output(options.output, text)
    return 0


def _listing(options: argparse.Namespace, data: bytes) -> str:
    for name in ("function", "map"):
        if getattr(options, name) is not None:
            raise InputError(f"--list says it of all functions: it goes without --{name}")
    rows: list[tuple[object, ...]] = []
    kernels = backend_of_file(data).read_all(data, options.file, read_options(options))
    for name, found in kernels:
        if isinstance(found, str):
            rows.append((name, "no", None, None, " ".join(found.split())))
        else:
            function = found.problem.function
            rows.append(
                (name, "yes", function.instruction_count, len(function.virtual_registers), "")
            )
    headers = ("function", "can be read", "instructions", "virtual registers", "reason")
    return tabulate(rows, headers, disable_numparse=True) + "\n"
