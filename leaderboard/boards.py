"""The frozen tasks of the leaderboard: which functions of which dataset."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from verilocc_bench.dataset import EMBEDDED, EXPERT, Row, iterate_rows, load_rows, split_name
from verilocc_bench.errors import InputError

BOARDS = Path(__file__).with_name("boards.json")
"""Where the boards are listed."""

SPLITS = (
    "train",
    "validation",
    "test_larger",
    "test_unseen_tile_shape",
    "test_unseen_head_dimension",
    "test_unseen_data_type",
)
"""Splits that are on no board; a dataset may have fewer."""


@dataclass(frozen=True, slots=True)
class Board:
    """One track of one dataset's test split, frozen by its hash.

    `dataset` is its name for people, `hash` is the hash of all rows of the
    split. With a `limit` the board has at most that number of functions of each
    architecture and family, the ones with the fewest instructions. `functions` is
    the number of functions on the board. A board of fresh kernels has the SHA-256
    of their seed from its opening, and the seed when it is closed.
    """

    name: str
    dataset: str
    track: str
    split: str
    functions: int
    hash: str
    limit: int | None = None
    seed_sha256: str | None = None
    seed: str | None = None

    @property
    def is_embedded(self) -> bool:
        """True if the package has the board's functions."""
        return split_name(self.dataset)[0] == EMBEDDED

    def copy_in(self, dataset: str | None) -> str:
        """The board's functions in a copy of the boards' dataset (default: the dataset's name)."""
        if self.is_embedded or dataset is None:
            return self.dataset
        config = split_name(self.dataset)[1]
        missing = config and split_name(dataset)[1] != config
        if config == EXPERT and Path(dataset).is_dir() and not Path(dataset, EXPERT).is_dir():
            missing = False  # it is that folder itself
        return f"{dataset}:{config}" if missing else dataset


@dataclass(frozen=True, slots=True)
class BoardCopy:
    """A board with a copy of its dataset that the reviewer trusts: a folder, or on the Hub."""

    board: Board
    dataset: str
    revision: str | None = None

    def rows(self) -> tuple[Row, ...]:
        """The functions of the board. Raises InputError for a copy with other functions."""
        board = self.board
        found = load_rows(
            self.dataset, split=board.split, track=board.track, revision=self.revision
        )
        if found.hash != board.hash:
            raise InputError(
                f"its {board.split} split of the {board.track} track has the hash "
                f"{found.hash[:16]}…, the board {board.name!r} has {board.hash[:16]}…",
                source=self.dataset,
            )
        taken: Counter[tuple[str, str]] = Counter()
        rows = []
        for row in found.rows:
            taken[row.arch, row.family] += 1
            if board.limit is None or taken[row.arch, row.family] <= board.limit:
                rows.append(row)
        return tuple(rows)

    def where_else(self, identifier: str) -> str | None:
        """The split or track with a function that is not on the board, or None."""
        board, tracks = self.board, ("assign", "split")
        places = [(board.split, track) for track in tracks if track != board.track or board.limit]
        places += [(split, track) for track in tracks for split in SPLITS]
        for split, track in places:
            try:
                rows = iterate_rows(self.dataset, split=split, track=track, revision=self.revision)
                if any(row.id == identifier for row in rows):
                    return f"the split {split!r} of the {track} track"
            except InputError:  # a dataset may have fewer splits
                continue
        return None


@cache
def boards() -> tuple[Board, ...]:
    """All boards, in the order in which they are shown."""
    text = BOARDS.read_text("utf-8")
    return tuple(Board(**each) for each in json.loads(text))
