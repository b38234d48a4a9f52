"""Checks leakage.json: it must list every row outside train, with right distances."""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dataset_builders.inspection.findings import CheckKind, Content, Findings
from dataset_builders.inspection.layout import LEAKAGE

TRAINING = "train"
SAMPLE = 20
TOLERANCE = 1e-4
"""Distances and shares have four digits."""


def sampled_pairs(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The entries whose distances are computed again: the same ones for each document."""
    rows = sorted(document["rows"], key=lambda row: str(row["id"]))
    return random.Random(0).sample(rows, min(SAMPLE, len(rows)))  # noqa: S311  no secret


def check_leakage(document: Mapping[str, Any], content: Content, findings: Findings) -> None:
    """Compares the document with the rows; `content.texts` has the texts of the sampled pairs."""
    splits = {row.id: row.split for row in content.rows}
    entries: Sequence[dict[str, Any]] = document["rows"]
    _check_entries(entries, splits, findings)
    if TRAINING in splits.values():
        _check_covered(entries, splits, findings)
    _check_summary(document["summary"], entries, findings)
    for entry in sampled_pairs(document):
        _check_distance(entry, content.texts, findings)


def _add(findings: Findings, message: str, row: str = "") -> None:
    findings.add(CheckKind.LEAKAGE, LEAKAGE, message, row)


def _check_entries(
    entries: Iterable[dict[str, Any]], splits: Mapping[str, str], findings: Findings
) -> None:
    for entry in entries:
        identifier, nearest = entry["id"], entry["nearest"]
        split = splits.get(identifier)
        if split is None:
            _add(findings, "there is no such row", identifier)
        elif split == TRAINING or split != entry["split"]:
            _add(findings, f"its split is {entry['split']!r}, the row is in {split!r}", identifier)
        if splits.get(nearest) != TRAINING:
            _add(findings, f"its nearest row {nearest!r} is not of {TRAINING!r}", identifier)


def _check_covered(
    entries: Iterable[dict[str, Any]], splits: Mapping[str, str], findings: Findings
) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry["id"] in seen:
            _add(findings, "the row stands there twice", entry["id"])
        seen.add(entry["id"])
    for identifier, split in sorted(splits.items()):
        if split != TRAINING and identifier not in seen:
            _add(findings, f"the row, of {split!r}, is missing", identifier)


def _check_summary(
    summary: Mapping[str, Any], entries: Iterable[dict[str, Any]], findings: Findings
) -> None:
    distances: dict[str, list[float]] = {}
    for entry in entries:
        distances.setdefault(entry["split"], []).append(entry["distance"])
    if summary.keys() != distances.keys():
        present = ", ".join(sorted(distances)) or "none"
        _add(findings, f"the summary has the splits {sorted(summary)}, expected {present}")
    for split in summary.keys() & distances.keys():
        for keys, expected in _figures(distances[split], summary[split]["share_below"]):
            found: Any = summary[split]
            for key in keys:
                found = found[key]
            if abs(found - expected) > TOLERANCE:
                name = " ".join(keys)
                _add(findings, f"the summary of {split!r}: {name} is {found}, expected {expected}")


def _figures(
    distances: Sequence[float], thresholds: Iterable[str]
) -> list[tuple[tuple[str, ...], float]]:
    figures: list[tuple[tuple[str, ...], float]] = [
        (("rows",), len(distances)),
        (("minimum_distance",), min(distances)),
        (("median_distance",), statistics.median(distances)),
    ]
    for name in thresholds:
        below = sum(distance < float(name) for distance in distances)
        figures.append((("share_below", name), below / len(distances)))
    return figures


def _check_distance(entry: Mapping[str, Any], texts: Mapping[str, str], findings: Findings) -> None:
    from dataset_builders.release.similarity import distance, instruction_tokens

    if entry["id"] not in texts or entry["nearest"] not in texts:
        return  # another check has reported it
    expected = distance(
        instruction_tokens(texts[entry["id"]]), instruction_tokens(texts[entry["nearest"]])
    )
    if abs(entry["distance"] - expected) > TOLERANCE:
        message = (
            f"the distance to {entry['nearest']} is {entry['distance']}, computed {expected:.4f}"
        )
        _add(findings, message, entry["id"])
