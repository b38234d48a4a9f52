"""From a finished build to a dataset folder: selects rows, and puts them into splits and files.

Rows are read from the journal whenever they are needed, never all at once. The
data that selects them (ids, instructions as numbers) fits in memory.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

from tqdm import tqdm

from dataset_builders.execution.tasks import Execution
from dataset_builders.experts.registry import SOURCES
from dataset_builders.journal.journal import Journal
from dataset_builders.release import RELEASE_PACKAGES
from dataset_builders.release.better_labels import better_labels
from dataset_builders.release.card import write_card
from dataset_builders.release.duplicates import (
    EMBEDDED_DATASET,
    Pair,
    Rejection,
    RowCandidate,
    clusters,
    exact_duplicates,
    near_duplicates_across,
    near_duplicates_of,
    near_duplicates_within,
    near_pairs,
)
from dataset_builders.release.leakage import leakage_report
from dataset_builders.release.similarity import Tokens, instruction_tokens
from dataset_builders.sweeps import SweepPoint
from dataset_builders.sweeps.experts import EXPERT_SWEEPS, ExpertPoint
from dataset_builders.sweeps.splits import SPLITS, split_of
from verilocc_bench.dataset import (
    EMBEDDED,
    RawRow,
    Row,
    iterate_rows,
    load_rows,
    row_digest,
    write_parquet,
)
from verilocc_bench.errors import InputError
from verilocc_bench.files import file_sha256, write_atomically

ROWS_PER_FILE = 500
RAW_ROWS_PER_FILE = 200

_Bucket = tuple[str, str, str, str]
"""Track folder, architecture, family, split."""

_Points = Sequence[SweepPoint | ExpertPoint]


@dataclass(slots=True)
class ReleaseSummary:
    """Rows by (track folder, architecture, family, split); rejections by kind."""

    rows: Counter[tuple[str, str, str, str]] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class _Selection:
    """The rows of a dataset with their clusters, in the order of the sweep, and the rejections."""

    candidates: list[RowCandidate]
    clusters: list[str]
    rejected: dict[str, Rejection]


def write_dataset(
    points: _Points,
    journal: Journal,
    output: Path,
    manifest: Mapping[str, Any],
    *,
    execution: Execution | None = None,
    progress: bool = True,
    beside: Path | None = None,
) -> ReleaseSummary:
    """Writes the dataset of the points, in their order; the manifest comes last.

    `execution` says where the search for better labels runs. `beside` is a
    dataset whose functions kernels of experts must not be near. Raises InputError
    if it cannot be read.
    """
    sweep = str(manifest["sweep"])
    embedded = _embedded_functions() if sweep != EMBEDDED else {}
    others = {EMBEDDED_DATASET: embedded}
    if beside is not None:
        others["the dataset beside it"] = _functions_of(beside)
    selection = _select(points, journal, sweep, others)
    better = better_labels(
        {
            candidate.id: partial(_journal_row, journal, candidate)
            for candidate in selection.candidates
            if candidate.track == "assign"
        },
        journal.folder / "best",
        execution or Execution(),
        brief=any(isinstance(point, ExpertPoint) for point in points),
        progress=progress,
    )
    writer = _Writer(journal, output, selection, better, progress)
    writer.write_files()
    writer.write_lines("rejected.jsonl", _rejections(points, selection.rejected))
    leakage = leakage_report(selection.candidates, embedded, progress=progress)
    for library in sorted({p.library for p in points if isinstance(p, ExpertPoint)}):
        writer.add_text(f"licenses/{library}.txt", SOURCES[library].archive.notice_text())
    writer.add_text("leakage.json", json.dumps(leakage, indent=1, sort_keys=True) + "\n")
    summary = ReleaseSummary(
        Counter(_bucket(candidate) for candidate in selection.candidates),
        Counter(kind for kind, _ in selection.rejected.values()),
    )
    document = {
        **manifest,
        "rows": _nested(summary.rows),
        "rejected": dict(sorted(summary.rejected.items())),
        "release_versions": {name: version(name) for name in RELEASE_PACKAGES},
    }
    for path in write_card(output, document):
        writer.note(output / path)
    document["files"] = writer.hashes
    write_atomically(
        output / "manifest.json", json.dumps(document, indent=1, sort_keys=True) + "\n"
    )
    return summary


def _embedded_functions() -> dict[str, Tokens]:
    """The functions of `mini` by id; training rows must not be near them."""
    return {
        row.id: instruction_tokens(row.normalized)
        for track in ("assign", "split")
        for row in load_rows(EMBEDDED, track=track).rows
    }


def _functions_of(folder: Path) -> dict[str, Tokens]:
    """The functions of a dataset folder by id, of all splits and tracks."""
    found: dict[str, Tokens] = {}
    for track in ("assign", "split"):
        for split in SPLITS:
            try:
                rows = iterate_rows(str(folder), split=split, track=track)
                found |= {row.id: instruction_tokens(row.normalized) for row in rows}
            except InputError as error:
                if not error.message.startswith("there is no split"):
                    raise
    return found


def _select(
    points: _Points, journal: Journal, sweep: str, others: Mapping[str, Mapping[str, Tokens]]
) -> _Selection:
    """Chooses the rows; `others` has the functions of other datasets, by name and id."""
    rejected: dict[str, Rejection] = {}
    found: list[RowCandidate] = []
    for point in points:
        result = journal.load(point.key)
        if result.rejection is not None:
            rejected[point.key] = result.rejection
        elif result.row is not None:
            row = result.row
            tokens = instruction_tokens(row.normalized)
            found.append(RowCandidate(point, row.id, row.track, split_of(sweep, point), tokens))
    rejected |= exact_duplicates([(c.point.key, c.id) for c in found])
    found = [c for c in found if c.point.key not in rejected]
    pairs = near_pairs(found)
    rejected |= _near_duplicates(found, pairs, sweep, others)
    places = [place for place, c in enumerate(found) if c.point.key not in rejected]
    new_place = {old: new for new, old in enumerate(places)}
    kept = [found[place] for place in places]
    kept_pairs = [
        (new_place[place], replace(neighbour, place=new_place[neighbour.place]))
        for place, neighbour in pairs
        if place in new_place and neighbour.place in new_place
    ]
    return _Selection(kept, clusters([c.id for c in kept], kept_pairs), rejected)


def _near_duplicates(
    found: Sequence[RowCandidate],
    pairs: Sequence[Pair],
    sweep: str,
    others: Mapping[str, Mapping[str, Tokens]],
) -> dict[str, Rejection]:
    if sweep not in EXPERT_SWEEPS:
        return near_duplicates_across(found, pairs, others[EMBEDDED_DATASET])
    rejected: dict[str, Rejection] = {}
    for name, known in others.items():
        rejected |= near_duplicates_of(known, found, name)
    stay = [pair for pair in pairs if not {found[p].point.key for p in _both(pair)} & set(rejected)]
    return rejected | near_duplicates_within(found, stay)


def _both(pair: Pair) -> tuple[int, int]:
    return pair[0], pair[1].place


class _Writer:
    """Writes the files of a dataset and keeps their hashes."""

    def __init__(
        self,
        journal: Journal,
        output: Path,
        selection: _Selection,
        better: Mapping[str, dict[str, Any]],
        progress: bool,
    ) -> None:
        self.journal, self.output, self.selection = journal, output, selection
        self.better = better
        self.progress = progress
        self.hashes: dict[str, str] = {}
        self._cluster = {
            candidate.point.key: cluster
            for candidate, cluster in zip(selection.candidates, selection.clusters, strict=True)
        }

    def add_text(self, name: str, text: str) -> None:
        """Writes a file of text."""
        write_atomically(self.output / name, text)
        self.note(self.output / name)

    def write_lines(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        """Writes a file of one JSON object a line."""
        self.add_text(name, "".join(json.dumps(line, sort_keys=True) + "\n" for line in lines))

    def write_files(self) -> None:
        """Writes the Parquet files, and `rows.jsonl` with a line for each row.

        Reads the journal once, in its own order, which is also the order of the
        rows in every file. At most one unfinished file of each kind is in memory.
        """
        buckets = Counter(_bucket(candidate) for candidate in self.selection.candidates)
        files = {bucket: _BucketFiles(self, bucket, buckets[bucket]) for bucket in sorted(buckets)}
        disable = None if self.progress else True
        for candidate in tqdm(self.selection.candidates, desc="write", unit="row", disable=disable):
            result = self.journal.load(candidate.point.key)
            assert result.row is not None
            assert result.raw is not None
            row = replace(
                result.row,
                cluster=self._cluster[candidate.point.key],
                **self.better.get(candidate.id, {}),
            )
            files[_bucket(candidate)].add(candidate, row, result.raw)
        self.write_lines("rows.jsonl", [line for f in files.values() for line in f.lines])

    def write_parquet(self, rows: list[Row] | list[RawRow], path: Path) -> None:
        """Writes a file of rows."""
        write_parquet(rows, path)
        self.note(path)

    def note(self, path: Path) -> None:
        """Keeps the hash of a file."""
        name = path.relative_to(self.output).as_posix()
        self.hashes[name] = file_sha256(path)


class _BucketFiles:
    """The files of one track, architecture, family and split; each is written when it is full."""

    def __init__(self, writer: _Writer, bucket: _Bucket, count: int) -> None:
        self.writer = writer
        self.count = count
        folder, arch, family, self.split = bucket
        self.folder = Path(folder, arch, family)
        # Both tracks share the raw config, so their files are in different folders.
        self.raw_folder = Path("raw", folder, arch, family)
        self.rows: list[Row] = []
        self.raws: list[RawRow] = []
        self.lines: list[dict[str, Any]] = []

    def add(self, candidate: RowCandidate, row: Row, raw: RawRow) -> None:
        """Takes the next row."""
        path = self.folder / self._name(len(self.lines), ROWS_PER_FILE)
        raw_path = self.raw_folder / self._name(len(self.lines), RAW_ROWS_PER_FILE)
        self.lines.append(_line(candidate, row, path.as_posix(), row_digest(raw)))
        self.rows.append(row)
        self.raws.append(raw)
        is_last = len(self.lines) == self.count
        if is_last or len(self.rows) == ROWS_PER_FILE:
            self.writer.write_parquet(self.rows, self.writer.output / path)
            self.rows = []
        if is_last or len(self.raws) == RAW_ROWS_PER_FILE:
            self.writer.write_parquet(self.raws, self.writer.output / raw_path)
            self.raws = []

    def _name(self, place: int, size: int) -> str:
        return f"{self.split}-{place // size:05d}-of-{-(-self.count // size):05d}.parquet"


def _journal_row(journal: Journal, candidate: RowCandidate) -> Row:
    row = journal.load(candidate.point.key).row
    assert row is not None
    return row


def _bucket(candidate: RowCandidate) -> _Bucket:
    folder = "data" if candidate.track == "assign" else "split"
    return folder, candidate.point.arch, candidate.point.family, candidate.split


def _line(candidate: RowCandidate, row: Row, file: str, raw_hash: str) -> dict[str, Any]:
    """The entry of a row: what it takes to build the row again and to compare it."""
    point = candidate.point
    return {
        "id": row.id,
        "point": point.key,
        "arch": point.arch,
        "family": point.family,
        "kernel": point.kernel,
        "params": dict(point.parameters),
        "track": row.track,
        "split": candidate.split,
        "group": row.group,
        "cluster": row.cluster,
        "file": file,
        "row_sha256": row_digest(row),
        "raw_sha256": raw_hash,
    }


def _rejections(points: _Points, rejected: Mapping[str, Rejection]) -> list[dict[str, str]]:
    return [
        {
            "point": point.key,
            "family": point.family,
            "arch": point.arch,
            "kernel": point.kernel,
            "params": point.parameters_json,
            "kind": rejected[point.key][0],
            "reason": rejected[point.key][1],
        }
        for point in points
        if point.key in rejected
    ]


def _nested(rows: Mapping[_Bucket, int]) -> dict[str, Any]:
    """Counts of rows by track, architecture, family, split."""
    document: dict[str, Any] = {}
    for (folder, arch, family, split), count in sorted(rows.items()):
        track = "assign" if folder == "data" else folder
        by_family = document.setdefault(track, {}).setdefault(arch, {})
        by_family.setdefault(family, {})[split] = count
    return document
