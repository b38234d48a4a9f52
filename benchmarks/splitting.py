"""Compares what allocators insert on the split track with what the compiler inserts.

    python benchmarks/splitting.py --dataset FOLDER [--rows 60] [--model spill-everywhere]

It counts 32-bit lanes that are copied, spilled, reloaded or made again,
weighted by 10 to the power of loop depth, without copies that became
identities. The compiler is LLVM on the row's sweep point compiled again, whose
copies are lower bounds; or with --llc, llc on the row's machine IR as text,
counted exactly. On sm_80 it is ptxas at the row's limit, whose loads and stores
of local memory are counted in its own order of instructions. Ratios are
geometric means of lanes + 1, over kernels with a valid answer.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tabulate import tabulate
from tqdm import tqdm

from benchmarks.inserted_code import InsertedCode, add_up, count_inserted
from benchmarks.reference_spilling import pipeline_splitting, reference_spilling
from benchmarks.reference_splitting import reference_splitting
from dataset_builders.compilers.llvm import LLVMCompiler
from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.dataset import RawRow, Row, load_rows, read_parquet
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.evaluation.metrics import geometric_mean
from verilocc_bench.verification import Verifier


def chosen_rows(dataset: str, split: str, count: int, archs: set[str]) -> list[Row]:
    """An equal share of every architecture and family, spread over sizes."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in load_rows(dataset, split=split, track="split").rows:
        if not archs or row.arch in archs:
            groups[row.arch, row.family].append(row)
    share = max(1, count // max(1, len(groups)))
    found = []
    for _, rows in sorted(groups.items()):
        rows.sort(key=lambda row: (row.n_virtual_registers, row.id))
        found += random.Random(0).sample(rows, share) if share < len(rows) else rows
    return found


def machine_ir(folder: Path, ids: set[str]) -> dict[str, str]:
    return {
        raw.id: raw.content
        for path in sorted(folder.glob("raw/**/*.parquet"))
        for raw in read_parquet(path, RawRow)
        if raw.id in ids and raw.format == "mir"
    }


def reference(
    row: Row, problem: AllocationProblem, raw: dict[str, str], llvm: LLVMCompiler, cache: Path
) -> InsertedCode:
    """What the compiler inserts; by llc if there is machine IR in `raw`."""
    if row.arch == "sm_80":
        return reference_spilling(row, cache).total
    if row.id not in raw:
        return add_up(pipeline_splitting(row, llvm, cache).values())
    machine = parse_mir(raw[row.id]).functions[0]
    return reference_splitting(raw[row.id], machine, problem, row.id).total


def inserted(problem: AllocationProblem, model: str) -> InsertedCode | None:
    """What a model's answer inserts; None without an answer, or with a wrong one."""
    try:
        answer = BUILT_IN[model].allocate(Request(problem, 0))
    except AllocationFailed:
        return None
    if not Verifier(problem).verify(answer).valid:
        return None
    if not answer.has_edits:
        return InsertedCode()
    return add_up(count_inserted(problem, answer).values())


def measured(
    rows: list[Row], raw: dict[str, str], models: list[str]
) -> Iterator[tuple[Row, InsertedCode, dict[str, InsertedCode | None]]]:
    with tempfile.TemporaryDirectory() as cache, LLVMCompiler() as llvm:
        for row in tqdm(rows, unit="kernel", disable=None):
            problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
            own = reference(row, problem, raw, llvm, Path(cache))
            yield row, own, {model: inserted(problem, model) for model in models}


def table(results: list[tuple[Row, InsertedCode, dict[str, InsertedCode | None]]]) -> str:
    groups: dict[tuple[str, str, str], list[tuple[int, InsertedCode | None]]] = defaultdict(list)
    for row, own, models in results:
        for model, found in models.items():
            groups[row.arch, row.family, model].append((own.weighted_lanes, found))
    lines = []
    for key, pairs in sorted(groups.items()):
        valid = [(own, found.weighted_lanes) for own, found in pairs if found is not None]
        ratio = geometric_mean([(found + 1) / (own + 1) for own, found in valid])
        lines.append(
            (
                *key,
                f"{len(valid)} of {len(pairs)}",
                f"{sum(own for own, _ in valid):,}",
                f"{sum(found for _, found in valid):,}",
                "–" if ratio is None else f"{ratio:.2f}",
                sum(found < own for own, found in valid),
                sum(found > own for own, found in valid),
            )
        )
    headers = (
        *("architecture", "family", "allocator", "valid", "compiler's lanes", "allocator's"),
        *("ratio", "fewer", "more"),
    )
    align = ("left", "left", "left", *["right"] * 6)
    return tabulate(lines, headers, disable_numparse=True, colalign=align)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", required=True, help="a folder")
    parser.add_argument("--split", default="test")
    parser.add_argument("--rows", type=int, default=60)
    parser.add_argument("--arch", action="append", default=[])
    parser.add_argument("--model", action="append", default=[])
    parser.add_argument("--llc", action="store_true", help="llc on machine IR is the reference")
    parser.add_argument("-o", "--output", type=Path, help="write every kernel there, as JSON lines")
    options = parser.parse_args()
    rows = chosen_rows(options.dataset, options.split, options.rows, set(options.arch))
    raw = machine_ir(Path(options.dataset), {row.id for row in rows}) if options.llc else {}
    models = options.model or ["spill-everywhere"]
    results = list(measured(rows, raw, models))
    if options.output is not None:
        lines = (
            {
                "id": row.id,
                "arch": row.arch,
                "family": row.family,
                "compiler": own.weighted_lanes,
                **{name: each and each.weighted_lanes for name, each in found.items()},
            }
            for row, own, found in results
        )
        options.output.write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(table(results))


if __name__ == "__main__":
    main()
