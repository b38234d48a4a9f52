"""Figures over a dataset folder: over its rows, its rejections, its files and leakage.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dataset_builders.statistics.row_facts import RowFacts, read_facts
from dataset_builders.sweeps.splits import SPLITS
from verilocc_bench.errors import InputError
from verilocc_bench.files import parse_json, read_json

REJECTED = "rejected.jsonl"

Key = TypeVar("Key", str, int, tuple[str, ...])


@dataclass(frozen=True, slots=True)
class Quartiles:
    """The least of some numbers, the quartiles (interpolated linearly) and the largest."""

    minimum: int
    lower: float
    median: float
    upper: float
    maximum: int


@dataclass(frozen=True, slots=True)
class DatasetStatistics:
    """The facts of all rows, the rejected points by kind, and the sizes of folders."""

    rows: tuple[RowFacts, ...]
    rejected: Mapping[str, int]
    leakage: Leakage | None
    sizes: Mapping[str, tuple[int, int]]
    """By folder (`data`, `split`, `raw`, `chat`): files, bytes."""

    @property
    def splits(self) -> list[str]:
        """The splits that have rows, in their order."""
        return in_order(SPLITS, {row.split for row in self.rows})

    def track(self, name: str) -> tuple[RowFacts, ...]:
        """The rows of one track."""
        return tuple(row for row in self.rows if row.track == name)


def statistics_of(folder: Path) -> DatasetStatistics:
    """The figures of a dataset folder: of its Parquet files, rejected.jsonl and leakage.json.

    The card and the manifest need not exist yet. Raises InputError for a file
    that cannot be read.
    """
    if not folder.is_dir():
        raise InputError("expected the folder of a dataset", source=folder)
    return DatasetStatistics(
        read_facts(folder), _rejected(folder / REJECTED), read_leakage(folder), _sizes(folder)
    )


def by_key(rows: Iterable[RowFacts], key: Callable[[RowFacts], Key]) -> dict[Key, list[RowFacts]]:
    """The rows by a key, sorted by key."""
    found: dict[Key, list[RowFacts]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return dict(sorted(found.items()))


def quartiles(values: Sequence[int]) -> Quartiles | None:
    """The quartiles of some numbers; None without any."""
    if not values:
        return None
    ordered = sorted(values)

    def at(quarter: int) -> float:
        place, rest = divmod(quarter * (len(ordered) - 1), 4)
        following = ordered[min(place + 1, len(ordered) - 1)]
        return ordered[place] + (following - ordered[place]) * rest / 4

    return Quartiles(ordered[0], at(1), at(2), at(3), ordered[-1])


def share(rows: Sequence[RowFacts], holds: Callable[[RowFacts], bool]) -> float | None:
    """The share of rows for which `holds` is true; None without rows."""
    return sum(map(holds, rows)) / len(rows) if rows else None


def mean(values: Iterable[int | None]) -> float | None:
    """The mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def total(values: Iterable[int | None]) -> int | None:
    """The sum of the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def in_order(order: Iterable[str], names: set[str]) -> list[str]:
    """The names in the given order, then the other names, sorted."""
    known = [name for name in order if name in names]
    return known + sorted(names - set(known))


def _rejected(path: Path) -> dict[str, int]:
    if not path.exists():
        return {}
    counts: Counter[str] = Counter()
    try:
        with path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                entry: Any = parse_json(line, path, number)
                if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
                    message = "expected an object with a text 'kind'"
                    raise InputError(message, source=path, line=number)
                counts[entry["kind"]] += 1
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", source=path) from None
    return dict(sorted(counts.items()))


def _sizes(folder: Path) -> dict[str, tuple[int, int]]:
    found: dict[str, tuple[int, int]] = {}
    for name in ("data", "split", "raw", "chat"):
        sizes = [path.stat().st_size for path in (folder / name).glob("**/*.parquet")]
        if sizes:
            found[name] = (len(sizes), sum(sizes))
    return found


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
