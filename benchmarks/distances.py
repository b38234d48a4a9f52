"""The least distances that ptxas relies on, mined from its code in datasets.

python benchmarks/distances.py mine FOLDER... --measured results/distances.jsonl [-o TABLE]
python benchmarks/distances.py report --measured results/distances.jsonl

`mine` reads the cubins of all sm_80 rows of datasets with raw code. It keeps what each
kernel shows in `--measured`, and goes on from there if it was interrupted. Then it
writes the table (verilocc_bench/backends/nvidia/distances.json). `report` prints two
tables: how the distances fall with the corpus, and how many of the compiler's own pairs
a table refuses that was mined from the other half of the kernels.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.commands import run_command
from verilocc_bench.backends.nvidia.distance_mining import Evidence, evidence, mine, refused
from verilocc_bench.backends.nvidia.distance_table import (
    TABLE_FILE,
    DistanceTable,
    PairKind,
    table_to_json,
)
from verilocc_bench.backends.nvidia.hazards import HazardKind
from verilocc_bench.backends.nvidia.read import disassembled_function
from verilocc_bench.backends.nvidia.tools import tool_version
from verilocc_bench.dataset import RawRow
from verilocc_bench.dataset.parquet import iterate_parquet
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_output

Kernel = dict[str, Any]
TABLE = Path("verilocc_bench/backends/nvidia") / TABLE_FILE
SIZES = (25, 50, 100, 200, 400)


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    mining = commands.add_parser("mine")
    mining.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    mining.add_argument("-o", "--output", type=Path, default=TABLE)
    mining.set_defaults(action=_mine)
    report = commands.add_parser("report")
    report.set_defaults(action=_report)
    for each in (mining, report):
        each.add_argument("--measured", type=Path, required=True)
    return run_command(parser, arguments)


def _mine(options: argparse.Namespace) -> None:
    measured = {each["sha256"]: each for each in _read(options.measured)}
    wanted: dict[str, RawRow] = {}
    for folder in options.folders:
        paths = sorted(folder.glob("raw/*/sm_80/*/*.parquet"))
        if not paths:
            raise InputError("expected a dataset with machine code of sm_80", source=folder)
        for path in paths:
            for row in iterate_parquet(path, RawRow):
                wanted[hashlib.sha256(row.content.encode()).hexdigest()] = row
    options.measured.parent.mkdir(parents=True, exist_ok=True)
    with options.measured.open("a", encoding="utf-8") as file:
        for digest, row in tqdm(wanted.items(), unit="kernel"):
            if digest not in measured:
                measured[digest] = _kernel(digest, row)
                file.write(json.dumps(measured[digest]) + "\n")
                file.flush()
    kernels = [measured[digest] for digest in sorted(wanted)]
    table = mine(map(_evidence, kernels), _corpus(kernels))
    lines = [json.dumps(cell) for cell in table_to_json(table)["cells"]]
    document = table_to_json(table) | {"cells": []}
    text = json.dumps(document, indent=1)
    write_output(options.output, text.replace('"cells": []', f'"cells": [{_joined(lines)}]') + "\n")


def _joined(lines: Sequence[str]) -> str:
    return "\n  " + ",\n  ".join(lines) + "\n "


def _kernel(digest: str, row: RawRow) -> Kernel:
    function = disassembled_function(base64.b64decode(row.content), f"row {row.id}")
    return {
        "sha256": digest,
        "id": row.id,
        "instructions": len(function.instructions),
        "evidence": [
            [
                each.kind.hazard.value,
                *each.kind[1:],
                each.cycles,
                each.plain,
                each.pairs,
                each.example,
            ]
            for each in evidence(row.id, function)
        ],
    }


def _corpus(kernels: Sequence[Kernel]) -> dict[str, Any]:
    """The corpus: its size, the hash of its cubins, and the tool that made them."""
    hashes = "\n".join(sorted(kernel["sha256"] for kernel in kernels))
    return {
        "kernels": len(kernels),
        "instructions": sum(kernel["instructions"] for kernel in kernels),
        "pairs": sum(e.pairs for kernel in kernels for e in _evidence(kernel) if e.plain),
        "sha256": hashlib.sha256(hashes.encode()).hexdigest(),
        "ptxas": tool_version("ptxas"),
    }


def _read(path: Path) -> Iterator[Kernel]:
    if path.is_file():
        for line in path.read_text(encoding="utf-8").splitlines():
            yield json.loads(line)


def _evidence(kernel: Kernel) -> list[Evidence]:
    return [
        Evidence(PairKind(HazardKind(hazard), *names), cycles, plain, pairs, example)
        for hazard, *names, cycles, plain, pairs, example in kernel["evidence"]
    ]


def _report(options: argparse.Namespace) -> None:
    kernels = [_evidence(each) for each in sorted(_read(options.measured), key=_digest)]
    print("\n".join((*_by_size(kernels), "", *_halves(kernels))))


def _digest(kernel: Kernel) -> str:
    return str(kernel["sha256"])


def _by_size(kernels: Sequence[list[Evidence]]) -> Iterator[str]:
    """How the table changes with the corpus: the kernels in the order of their hashes."""
    yield "| kernels | kinds of pairs | sum of the least distances | distances that fall later |"
    yield "|---|---|---|---|"
    whole = mine(kernels, {})
    for size in (*(each for each in SIZES if each < len(kernels)), len(kernels)):
        part = mine(kernels[:size], {})
        fall = sum(cell.cycles > whole.cells[kind].cycles for kind, cell in part.cells.items())
        known = sum(cell.cycles for cell in part.cells.values())
        yield f"| {size} | {len(part.cells)} | {known} | {fall} |"


def _halves(kernels: Sequence[list[Evidence]]) -> Iterator[str]:
    yield "| mined on | checked on | plain pairs | refused: unknown kind | refused: too close |"
    yield "|---|---|---|---|---|"
    halves = kernels[::2], kernels[1::2]
    for name, (mined, checked) in (
        ("even | odd", halves),
        ("odd | even", halves[::-1]),
        ("all | all", (kernels, kernels)),
    ):
        table = mine(mined, {})
        bad = [each for kernel in checked for each in refused(table, kernel)]
        unknown = sum(each.pairs for each in bad if each.kind not in table.cells)
        close = sum(each.pairs for each in bad) - unknown
        yield f"| {name} | {_pairs(checked):,} | {unknown:,} | {close:,} |"
        print(*_worst(table, bad), sep="\n", file=sys.stderr)


def _pairs(kernels: Iterable[list[Evidence]]) -> int:
    return sum(each.pairs for kernel in kernels for each in kernel if each.plain)


def _worst(table: DistanceTable, bad: Sequence[Evidence]) -> Iterator[str]:
    for each in bad:
        if each.kind in table.cells:
            yield f"{each.kind}: {each.cycles} for {table.cells[each.kind]}, {each.example}"


if __name__ == "__main__":
    sys.exit(main())
