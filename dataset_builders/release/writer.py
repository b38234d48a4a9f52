"""From a finished build to a dataset folder: selects rows, and puts them into splits and files.

Rows are read from the journal whenever they are needed, never all at once. The
data that selects them (ids, instructions as numbers) fits in memory.
"""

from __future__ import annotations

import itertools
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
    is_published,
    near_duplicates_across,
    near_duplicates_of,
    near_duplicates_within,
    near_pairs,
)
from dataset_builders.release.folder import TRACK_FOLDERS, FolderWriter, rejected_line, row_line
from dataset_builders.release.leakage import leakage_report
from dataset_builders.release.similarity import Tokens, instruction_tokens
from dataset_builders.sweeps import SweepPoint
from dataset_builders.sweeps.experts import EXPERT_SWEEPS, OLD_LAYOUT, ExpertPoint
from dataset_builders.sweeps.fresh import is_fresh
from dataset_builders.sweeps.splits import SPLITS, split_of
from verilocc_bench.dataset import EMBEDDED, RawRow, Row, iterate_rows
from verilocc_bench.errors import InputError
from verilocc_bench.targets import PUBLISHED, TARGETS
from verilocc_bench.views.chat import chat_file, write_chat

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
    dataset whose functions unseen kernels must not be near. Raises InputError
    if it cannot be read.
    """
    sweep = str(manifest["sweep"])
    # The functions of `mini`: training rows must not be near them.
    embedded = _functions_of(EMBEDDED) if sweep != EMBEDDED else {}
    others = {EMBEDDED_DATASET: embedded}
    if beside is not None:
        names = (f"{beside.resolve()}:{arch}" for arch in TARGETS)
        others["the dataset beside it"] = _functions_of(*names)
    selection = _select(points, journal, sweep, others)
    if not selection.candidates:
        raise InputError(_no_row(selection.rejected))
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
    writer = FolderWriter(output, old_layout=sweep in OLD_LAYOUT)
    _RowFiles(journal, writer, selection, better, progress).write_files()
    rejected = selection.rejected
    lines = [rejected_line(p, *rejected[p.key]) for p in points if p.key in rejected]
    writer.add_lines("rejected.jsonl", lines)
    leakage = leakage_report(selection.candidates, embedded, progress=progress)
    for library in sorted({p.library for p in points if isinstance(p, ExpertPoint)}):
        writer.add_text(f"licenses/{library}.txt", SOURCES[library].archive.notice_text())
    writer.add_text("leakage.json", json.dumps(leakage, indent=1, sort_keys=True) + "\n")
    summary = ReleaseSummary(
        Counter(_bucket(candidate) for candidate in selection.candidates),
        Counter(kind for kind, _ in rejected.values()),
    )
    document = {
        **manifest,
        "rows": _nested(summary.rows),
        "rejected": dict(sorted(summary.rejected.items())),
        "release_versions": {name: version(name) for name in RELEASE_PACKAGES},
    }
    for path in write_card(output, document):
        writer.note(Path(path).as_posix())
    writer.add_manifest(document)
    return summary


def _functions_of(*names: str) -> dict[str, Tokens]:
    """The functions of datasets by id, of all splits and tracks.

    A plain name means the published architectures.
    """
    found: dict[str, Tokens] = {}
    for name, track, split in itertools.product(names, ("assign", "split"), SPLITS):
        try:
            rows = iterate_rows(name, split=split, track=track)
            found |= {row.id: instruction_tokens(row.normalized) for row in rows}
        except InputError as error:
            if not error.message.startswith("there is no split"):
                raise
    return found


def _no_row(rejected: Mapping[str, Rejection]) -> str:
    kinds = Counter(kind for kind, _ in rejected.values())
    counts = ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items()))
    key, (_, reason) = next(iter(rejected.items()))
    return f"no point gave a row ({counts}); {key}: {reason}"


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
        if place in new_place
        and neighbour.place in new_place
        and is_published(found[place]) == is_published(found[neighbour.place])
    ]
    return _Selection(kept, clusters([c.id for c in kept], kept_pairs), rejected)


def _near_duplicates(
    found: Sequence[RowCandidate],
    pairs: Sequence[Pair],
    sweep: str,
    others: Mapping[str, Mapping[str, Tokens]],
) -> dict[str, Rejection]:
    embedded = others[EMBEDDED_DATASET]
    unpublished: dict[str, Tokens] = {}
    if sweep != EMBEDDED:
        unpublished = _functions_of(*(f"{EMBEDDED}:{arch}" for arch in TARGETS.keys() - PUBLISHED))
    if sweep not in EXPERT_SWEEPS and not is_fresh(sweep):
        return near_duplicates_across(found, pairs, embedded, unpublished)
    rejected: dict[str, Rejection] = {}
    for name, known in {**others, EMBEDDED_DATASET: {**embedded, **unpublished}}.items():
        rejected |= near_duplicates_of(known, found, name)
    gone = {place for place, each in enumerate(found) if each.point.key in rejected}
    stay = [pair for pair in pairs if pair[0] not in gone and pair[1].place not in gone]
    return rejected | near_duplicates_within(found, stay)


class _RowFiles:
    """Writes the rows of a dataset."""

    def __init__(
        self,
        journal: Journal,
        writer: FolderWriter,
        selection: _Selection,
        better: Mapping[str, dict[str, Any]],
        progress: bool,
    ) -> None:
        self.journal, self.writer, self.selection = journal, writer, selection
        self.better = better
        self.progress = progress
        self._cluster = {
            candidate.point.key: cluster
            for candidate, cluster in zip(selection.candidates, selection.clusters, strict=True)
        }

    def write_files(self) -> None:
        """Writes the Parquet files, and `rows.jsonl` with a line for each row.

        Reads the journal once, in its own order, which is also the order of the
        rows in every file. At most one unfinished file of each kind is in memory.
        """
        buckets = Counter(_bucket(candidate) for candidate in self.selection.candidates)
        files = {
            bucket: _BucketFiles(self.writer, bucket, buckets[bucket]) for bucket in sorted(buckets)
        }
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
            files[_bucket(candidate)].add(row, result.raw)
        self.writer.add_lines("rows.jsonl", [line for f in files.values() for line in f.lines])


class _BucketFiles:
    """The files of one track, architecture, family and split; each is written when it is full."""

    def __init__(self, writer: FolderWriter, bucket: _Bucket, count: int) -> None:
        self.writer = writer
        self.count = count
        folder, arch, family, self.split = bucket
        self.folder = Path(folder, arch, family)
        # Both tracks share the raw config, so their files are in different folders.
        self.raw_folder = Path("raw", folder, arch, family)
        self.rows: list[Row] = []
        self.raws: list[RawRow] = []
        self.lines: list[dict[str, Any]] = []

    def add(self, row: Row, raw: RawRow) -> None:
        """Takes the next row."""
        path = self.folder / self._name(len(self.lines), ROWS_PER_FILE)
        raw_path = self.raw_folder / self._name(len(self.lines), RAW_ROWS_PER_FILE)
        self.lines.append(row_line(row, raw, self.split, path))
        self.rows.append(row)
        self.raws.append(raw)
        is_last = len(self.lines) == self.count
        if is_last or len(self.rows) == ROWS_PER_FILE:
            self.writer.add_rows(path, self.rows)
            if (chat := chat_file(path)) is not None:
                write_chat(self.rows, self.writer.folder / chat)
                self.writer.note(chat.as_posix())
            self.rows = []
        if is_last or len(self.raws) == RAW_ROWS_PER_FILE:
            self.writer.add_rows(raw_path, self.raws)
            self.raws = []

    def _name(self, place: int, size: int) -> str:
        return f"{self.split}-{place // size:05d}-of-{-(-self.count // size):05d}.parquet"


def _journal_row(journal: Journal, candidate: RowCandidate) -> Row:
    row = journal.load(candidate.point.key).row
    assert row is not None
    return row


def _bucket(candidate: RowCandidate) -> _Bucket:
    point = candidate.point
    return TRACK_FOLDERS[candidate.track], point.arch, point.family, candidate.split


def _nested(rows: Mapping[_Bucket, int]) -> dict[str, Any]:
    """Counts of rows by track, architecture, family, split."""
    document: dict[str, Any] = {}
    for (folder, arch, family, split), count in sorted(rows.items()):
        track = "assign" if folder == "data" else folder
        by_family = document.setdefault(track, {}).setdefault(arch, {})
        by_family.setdefault(family, {})[split] = count
    return document
