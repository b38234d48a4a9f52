"""The distances of the rows of other splits from the training rows."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from tqdm import tqdm

from dataset_builders.release.duplicates import RowCandidate
from dataset_builders.release.similarity import Corpus, Tokens
from dataset_builders.sweeps.splits import SPLITS

THRESHOLDS = (0.05, 0.1, 0.2)
_DIGITS = 4


def leakage_report(
    candidates: Sequence[RowCandidate], embedded: Mapping[str, Tokens], *, progress: bool = True
) -> dict[str, Any]:
    """The nearest training row of each row outside `train`, with its distance; a JSON document.

    `summary` has the figures by split, `embedded` the same for `mini`. Both are
    empty if `train` is empty.
    """
    training = [candidate for candidate in candidates if candidate.split == "train"]
    others = [candidate for candidate in candidates if candidate.split != "train"]
    if not training:
        return {"summary": {}, "rows": [], "embedded": {}}
    corpus = Corpus([candidate.tokens for candidate in training])
    work = [candidate.tokens for candidate in others] + list(embedded.values())
    bar = tqdm(work, desc="leakage", unit="row", disable=None if progress else True)
    nearest = [corpus.nearest(tokens) for tokens in bar]
    rows: list[dict[str, Any]] = [
        {
            "id": candidate.id,
            "split": candidate.split,
            "nearest": training[found.place].id,
            "nearest_split": "train",
            "distance": round(found.distance, _DIGITS),
        }
        for candidate, found in zip(others, nearest, strict=False)
    ]
    return {
        "summary": {
            split: _summary([row["distance"] for row in rows if row["split"] == split])
            for split in SPLITS
            if any(row["split"] == split for row in rows)
        },
        "rows": sorted(rows, key=lambda row: (list(SPLITS).index(row["split"]), row["id"])),
        "embedded": _summary([round(found.distance, _DIGITS) for found in nearest[len(others) :]]),
    }


def _summary(distances: Sequence[float]) -> dict[str, Any]:
    return {
        "rows": len(distances),
        "minimum_distance": min(distances),
        "median_distance": round(statistics.median(distances), _DIGITS),
        "share_below": {
            str(threshold): round(sum(d < threshold for d in distances) / len(distances), _DIGITS)
            for threshold in THRESHOLDS
        },
    }
