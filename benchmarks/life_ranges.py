"""How well our reading of sm_80 machine code agrees with NVIDIA's own life ranges.

python benchmarks/life_ranges.py FOLDER

FOLDER is a dataset with sm_80 rows. For each cubin: whether definitions and
uses agree in every row (they must, or the row would not be there), and the
share of rows and of cells (one register in one row) in which textbook
liveness agrees, on registers without guarded definitions. Behind a CALL
nvdisasm assumes a callee that comes back; where ptxas leaves a loop by one, it
is compared once more with the CALL made the BRA that it is. Then how many
kernels the build rejected, and why.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.backends.nvidia.life_range_gate import check_marks, compare_liveness, file_masks
from verilocc_bench.backends.nvidia.life_ranges import FileMasks, parse_life_ranges
from verilocc_bench.backends.nvidia.records import SassFunction
from verilocc_bench.backends.nvidia.text import parse_sass
from verilocc_bench.backends.nvidia.tools import disassemble, life_ranges
from verilocc_bench.backends.nvidia.webs import guard_reference
from verilocc_bench.dataset import RawRow, read_parquet

BRANCH = 0x947
EMPTY: FileMasks = (0, 0, 0, 0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    counts: Counter[str] = Counter()
    paths = sorted(folder.glob("raw/*/sm_80/*/*.parquet"))
    rows = [row for path in paths for row in read_parquet(path, RawRow)]
    for row in tqdm(rows, unit="kernel"):
        cubin = base64.b64decode(row.content)
        (function,) = parse_sass(disassemble(cubin))
        ranges = parse_life_ranges(life_ranges(cubin))[function.name]
        counts["kernels"] += 1
        counts["instructions"] += len(function.instructions)
        counts["kernels whose marks agree"] += check_marks(function, ranges) is None
        agreement = compare_liveness(function, ranges, *textbook_liveness(function))
        if agreement is None:
            counts["kernels with CALL, made BRA to compare"] += 1
            cubin = with_branches(cubin, function)
            (function,) = parse_sass(disassemble(cubin))
            ranges = parse_life_ranges(life_ranges(cubin))[function.name]
            agreement = compare_liveness(function, ranges, *textbook_liveness(function))
            assert agreement is not None
        counts["rows compared"] += agreement.rows
        counts["rows that agree"] += agreement.agreeing_rows
        counts["cells compared"] += agreement.cells
        counts["cells that agree"] += agreement.agreeing_cells
    for name, count in counts.items():
        print(f"{count:>10,}  {name}")
    rejected = folder / "rejected.jsonl"
    reasons = Counter(
        entry["kind"]
        for line in rejected.read_text().splitlines()
        if (entry := json.loads(line))["arch"] == "sm_80"
    )
    for kind, count in sorted(reasons.items()):
        print(f"{count:>10,}  rejected: {kind}")


def with_branches(cubin: bytes, function: SassFunction) -> bytes:
    """The cubin with its CALL.REL.NOINC made BRA: the same offset under another opcode."""
    start = read_cubin(cubin).kernel(function.name).code_offset
    data = bytearray(cubin)
    for instruction in function.instructions:
        if instruction.opcode == "CALL.REL.NOINC":
            word = instruction.encoding & ~0xFFF & ~(1 << 86) | BRANCH
            at = start + instruction.address
            data[at : at + 16] = word.to_bytes(16, "little")
    return bytes(data)


def textbook_liveness(function: SassFunction) -> tuple[list[FileMasks], list[FileMasks]]:
    """Registers live before and after each instruction; a guarded definition ends nothing."""
    blocks = control_flow(function)
    before = [EMPTY] * len(function.instructions)
    after = [EMPTY] * len(function.instructions)
    into = [EMPTY] * len(blocks)
    changed = True
    while changed:
        changed = False
        for number in reversed(range(len(blocks))):
            live = EMPTY
            for successor in blocks[number].successors:
                live = union(live, into[successor])
            for index in reversed(blocks[number].instructions):
                instruction = function.instructions[index]
                after[index] = live
                guard = guard_reference(instruction)
                if guard is None:
                    killed = file_masks(instruction.definitions)
                    live = tuple(a & ~b for a, b in zip(live, killed, strict=True))
                else:
                    live = union(live, file_masks([guard]))
                live = union(live, file_masks(instruction.uses))
                before[index] = live
            if live != into[number]:
                into[number] = live
                changed = True
    return before, after


def union(a: FileMasks, b: FileMasks) -> FileMasks:
    return a[0] | b[0], a[1] | b[1], a[2] | b[2], a[3] | b[3]


if __name__ == "__main__":
    main()
