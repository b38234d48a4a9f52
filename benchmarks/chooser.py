"""Trains the decision tree of the allocator `chooser`, and measures it.

    python benchmarks/chooser.py --dataset FOLDER [--train 600] [--test 200] [--measure-only]

Each kernel of a systematic sample of the training split is allocated by first
fit in each of its orders and by tabu search. The class of a kernel is the
first order that needs no more registers than tabu search, else tabu search.
The tree goes to verilocc_bench/allocators/chooser/tree.json; what it is worth is
measured on the test splits: registers against tabu search, and the time of
both in one run.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from tabulate import tabulate
from tqdm import tqdm

from verilocc_bench.allocators.chooser.choosing import TABU, choose_and_allocate
from verilocc_bench.allocators.chooser.features import FEATURES, features_of
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.allocators.search.orders import ORDERS
from verilocc_bench.allocators.search.portfolio import Search
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.evaluate.metrics import geometric_mean
from verilocc_bench.files import write_atomically

TREE = Path(__file__).parents[1] / "verilocc_bench/allocators/chooser/tree.json"
TEST_SPLITS = ("test", "test_unseen_tile_shape", "test_unseen_head_dimension", "test_larger")
DEPTH, LEAST_LEAF = 3, 6


def sample(dataset: str, splits: tuple[str, ...], count: int) -> list[Row]:
    """Every n-th kernel, by architecture, family and size."""
    rows: list[Row] = []
    for split in splits:
        try:
            rows += load_rows(dataset, split=split).rows
        except InputError:
            print(f"there is no split {split}")
    rows.sort(key=lambda row: (row.arch, row.family, row.n_virtual_registers, row.id))
    return rows[:: max(len(rows) // count, 1)]


def allocate(problem: AllocationProblem, means: Means, order: int | None) -> int | None:
    try:
        return Search(problem, SearchOptions(order=order), means).run().registers
    except AllocationFailed:
        return None


def measured(row: Row) -> tuple[list[float], str]:
    problem = AllocationProblem.from_text(row.normalized)
    least = allocate(problem, Means.TABU, None)
    for number, name in enumerate(ORDERS):
        registers = allocate(problem, Means.ORDERS, number)
        if registers is not None and (least is None or registers <= least):
            return list(features_of(problem)), name
    return list(features_of(problem)), TABU


def train(rows: list[Row]) -> dict[str, Any]:
    from sklearn.tree import DecisionTreeClassifier

    found = [measured(row) for row in tqdm(rows, desc="train", unit="kernel")]
    model = DecisionTreeClassifier(max_depth=DEPTH, min_samples_leaf=LEAST_LEAF, random_state=0)
    model.fit([features for features, _ in found], [choice for _, choice in found])
    counts = {name: sum(choice == name for _, choice in found) for name in (*ORDERS, TABU)}
    return {
        "features": FEATURES,
        "kernels": len(rows),
        "classes": counts,
        "tree": as_json(model.tree_, list(model.classes_), 0),
    }


def as_json(tree: Any, classes: list[str], node: int) -> dict[str, Any]:
    if tree.children_left[node] < 0:
        return {"choice": str(classes[int(tree.value[node][0].argmax())])}
    yes = as_json(tree, classes, tree.children_left[node])
    no = as_json(tree, classes, tree.children_right[node])
    if yes == no:
        return yes
    feature, threshold = FEATURES[tree.feature[node]], round(float(tree.threshold[node]), 6)
    return {"feature": feature, "at_most": threshold, "yes": yes, "no": no}


def registers_of(problem: AllocationProblem, assignment: Any) -> int:
    from verilocc_bench.allocators import answer_from_assignment
    from verilocc_bench.verify import FastVerifier

    verdict = FastVerifier(problem).verify(answer_from_assignment(problem, assignment))
    assert verdict.valid
    assert verdict.registers_used is not None
    return verdict.registers_used[VECTOR]


def measure(rows: list[Row]) -> None:
    """Tabu search and the chooser, kernel by kernel in one run."""
    table: dict[str, list[Any]] = {}
    for row in tqdm(rows, desc="test", unit="kernel"):
        problem = AllocationProblem.from_text(row.normalized)
        _ = problem.placements, problem.pressure
        figures = {}
        for name, function in (("tabu", _tabu), ("chooser", choose_and_allocate)):
            started = time.perf_counter()
            try:
                assignment = function(problem)
            except AllocationFailed:
                figures[name] = None, time.perf_counter() - started
                continue
            figures[name] = registers_of(problem, assignment), time.perf_counter() - started
        table.setdefault(row.arch, []).append(figures)
    lines = []
    for arch, found in sorted(table.items()):
        both = [f for f in found if f["tabu"][0] and f["chooser"][0]]
        lines.append(
            {
                "architecture": arch,
                "kernels": len(found),
                "both placed": len(both),
                "registers, chooser / tabu-search": geometric_mean(
                    [f["chooser"][0] / f["tabu"][0] for f in both]
                ),
                "as few": sum(f["chooser"][0] <= f["tabu"][0] for f in both) / len(both),
                "time, chooser / tabu-search": sum(f["chooser"][1] for f in found)
                / sum(f["tabu"][1] for f in found),
            }
        )
    print(tabulate(lines, headers="keys", floatfmt=".3f"))


def _tabu(problem: AllocationProblem) -> Any:
    return Search(problem, SearchOptions(), Means.TABU).run().assignment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--train", type=int, default=600)
    parser.add_argument("--test", type=int, default=200)
    parser.add_argument("--measure-only", action="store_true")
    options = parser.parse_args()
    if not options.measure_only:
        document = train(sample(options.dataset, ("train",), options.train))
        write_atomically(TREE, json.dumps(document, indent=1) + "\n")
        print(document["classes"])
    measure(sample(options.dataset, TEST_SPLITS, options.test))


if __name__ == "__main__":
    main()
