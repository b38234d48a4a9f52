"""The least distances that ptxas relies on, mined from its code.

python -m benchmarks.distances compile SWEEP... --measured FILE [--limit N] [--cubins FOLDER]
python -m benchmarks.distances generate COUNT --measured FILE [--cubins FOLDER]
python -m benchmarks.distances read FOLDER... --measured FILE
python -m benchmarks.distances mine --measured FILE [-o TABLE]

`compile` compiles the NVIDIA points of sweeps to cubins, and keeps what each kernel shows
in the journal FILE; `generate` does so with random PTX, and `read` with cubins that are
there. All go on where they were interrupted. `mine` writes the table of all kernels of a
journal (verilocc_bench/backends/nvidia/distances_ARCHITECTURE.json).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.commands import run_command
from benchmarks.distance_corpus import (
    Kernel,
    compile_generated,
    compile_sweeps,
    distinct_kernels,
    evidence_of,
    read_folders,
)
from benchmarks.distance_mining import mine, table_to_json
from verilocc_bench.backends.nvidia.architectures import ARCHITECTURES
from verilocc_bench.backends.nvidia.tools import tool_version
from verilocc_bench.cli.argument_types import positive
from verilocc_bench.files import write_output

TABLES = Path("verilocc_bench/backends/nvidia")


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    compiling = commands.add_parser("compile")
    compiling.add_argument("sweeps", nargs="+", metavar="SWEEP")
    compiling.add_argument("--limit", type=int, help="only the first points")
    compiling.set_defaults(
        action=lambda o: compile_sweeps(o.sweeps, o.architecture, o.measured, o.limit, o.cubins)
    )
    generating = commands.add_parser("generate")
    generating.add_argument("count", type=positive, metavar="COUNT")
    generating.set_defaults(
        action=lambda o: compile_generated(o.count, o.architecture, o.measured, o.cubins)
    )
    for each in (compiling, generating):
        each.add_argument("--cubins", type=Path, help="keep the cubins in this folder")
    reading = commands.add_parser("read")
    reading.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    reading.set_defaults(action=lambda o: read_folders(o.folders, o.architecture, o.measured))
    mining = commands.add_parser("mine")
    mining.add_argument("-o", "--output", type=Path, help="default: the package's own table")
    mining.set_defaults(action=_mine)
    for each in (compiling, generating, reading, mining):
        each.add_argument("--measured", type=Path, required=True, help="the journal")
        each.add_argument("--architecture", default="sm_80", choices=[*ARCHITECTURES])
    return run_command(parser, arguments)


def _mine(options: argparse.Namespace) -> None:
    kernels = distinct_kernels(options.measured)
    table = mine(map(evidence_of, kernels), _corpus(kernels))
    document = table_to_json(table)
    cells = ",\n  ".join(map(json.dumps, document["cells"]))
    text = json.dumps(document | {"cells": []}, indent=1)
    own = ARCHITECTURES[options.architecture].distances
    output = options.output or TABLES / (own or f"distances_{options.architecture}.json")
    write_output(output, text.replace('"cells": []', f'"cells": [\n  {cells}\n ]') + "\n")


def _corpus(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """The corpus: its size, the hash of its cubins, and the tool that made them."""
    hashes = "\n".join(sorted(kernel["sha256"] for kernel in kernels))
    return {
        "kernels": len(kernels),
        "instructions": sum(kernel["instructions"] for kernel in kernels),
        "pairs": sum(e.pairs for kernel in kernels for e in evidence_of(kernel) if e.plain),
        "sha256": hashlib.sha256(hashes.encode()).hexdigest(),
        "ptxas": tool_version("ptxas"),
    }


if __name__ == "__main__":
    sys.exit(main())
