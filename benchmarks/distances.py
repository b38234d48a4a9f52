"""The least distances that ptxas relies on, mined from its code.

python -m benchmarks.distances compile SWEEP... --measured FILE [--limit N] [--cubins FOLDER]
python -m benchmarks.distances generate COUNT --measured FILE [--cubins FOLDER]
python -m benchmarks.distances read FOLDER... --measured FILE
python -m benchmarks.distances mine --measured FILE [-o TABLE]
python -m benchmarks.distances report --measured FILE [--held-out FILE]

`compile` compiles the NVIDIA points of sweeps to cubins, and keeps what each kernel shows
in the journal FILE; `generate` does so with random PTX, and `read` with cubins that are
there. All go on where they were interrupted. `mine` writes the table of all kernels of a
journal (verilocc_bench/backends/nvidia/distances_ARCHITECTURE.json). `report` prints how
the distances fall with the corpus, and how many of the compiler's own pairs a table
refuses that was mined from other kernels.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from benchmarks.distance_mining import Evidence, mine, refused, table_to_json
from verilocc_bench.backends.nvidia.architectures import ARCHITECTURES
from verilocc_bench.backends.nvidia.distance_table import (
    DistanceTable,
    PairKind,
)
from verilocc_bench.backends.nvidia.tools import tool_version
from verilocc_bench.cli.argument_types import positive
from verilocc_bench.files import write_output

TABLES = Path("verilocc_bench/backends/nvidia")
SIZES = (25, 50, 100, 200, 400, 800, 1600)
PARTS = (
    ("even", "odd"),
    ("odd", "even"),
    ("even of the sweep", "odd of the sweep"),
    ("odd of the sweep", "even of the sweep"),
    ("generated", "sweep"),
    ("sweep", "generated"),
    ("all", "all"),
    ("all", "held out"),
)
"""The parts of the corpus that a table is mined on and checked on."""


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
    report = commands.add_parser("report")
    report.add_argument("--held-out", type=Path, help="a journal that is only checked")
    report.set_defaults(action=_report)
    for each in (compiling, generating, reading, mining, report):
        each.add_argument("--measured", type=Path, required=True, help="the journal")
        each.add_argument("--architecture", default="sm_80", choices=[*ARCHITECTURES])
    return run_command(parser, arguments)


def _mine(options: argparse.Namespace) -> None:
    kernels = distinct_kernels(options.measured)
    table = mine(map(evidence_of, kernels), _corpus(kernels))
    lines = [json.dumps(cell) for cell in table_to_json(table)["cells"]]
    document = table_to_json(table) | {"cells": []}
    text = json.dumps(document, indent=1)
    own = ARCHITECTURES[options.architecture].distances
    output = options.output or TABLES / (own or f"distances_{options.architecture}.json")
    write_output(output, text.replace('"cells": []', f'"cells": [{_joined(lines)}]') + "\n")


def _joined(lines: Sequence[str]) -> str:
    return "\n  " + ",\n  ".join(lines) + "\n "


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


def _report(options: argparse.Namespace) -> None:
    kernels = distinct_kernels(options.measured)
    held_out = [] if options.held_out is None else distinct_kernels(options.held_out)
    shown = {each["sha256"]: evidence_of(each) for each in (*kernels, *held_out)}
    sizes = _by_size([shown[each["sha256"]] for each in kernels])
    print("\n".join((*sizes, "", *_checked(kernels, held_out, shown))))


def _by_size(kernels: Sequence[list[Evidence]]) -> Iterator[str]:
    """How the table changes with the corpus: the kernels in the order of their hashes."""
    yield "| kernels | kinds of pairs | sum of the least distances | distances that fall later |"
    yield "|---|---|---|---|"
    whole = mine(kernels, {})
    for size in (*(each for each in SIZES if each < len(kernels)), len(kernels)):
        part = mine(kernels[:size], {})
        fall = sum(cell.cycles > whole.cells[kind].cycles for kind, cell in part.cells.items())
        known = sum(cell.cycles for cell in part.cells.values())
        yield f"| {size:,} | {len(part.cells)} | {known:,} | {fall} |"


def _checked(
    kernels: Sequence[Kernel], held_out: Sequence[Kernel], shown: Mapping[str, list[Evidence]]
) -> Iterator[str]:
    """How many pairs of some kernels a table refuses that is mined from others."""
    yield "| mined on | checked on | plain pairs | refused: unknown kind | refused: too close |"
    yield "|---|---|---|---|---|"
    sweep = [each for each in kernels if not each["id"].startswith("generated")]
    parts = {
        "even": kernels[::2],
        "odd": kernels[1::2],
        "even of the sweep": sweep[::2],
        "odd of the sweep": sweep[1::2],
        "generated": [each for each in kernels if each["id"].startswith("generated")],
        "sweep": sweep,
        "all": kernels,
        "held out": held_out,
    }
    for mined, checked in PARTS:
        if not parts[mined] or not parts[checked]:
            continue
        table = mine((shown[each["sha256"]] for each in parts[mined]), {})
        found = [shown[each["sha256"]] for each in parts[checked]]
        bad = [each for kernel in found for each in refused(table, kernel)]
        unknown = sum(each.pairs for each in bad if each.kind not in table.cells)
        close = sum(each.pairs for each in bad) - unknown
        pairs = sum(each.pairs for kernel in found for each in kernel)
        yield f"| {mined} | {checked} | {pairs:,} | {unknown:,} | {close:,} |"
        print(f"{mined} | {checked}", *_worst(table, bad), sep="\n", file=sys.stderr)


def _worst(table: DistanceTable, bad: Sequence[Evidence]) -> Iterator[str]:
    """The kinds of the pairs that are refused: the closest pair of each, and their number."""
    worst: dict[PairKind, Evidence] = {}
    counts: Counter[PairKind] = Counter()
    for each in bad:
        counts[each.kind] += each.pairs
        worst[each.kind] = min(worst.get(each.kind, each), each, key=lambda one: one.cycles)
    for kind, each in sorted(worst.items()):
        names = " | ".join((kind.hazard.value, *kind[1:]))
        known = table.cells.get(kind)
        least = "unknown" if known is None else f"{known.cycles} ({known.pairs} pairs)"
        yield f"  {names}: {each.cycles} for {least}; {counts[kind]} pairs, {each.example}"


if __name__ == "__main__":
    sys.exit(main())
