"""The file leakage.json: distances of rows outside `train` from the rows in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json

LEAKAGE = "leakage.json"


@dataclass(frozen=True, slots=True)
class SplitDistance:
    """A split's number of rows, and their distances from the nearest row of `train`.

    Distances are edit distances of instruction sequences over the longer
    length, 0 to 1. `share_below` has (threshold, share of the nearer rows).
    """

    rows: int
    minimum: float
    median: float
    share_below: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Leakage:
    """The content of leakage.json: summaries and all distances by split.

    `embedded` is the summary of the dataset `mini`.
    """

    summary: Mapping[str, SplitDistance]
    distances: Mapping[str, tuple[float, ...]]
    embedded: SplitDistance | None


def read_leakage(folder: Path) -> Leakage | None:
    """Reads leakage.json of a dataset folder; None if there is none."""
    path = folder / LEAKAGE
    return leakage_from_document(read_json(path), path) if path.exists() else None


def leakage_from_document(document: Any, source: str | Path = LEAKAGE) -> Leakage:
    """A record with the contents of leakage.json. Raises InputError for another form."""
    try:
        distances: dict[str, list[float]] = {}
        for row in document["rows"]:
            distances.setdefault(str(row["split"]), []).append(float(row["distance"]))
        embedded = document.get("embedded")
        return Leakage(
            {str(split): _summary(entry) for split, entry in document["summary"].items()},
            {split: tuple(found) for split, found in distances.items()},
            _summary(embedded) if embedded else None,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            "expected an object with 'summary' by split, and 'rows' with 'split' and 'distance' "
            f"({type(error).__name__}: {error})",
            source=source,
        ) from None


def _summary(entry: Mapping[str, Any]) -> SplitDistance:
    below = sorted(entry["share_below"].items(), key=lambda item: float(item[0]))
    return SplitDistance(
        int(entry["rows"]),
        float(entry["minimum_distance"]),
        float(entry["median_distance"]),
        tuple((str(threshold), float(share)) for threshold, share in below),
    )
