"""`verilocc-bench lower`."""

from __future__ import annotations

import argparse
from pathlib import Path

from verilocc_bench.cli.instance import load_instance
from verilocc_bench.cli.lower_cubin import lower_cubin
from verilocc_bench.cli.lower_machine_ir import lower_machine_ir
from verilocc_bench.files import read_data
from verilocc_bench.parse.cubin import is_cubin

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Writes the machine code and prints a summary; the status is 1, and nothing written, for a
    wrong answer."""
    path = Path(options.instance)
    if path.is_file():
        lower_file = lower_cubin if is_cubin(read_data(path)) else lower_machine_ir
        return lower_file(options, None)
    instance = load_instance(options)
    lower_row = lower_machine_ir if instance.problem.target.vendor == "amd" else lower_cubin
    return lower_row(options, instance)
