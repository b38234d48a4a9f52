"""`verilocc-bench llc`: llc's place in a build, with our registers in the middle."""

from __future__ import annotations

import argparse
import sys

from verilocc_bench.api.code_allocator import CodeAllocator
from verilocc_bench.api.llc_in_a_build import run_llc_in_a_build
from verilocc_bench.settings.command_line import given_settings


def run(options: argparse.Namespace) -> int:
    """Runs llc with its arguments; the status is llc's."""
    allocator = CodeAllocator(options.model, given_settings(options), options.seed)

    def tell(line: str) -> None:
        if not options.quiet:
            print(f"verilocc-bench llc: {line}", file=sys.stderr)

    try:
        return run_llc_in_a_build(options.arguments, allocator, tell)
    finally:
        allocator.close()
