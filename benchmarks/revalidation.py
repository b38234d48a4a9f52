"""Measures what it costs to verify a large submission again.

    python benchmarks/revalidation.py --dataset DATASET [--board BOARD] [--arch gfx90a] [--jobs 2]

Each function of the board gets 100 answers that all differ: the compiler's
label, with up to three virtual registers moved to other places at random. Most
are wrong somewhere, a few are right: both checkers have to look at each.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import yaml

from leaderboard.boards import BoardCopy, boards
from leaderboard.revalidate import revalidate
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row

MOVED = 3


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--dataset", default="mini", help="a copy of the board's dataset (default: mini)")
    add("--board", default="mini", choices=[board.name for board in boards()])
    add("--arch", default="gfx90a")
    add("--samples", type=int, default=100)
    add("--jobs", type=int, default=2)
    options = parser.parse_args()
    board = next(each for each in boards() if each.name == options.board)
    rows = [row for row in BoardCopy(board, options.dataset).rows() if row.arch == options.arch]
    with tempfile.TemporaryDirectory() as temporary:
        folder, output = Path(temporary, "submission"), Path(temporary, "output")
        folder.mkdir()
        with (folder / "answers.jsonl").open("w", encoding="ascii") as file:
            for row in rows:
                for answer in _answers(row, options.samples):
                    file.write(json.dumps({"id": row.id, "assignment": answer}) + "\n")
        fields = {
            "format": 1,
            "name": "measured",
            "authors": ["nobody"],
            "contact": "nobody@example.org",
            "training_data": "none",
            "hardware": "none",
            "licence": "apache-2.0",
            "command": "none",
            "dataset": board.dataset,
            "dataset_hash": board.hash,
            "architectures": [options.arch],
            "assistance": "text",
            "decoding": "free",
            "samples": options.samples,
        }
        (folder / "submission.yaml").write_text(yaml.safe_dump(fields))
        size = (folder / "answers.jsonl").stat().st_size
        started = time.perf_counter()
        document = revalidate(folder, output, dataset=options.dataset, jobs=options.jobs)
        seconds = time.perf_counter() - started
    assert document["accepted"], document["refusals"]
    count = options.samples * len(rows)
    valid = sum(kernel["valid"] for kernel in document["kernels"])
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    theirs = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    print(
        f"{len(rows)} functions of {options.arch}, {count:,} answers ({valid:,} valid, "
        f"{size / 1e6:,.0f} MB), {options.jobs} processes: {seconds:,.0f} s, "
        f"{1000 * seconds / count:.1f} ms an answer; "
        f"most memory: {own / 1024:,.0f} MB here, {theirs / 1024:,.0f} MB in the largest process"
    )
    return 0


def _answers(row: Row, count: int) -> Iterator[dict[str, str]]:
    problem = AllocationProblem.from_text(row.normalized)
    generator = random.Random(row.id)
    places = {
        f"%{number}": list(problem.placements.legal[register_class].values())
        for number, register_class in enumerate(problem.function.virtual_registers)
    }
    seen = set()
    assert row.label is not None
    for _ in range(20 * count):
        answer = dict(row.label)
        for _ in range(generator.randint(1, MOVED)):
            name = generator.choice(list(answer))
            answer[name] = generator.choice(places[name])
        key = tuple(answer.values())
        if key not in seen:
            seen.add(key)
            yield answer
        if len(seen) == count:
            return
    raise SystemExit(f"{row.id}: fewer than {count} answers that differ")


if __name__ == "__main__":
    sys.exit(main())
