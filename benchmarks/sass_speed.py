"""How fast sm_80 machine code becomes an allocation problem, by size.

    python benchmarks/sass_speed.py [FOLDER]

FOLDER is a dataset with sm_80 rows; without one the embedded dataset. For
kernels of all its sizes, milliseconds on one core, the least of several runs:
reading the disassembly with definitions and uses, control flow and webs and
tuples, liveness, the gate (reading the life ranges, comparing each instruction, and
comparing the normalized text), their sum, and that by instruction; beside them
nvdisasm's two processes.
"""

from __future__ import annotations

import argparse
import base64
from pathlib import Path
from typing import Any

from tabulate import tabulate
from timing import least

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.life_range_gate import check_marks
from verilocc_bench.backends.nvidia.life_ranges import parse_life_ranges
from verilocc_bench.backends.nvidia.normalize import normalize_sass
from verilocc_bench.backends.nvidia.read import with_jumps
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.backends.nvidia.text_gate import check_text
from verilocc_bench.backends.nvidia.tools import disassemble, life_ranges
from verilocc_bench.dataset import RawRow, embedded_path, read_parquet
from verilocc_bench.ir import print_function

KERNELS_SHOWN = 10


def kernel_row(raw: RawRow) -> dict[str, Any]:
    cubin = base64.b64decode(raw.content)
    text = disassemble(cubin)
    (function,) = parse_sass(text)
    (kernel,) = read_cubin(cubin).kernels
    ranges = life_ranges(with_jumps(cubin, kernel, function))
    normalized = normalize_sass(function, 255)

    def gate() -> None:
        parsed = parse_life_ranges(ranges)[function.name]
        assert check_marks(function, parsed) is None
        printed = print_function(normalized.function)
        check_text(printed, normalized.assignment, function, parsed, 255)

    found: dict[str, Any] = {
        "kernel": function.name,
        "instructions": len(function.instructions),
        "read": least(lambda: parse_sass(text)),
        "webs": least(lambda: normalize_sass(function, 255)),
        "liveness": least(lambda: AllocationProblem(normalized.function).liveness),
        "gate": least(gate),
    }
    found["sum"] = sum(found[name] for name in ("read", "webs", "liveness", "gate"))
    found["per instruction"] = found["sum"] / found["instructions"]
    found["nvdisasm, twice"] = least(lambda: (disassemble(cubin), life_ranges(cubin)), 1)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=embedded_path())
    folder: Path = parser.parse_args().folder
    paths = folder.glob("raw/*/sm_80/*/*.parquet")
    rows = [row for path in sorted(paths) for row in read_parquet(path, RawRow)]
    rows.sort(key=lambda row: len(row.content))
    step = max(1, len(rows) // KERNELS_SHOWN)
    print("Milliseconds, one core\n")
    print(
        tabulate([kernel_row(row) for row in rows[::-step]][::-1], headers="keys", floatfmt=".2f")
    )


if __name__ == "__main__":
    main()
