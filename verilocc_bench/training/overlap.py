"""What the splits of a dataset have in common with the rows that a model was trained on.

The counts are made anew from the rows of the assign track: ids, texts, sweep
groups and clusters of near-duplicates that a split shares with the training
split. The distances to the nearest training row come from the dataset's
leakage.json: edit distances of instruction sequences, divided by the longer
length, from 0 to 1.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from verilocc_bench.dataset import Row, iterate_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json

LEAKAGE = "leakage.json"

_PUBLISHED_TRAINING = "train"
"""The split to which leakage.json measures its distances."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """The number of rows of a split, and how many share something with training rows.

    `nearest` and `median` summarize the distances of its rows to their nearest
    training rows; they are None if the dataset does not tell them.
    """

    split: str
    rows: int
    ids: int
    texts: int
    groups: int
    clusters: int
    nearest: float | None
    median: float | None

    @property
    def shared(self) -> int:
        """The sum of the four counts."""
        return self.ids + self.texts + self.groups + self.clusters


def find_overlaps(folder: Path, training: Iterable[Row], split: str) -> list[Overlap]:
    """The overlap of `training`, rows of `split`, with each other split of a dataset folder.

    Reads all rows once. Raises InputError for a malformed leakage.json.
    """
    seen: dict[str, set[str]] = {name: set() for name in ("ids", "texts", "groups", "clusters")}
    for row in training:
        for name, key in _keys(row).items():
            seen[name].add(key)
    distances = _distances(folder) if split == _PUBLISHED_TRAINING else {}
    return [
        _overlap(other, iterate_rows(str(folder), split=other), seen, distances)
        for other in sorted({path.name.split("-")[0] for path in folder.glob("data/*/*/*.parquet")})
        if other != split
    ]


def _keys(row: Row) -> dict[str, str]:
    text = hashlib.sha256(row.normalized.encode()).hexdigest()
    return {"ids": row.id, "texts": text, "groups": row.group, "clusters": row.cluster}


def _overlap(
    split: str,
    rows: Iterable[Row],
    seen: Mapping[str, set[str]],
    distances: Mapping[str, float],
) -> Overlap:
    counts = dict.fromkeys(seen, 0)
    found: list[float] = []
    total = 0
    for total, row in enumerate(rows, 1):  # noqa: B007  the last one is how many there are
        for name, key in _keys(row).items():
            counts[name] += key in seen[name]
        if row.id in distances:
            found.append(distances[row.id])
    known = bool(found) and len(found) == total
    return Overlap(
        split,
        total,
        **counts,
        nearest=min(found) if known else None,
        median=median(found) if known else None,
    )


def _distances(folder: Path) -> dict[str, float]:
    """The distance of each row outside the training split to its nearest row there, by id."""
    path = folder / LEAKAGE
    if not path.exists():
        return {}
    try:
        return {str(row["id"]): float(row["distance"]) for row in read_json(path)["rows"]}
    except (KeyError, TypeError, ValueError):
        message = "expected an object with 'rows', each with 'id' and 'distance'"
        raise InputError(message, source=path) from None
