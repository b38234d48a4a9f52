"""`verilocc-bench compare`: two assignments of one kernel by their machine code."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from verilocc_bench.cli.compare_cubin import compare_cubins
from verilocc_bench.cli.compare_machine_ir import compare_machine_code
from verilocc_bench.cli.comparison_document import Comparison, comparison_text
from verilocc_bench.cli.instance import load_instance
from verilocc_bench.errors import InputError, RejectedKernel
from verilocc_bench.files import read_data, write_atomically
from verilocc_bench.parse.cubin import is_cubin

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Prints the comparison, and with --output writes all that it takes to repeat it.

    The status is 1, and nothing written, where one of the answers is wrong.
    """
    folder: Path | None = options.output
    if folder is not None and folder.exists() and not folder.is_dir():
        raise InputError("expected a folder", source=folder)
    comparison = _compare(options)
    if comparison is None:
        return 1
    document = json.dumps(comparison.document, indent=2)
    if folder is not None:
        for name, data in comparison.files.items():
            write_atomically(folder / name, data)
        write_atomically(folder / "comparison.json", document + "\n")
    print(document if options.json else comparison_text(comparison.document))
    if folder is not None and not options.json:
        print(f"wrote {folder}")
    return 0


def _compare(options: argparse.Namespace) -> Comparison | None:
    path = Path(options.instance)
    try:
        if path.is_file():
            data = read_data(path)
            if is_cubin(data):
                return compare_cubins(options, load_instance(options), None)
            return compare_machine_code(options, None)
        instance = load_instance(options)
        if instance.problem.target.vendor == "amd":
            return compare_machine_code(options, instance)
        return compare_cubins(options, instance, instance)
    except RejectedKernel as rejected:
        raise InputError(rejected.reason, source=options.instance) from None
