"""How near the rows outside `train` are to rows in it: the file leakage.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json

__all__ = [
    "LEAKAGE",
    "Leakage",
    "ProbeArea",
    "SplitDistance",
    "leakage_from_document",
    "read_leakage",
]

LEAKAGE = "leakage.json"


@dataclass(frozen=True, slots=True)
class SplitDistance:
    """Of one split: its rows, and how far they are from the nearest row of `train`.

    Distances are edit distances of instruction sequences over the longer
    length, 0 to 1. `share_below` has (threshold, share of the rows that are nearer).
    """

    rows: int
    minimum: float
    median: float
    share_below: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class ProbeArea:
    """The area under the ROC curve of one classifier, and what chance gives in 95 of 100 cases."""

    area: float
    chance_low: float
    chance_high: float


@dataclass(frozen=True, slots=True)
class Leakage:
    """What leakage.json says: summaries and all distances by split.

    `embedded` is the summary of the dataset `mini`. `probe` has, by split and
    classifier, how well sweep metadata tells the split from `train`.
    """

    summary: Mapping[str, SplitDistance]
    distances: Mapping[str, tuple[float, ...]]
    embedded: SplitDistance | None
    probe: Mapping[str, Mapping[str, ProbeArea]]


def read_leakage(folder: Path) -> Leakage | None:
    """What leakage.json of a dataset folder says; None where there is none."""
    path = folder / LEAKAGE
    return leakage_from_document(read_json(path), path) if path.exists() else None


def leakage_from_document(document: Any, source: str | Path = LEAKAGE) -> Leakage:
    """The contents of leakage.json as a record. Raises InputError for another form."""
    try:
        distances: dict[str, list[float]] = {}
        for row in document["rows"]:
            distances.setdefault(str(row["split"]), []).append(float(row["distance"]))
        embedded = document.get("embedded")
        return Leakage(
            {str(split): _summary(entry) for split, entry in document["summary"].items()},
            {split: tuple(found) for split, found in distances.items()},
            _summary(embedded) if embedded else None,
            {split: _areas(found) for split, found in document.get("probe", {}).items()},
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


def _areas(found: Mapping[str, Any]) -> dict[str, ProbeArea]:
    """By classifier; what else a probe says of a split is left aside."""
    return {
        str(kind): ProbeArea(*(float(entry[key]) for key in ("area", "chance_low", "chance_high")))
        for kind, entry in found.items()
        if isinstance(entry, dict)
    }
