"""How well our reading of sm_80 machine code agrees with NVIDIA's own life ranges.

python benchmarks/life_ranges.py FOLDER

FOLDER is a dataset with sm_80 rows. For each cubin it tells if definitions and
uses agree in every row (they must, or the row would not be in the dataset). It
tells the share of rows and of cells (one register in one row) in which textbook
liveness agrees, on registers without guarded definitions. nvdisasm assumes that
a callee returns after a CALL. If ptxas leaves a loop by a CALL, the cubin is
compared once more with the CALL turned into the BRA that it is. At last it
tells how many kernels the build rejected, and why.
"""

from __future__ import annotations

import argparse
import base64
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from verilocc_bench.backends.nvidia.cubin import read_cubin
from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.backends.nvidia.life_range_gate import (
    check_marks,
    file_masks,
    fixed_masks,
)
from verilocc_bench.backends.nvidia.life_ranges import (
    FILES,
    FileMasks,
    LifeRanges,
    parse_life_ranges,
)
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


@dataclass(frozen=True, slots=True)
class LivenessAgreement:
    """How much of a liveness agrees with the life ranges: a figure, no gate.

    A cell is one compared register in one row; a row agrees if all its cells do.
    """

    rows: int
    agreeing_rows: int
    cells: int
    agreeing_cells: int


def compare_liveness(
    function: SassFunction,
    ranges: LifeRanges,
    live_before: Sequence[FileMasks],
    live_after: Sequence[FileMasks],
) -> LivenessAgreement | None:
    """Compare a liveness with the registers that the life ranges show in use.

    `live_before` and `live_after` have the registers live before and after
    each instruction of `function`, a mask for each of `FILES`. The life ranges
    show a register in use in a row if it is live on either side or defined there.

    Compared are the registers that the function names, but for those with a
    guarded definition, where nvdisasm itself guesses; those that it leaves out
    of its marks (`fixed`); and R1, the stack pointer, which it keeps in use to
    the end. None: a function with a CALL, even if that is a mere jump, cannot
    be compared, for nvdisasm carries back what an assumed callee uses (R0 and
    R1), not what the code at the target does.
    """
    if any(each.opcode.partition(".")[0] == "CALL" for each in function.instructions):
        return None
    compared = _compared_registers(function)
    rows = agreeing_rows = differing_cells = 0
    for instruction, row, before, after in zip(
        function.instructions, ranges.rows, live_before, live_after, strict=False
    ):
        defined = file_masks(instruction.definitions)
        differing = sum(
            (((before[at] | after[at] | defined[at]) ^ row.marks[at].live) & mask).bit_count()
            for at, mask in enumerate(compared)
        )
        rows += 1
        agreeing_rows += not differing
        differing_cells += differing
    cells = rows * sum(mask.bit_count() for mask in compared)
    return LivenessAgreement(rows, agreeing_rows, cells, cells - differing_cells)


def _compared_registers(function: SassFunction) -> list[int]:
    named = [0] * len(FILES)
    excluded = [1 << 1, 0, 0, 0]
    for instruction in function.instructions:
        guarded = instruction.definitions if instruction.guard else ()
        fixed_definitions, fixed_uses = fixed_masks(instruction)
        for at, (definitions, uses, partial) in enumerate(
            zip(
                file_masks(instruction.definitions),
                file_masks(instruction.uses),
                file_masks(guarded),
                strict=True,
            )
        ):
            named[at] |= definitions | uses
            excluded[at] |= partial | fixed_definitions[at] | fixed_uses[at]
    return [some & ~others for some, others in zip(named, excluded, strict=True)]


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
