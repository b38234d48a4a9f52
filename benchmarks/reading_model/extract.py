"""Cuts functions out of machine IR into what the conversation shows of them: lines of names.

A function becomes a plain dictionary: by name its class, by line its distinct names in the order
of the text, the lines of its back edges, the registers that the text offers, and how many words
the conversation with the teacher has until its end or until no register is left. Functions to learn
from and to test are of sweep groups that have no kernel in the small dataset.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import verilocc_bench as vb
from benchmarks.reading_model.conversation import FILES, FreshNames, converse
from dataset_builders.sweeps.registry import sweep_named
from dataset_builders.sweeps.splits import TRAINING
from verilocc_bench.ir import FixedUnits, Function, Guard, Operand, VirtualLanes

NAMED_AS = {**{file: file for file in FILES}, "R": "v", "UR": "a", "P": "s"}
"""The conversation's names of files; those of sm_80 but for uniform predicates stand as AMD's."""


def describe(function: Function, title: str) -> dict[str, Any] | None:
    """The plain dictionary of a function; None if some class has none of the files."""
    kinds: list[list[Any]] = []
    for kind in function.virtual_registers:
        files = [NAMED_AS[name] for name in kind.files if name in NAMED_AS]
        if not files:
            return None
        spelled = " ".join([str(kind.width), *sorted(NAMED_AS.get(f, f) for f in kind.files)])
        kinds.append([files[0], kind.width, spelled])
    own = {NAMED_AS[file.name]: file for file in function.files if file.name in NAMED_AS}
    offered = {name: set(range(file.count)) for name, file in own.items()}
    for units in (*function.reserved, *function.live_ins):
        _take_out(offered, units)
    lines: list[list[int]] = []
    starts: list[int] = []
    ends: list[int] = []
    for block in function.blocks:
        starts.append(len(lines))
        for instruction in block.instructions:
            names: dict[int, None] = {}
            operands: list[Operand | Guard] = [*instruction.definitions, *instruction.uses]
            if instruction.guard is not None:
                operands.append(instruction.guard)
            for operand in operands:
                location = operand.location
                if isinstance(location, VirtualLanes):
                    names[location.register] = None
                else:
                    _take_out(offered, location)
            for units in instruction.destroys:
                _take_out(offered, units)
            lines.append(list(names))
        ends.append(len(lines) - 1)
    loops = {
        (starts[target], ends[source])
        for source, block in enumerate(function.blocks)
        for target in block.successors
        if target <= source and starts[target] <= ends[source]
    }
    described = {
        "id": title,
        "target": function.target,
        "kinds": kinds,
        "lines": lines,
        "loops": sorted(loops),
        "offered": {file: sorted(units) for file, units in offered.items()},
        "registers": {name: file.name for name, file in own.items()},
    }
    said, _, whole = converse(described, "links", FreshNames(random.Random(0)))
    return described | {"spoken": len(said.words), "whole": whole}


def _take_out(offered: dict[str, set[int]], units: FixedUnits) -> None:
    if units.file in NAMED_AS:
        offered[NAMED_AS[units.file]] -= set(range(units.first, units.first + units.count))


def evaluated(split: str = "mini") -> Iterator[dict[str, Any]]:
    """The functions of the small embedded dataset for AMD targets, or for `sm_80`."""
    for problem in vb.load_problems("mini"):
        if (problem.arch == "sm_80") == (split == "sm_80"):
            described = describe(problem.function, problem.id)
            if described is not None:
                yield described | {"family": problem.family, "split": split}


def built(dataset: Path, choose: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
    """Functions of some splits of a built dataset that are of no group of the evaluated ones."""
    held_out = {problem.id for problem in vb.load_problems("mini")}
    groups = {point.group for point in sweep_named("mini").points()}
    rows = list(map(json.loads, (dataset / "rows.jsonl").read_text().splitlines()))
    may = {row["id"] for row in rows if row["group"] not in groups} - held_out
    for split in dict.fromkeys(row["split"] for row in rows if choose(row["split"])):
        for problem in vb.load_problems(dataset, split=split, arch=["gfx90a", "gfx942"]):
            if problem.id in may:
                described = describe(problem.function, problem.id)
                if described is not None:
                    yield described | {"family": problem.family, "split": split}


def training(dataset: Path) -> Iterator[dict[str, Any]]:
    """The functions that may be learnt from."""
    return built(dataset, lambda split: split in TRAINING)


def tested(dataset: Path) -> Iterator[dict[str, Any]]:
    """The functions for sm_80, a target that nothing was learnt of, and of the test splits."""
    yield from evaluated("sm_80")
    yield from built(dataset, lambda split: split not in TRAINING)


def write(path: Path, functions: Iterable[dict[str, Any]]) -> int:
    """Writes functions as compressed JSON lines; returns their number."""
    count = 0
    with gzip.open(path, "wt", compresslevel=9) as stream:
        for function in functions:
            stream.write(json.dumps(function, separators=(",", ":")) + "\n")
            count += 1
    return count


if __name__ == "__main__":
    out, dataset = Path(sys.argv[1]), Path(sys.argv[2])
    print(write(out / "mini.jsonl.gz", evaluated()))
    print(write(out / "train.jsonl.gz", training(dataset)))
    print(write(out / "test.jsonl.gz", tested(dataset)))
