"""Writes the page: what the kernels are like, and how far from bounds and `best`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.allocation_study.plots import svg
from benchmarks.expert_study import picture, prose, tables, waits
from benchmarks.expert_study.facts import KernelFacts, facts_of
from dataset_builders.inspection.layout import locate_dataset, read_manifest
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE = "expert-functions.svg"
BEST = "best"
"""The run with the best known answers, counted as machine code."""

_HEIGHT_INCHES = 6.5


def write_study(options: argparse.Namespace) -> None:
    """Writes the page and its picture. Raises InputError for datasets without better labels."""
    rows = {row.id: row for name in options.experts for row in load_rows(name).rows}
    experts = facts_of(sorted(rows.values(), key=lambda row: (row.arch, row.kernel, row.id)))
    if not experts:
        raise InputError("expected rows with better labels", source=options.experts[0])
    archs = {each.arch for each in experts}
    own = [each for each in facts_of(load_rows(options.sweep).rows) if each.arch in archs]
    sides: Mapping[str, Sequence[KernelFacts]] = {"experts": experts, "ours": own}

    def drawing(figure: Figure, _measurements: object) -> None:
        picture.draw(figure, sides)

    write_atomically(options.images / PICTURE, svg(drawing, (), _HEIGHT_INCHES))
    image = f"{os.path.relpath(options.images, options.output.parent)}/{PICTURE}"
    manifests = [read_manifest(locate_dataset(name)) for name in options.experts]
    runs = _runs(options.results)
    text = "\n\n".join(_parts(experts, own, manifests, runs, image))
    write_atomically(options.output, text + "\n")


def _parts(
    experts: Sequence[KernelFacts],
    own: Sequence[KernelFacts],
    manifests: Sequence[Mapping[str, Any]],
    runs: Mapping[str, Mapping[str, Any]],
    image: str,
) -> list[str]:
    groups = tables.groups_of([*experts, *own])
    parts = [
        prose.TITLE,
        prose.found(experts, own),
        "## What was measured",
        prose.sample(experts, own, manifests),
        tables.size_table(groups),
        "## Registers",
        prose.REGISTERS,
        tables.register_table(groups),
        "## What experts do instead",
        prose.occupancy(experts),
        tables.occupancy_table(groups),
        "The largest saving of each library and family:",
        tables.example_table(experts),
        "## Bank conflicts",
        prose.CONFLICTS,
        tables.conflict_table(groups),
        *_waits(experts, runs),
        "## How the kernels differ",
        prose.FUNCTIONS,
        f"![Opcodes, widths, bounds and loops of experts' kernels and of ours]({image})",
    ]
    if runs:
        results = {name: document["results"] for name, document in runs.items()}
        parts += ["## Allocators", prose.ALLOCATORS, tables.allocator_table(results)]
    return [*parts, "## What is not known", prose.UNKNOWN, "## To repeat it", prose.REPEAT]


def _waits(experts: Sequence[KernelFacts], runs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What the best answers cost as machine code, if they were counted."""
    if BEST not in runs:
        return []
    kernels = {kernel["id"]: kernel.get("machine_code") for kernel in runs[BEST]["kernels"]}
    counted = {key: code for key, code in kernels.items() if code is not None}
    if not counted:
        return []
    table = waits.code_table(tables.groups_of(experts), counted)
    return ["## Waits", prose.WAITS, waits.runnable(experts, counted), table]


def _runs(folder: Path | None) -> dict[str, Mapping[str, Any]]:
    """The results and kernels of the runs in a folder, by the name of their own folders."""
    if folder is None:
        return {}
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.rglob("results.json")):
        document = read_json(path)
        run = found.setdefault(path.parent.name, {"results": {}, "kernels": []})
        # Runs of one allocator on parts of the kernels have no common overall.
        parts = [run["results"], document["results"]]
        run["results"] = parts[0] | parts[1]
        if all(parts):
            del run["results"]["overall"]
        run["kernels"] += document.get("kernels", [])
    return found
