"""The command: reads datasets and runs of `evaluate`, prints the tables, draws the picture."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.allocation_study.plots import svg
from benchmarks.expert_study import picture, tables
from benchmarks.expert_study.facts import facts_of
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURE = "expert-functions.svg"
BEST = "best"
"""The run with the best known answers, counted as machine code."""

_HEIGHT_INCHES = 6.5


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.expert_study")
    parser.add_argument(
        "experts", nargs="+", help="the dataset of experts' kernels, or samples of it"
    )
    parser.add_argument("--sweep", default="mini", help="our own kernels (default: mini)")
    parser.add_argument("--results", type=Path, help="a folder with runs of evaluate on experts'")
    parser.add_argument("--images", type=Path, required=True, help="the picture's folder")
    options = parser.parse_args()
    try:
        for title, table in _tables(options):
            print(f"## {title}\n\n{table}\n")
    except InputError as error:
        print(f"expert_study: {error}", file=sys.stderr)
        return 2
    return 0


def _tables(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    """Draws the picture; the tables. Raises InputError for datasets without better labels."""
    rows = {row.id: row for name in options.experts for row in load_rows(name).rows}
    experts = facts_of(sorted(rows.values(), key=lambda row: (row.arch, row.kernel, row.id)))
    if not experts:
        raise InputError("expected rows with better labels", source=options.experts[0])
    archs = {each.arch for each in experts}
    own = [each for each in facts_of(load_rows(options.sweep).rows) if each.arch in archs]

    def drawing(figure: Figure, _measurements: object) -> None:
        picture.draw(figure, {"experts": experts, "ours": own})

    write_atomically(options.images / PICTURE, svg(drawing, (), _HEIGHT_INCHES))
    groups = tables.groups_of([*experts, *own])
    yield "What was measured", tables.size_table(groups)
    yield "Registers", tables.register_table(groups)
    yield "Occupancy", tables.occupancy_table(groups)
    yield "The largest savings", tables.example_table(experts)
    yield "Bank conflicts", tables.conflict_table(groups)
    runs = _runs(options.results)
    counted = {
        kernel["id"]: kernel["machine_code"]
        for kernel in runs.get(BEST, {}).get("kernels", ())
        if kernel.get("machine_code") is not None
    }
    if counted:
        yield "Best answers that run", tables.runnable_table(experts, counted)
        yield "Waits", tables.code_table(tables.groups_of(experts), counted)
    if runs:
        results = {name: document["results"] for name, document in runs.items()}
        yield "Allocators", tables.allocator_table(results)


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


if __name__ == "__main__":
    sys.exit(main())
