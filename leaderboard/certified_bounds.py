"""Makes the table of proved lower bounds of the boards' kernels.

    python -m leaderboard.certified_bounds ENTRIES [--dataset DATASET]

ENTRIES is a folder with documents that leaderboard.revalidate wrote: their answers say how few
registers are known to be enough. Where that is more than the most lanes that are live at once and
than the row's own `best_lower_bound`, `lower_bound` looks for a proof that no answer needs fewer.
DATASET is a copy of the boards' dataset; without it, kernels outside the package keep the bounds
that they have.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from tqdm import tqdm

import verilocc_bench.evaluation
from leaderboard.boards import BoardCopy, boards
from leaderboard.rendering.entries import read_entries
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import check_certificate, lower_bound
from verilocc_bench.evaluation.score import known_bounds
from verilocc_bench.files import write_atomically

TABLE = Path(verilocc_bench.evaluation.__file__).with_name("certified_bounds.json")


def main(arguments: Sequence[str] | None = None) -> None:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.certified_bounds",
        description=(__doc__ or "").splitlines()[0],
    )
    parser.add_argument("entries", type=Path)
    parser.add_argument("--dataset")
    options = parser.parse_args(arguments)
    found = dict(known_bounds())
    entries = read_entries(options.entries)
    for board in boards():
        if board.track == "split" or not (board.is_embedded or options.dataset):
            continue
        kernels = [each for e in entries if e.board == board.name for each in e.kernels]
        rows = BoardCopy(board, board.copy_in(options.dataset)).rows()
        for row in tqdm(rows, board.name, disable=None):
            answered = [each for each in kernels if each["id"] == row.id and each["valid"]]
            if answered:
                best = min(each["registers"] for each in answered)
                bound = max(answered[0]["bound"], row.best_lower_bound or 0)
                if best > bound:
                    problem = AllocationProblem.from_text(row.normalized)
                    proved = lower_bound(problem, VECTOR, known=best)
                    check_certificate(problem, proved)
                    bound = max(bound, proved.value)
                found[row.id] = (bound, best)
    lines = [f'"{row}": [{bound}, {best}]' for row, (bound, best) in sorted(found.items())]
    write_atomically(TABLE, "{\n" + ",\n".join(lines) + "\n}\n")
    reached = sum(bound == best for bound, best in found.values())
    print(f"{len(found)} kernels; on {reached} an answer reaches the bound")
