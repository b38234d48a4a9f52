"""Datasets by name: the embedded one, a folder that `build` wrote, or one on the Hub.

`NAME:expert` stands for the kernels of a dataset that experts wrote: the config
`expert` on the Hub, the folder `expert` of a folder. `NAME:sm_90` stands for the rows of
that architecture alone. NAME itself stands for the published architectures, or for all
of a dataset without these.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from verilocc_bench.dataset.hub import read_hub, stream_hub
from verilocc_bench.dataset.parquet import RowType, iterate_parquet
from verilocc_bench.dataset.parquet_batches import MEMORY_BYTES, MemoryBudget
from verilocc_bench.dataset.rows import RawRow, Row, check_row, rows_hash
from verilocc_bench.dataset.versions import check_version, split_version, tag_of
from verilocc_bench.errors import InputError
from verilocc_bench.files import MIB, open_input, read_json
from verilocc_bench.targets import PUBLISHED, TARGETS

EMBEDDED = "mini"
MANIFEST = "manifest.json"
EXPERT = "expert"
CONFIGS = (EXPERT, *TARGETS)
"""What may stand behind a dataset's name and a colon."""
TRACKS = {"assign": "data", "split": "split"}
"""The folder of each track in a dataset on disk."""


@dataclass(frozen=True, slots=True)
class Dataset:
    """Rows with the name of their dataset. `hash` identifies their content."""

    name: str
    revision: str | None
    split: str
    track: str
    rows: tuple[Row, ...]

    @property
    def hash(self) -> str:
        """SHA-256 over ids and labels, independent of the order of the rows."""
        return rows_hash(self.rows)


def embedded_path() -> Path:
    """The folder of the embedded dataset."""
    return Path(str(files("verilocc_bench").joinpath("data", EMBEDDED)))


def default_architectures(architectures: Collection[str]) -> list[str]:
    """The ones that a dataset's plain name stands for: the published, or all if it has none."""
    return sorted(set(architectures) & set(PUBLISHED) or architectures)


def split_name(name: str) -> tuple[str, str]:
    """The dataset that a name stands for, and its config: `expert`, an architecture, or nothing.

    A version behind them (`@1.0`) is dropped.
    """
    name, _ = split_version(name)
    dataset, colon, config = name.rpartition(":")
    return (dataset, config) if colon and config in CONFIGS else (name, "")


def no_rows(name: str, architectures: Iterable[str] | None) -> InputError:
    """The error that no row of a dataset is chosen; says which name stands for the others."""
    folder = _folder(name)
    others = [
        each
        for each in architectures or ()
        if each in TARGETS and each not in PUBLISHED
        if folder is None or (folder / "data" / each).is_dir()
    ]
    hint = f"; those of {others[0]} are '{name}:{others[0]}'" if others else ""
    return InputError(f"no row of {name!r} is of these architectures and families{hint}")


def load_rows(
    name: str,
    *,
    split: str = "test",
    track: str = "assign",
    revision: str | None = None,
    check_texts: bool = True,
) -> Dataset:
    """The rows of one split of one track.

    `name` is `mini`, a folder, or a dataset id on the Hugging Face Hub, or one of these
    with `:expert` or `:sm_90` behind it; `revision` is for the Hub. A version at the end
    (`mini@1.0`) asks for the rows of that version. Raises InputError if
    such rows are missing or of another version, if a row occurs twice, or if a row
    contradicts its own text. Without `check_texts` the caller checks the rows that it
    takes (check_row).
    """
    config = _config(track)
    folder = _folder(name, revision)
    if folder is None:
        of_hub = read_hub(*_on_the_hub(name, config), split, revision or tag_of(name), Row)
        rows = tuple(sorted(_checked(of_hub, name, track, check_texts), key=_order))
    elif split_name(name)[0] == EMBEDDED:
        rows = _embedded_rows(folder, name, split, track, check_texts)
    else:
        rows = _loaded_rows(folder, name, split, track, check_texts)
    dataset = Dataset(name, revision, split, track, rows)
    if split_version(name)[1] is not None:
        check_version(name, split, dataset.hash)
    return dataset


def _loaded_rows(
    folder: Path, name: str, split: str, track: str, check_texts: bool
) -> tuple[Row, ...]:
    found = _rows_of_folder(folder, name, split, track, MemoryBudget())
    return tuple(sorted(_checked(found, name, track, check_texts), key=_order))


# Embedded rows are read once in a process: like code, they do not change meanwhile.
_embedded_rows = functools.cache(_loaded_rows)


def iterate_rows(
    name: str, *, split: str = "test", track: str = "assign", revision: str | None = None
) -> Iterator[Row]:
    """The same rows one by one, in the order of the files, without holding all of them.

    A dataset on the Hub does not go into the local cache. The hash of a version is not checked, as
    that takes all rows. Raises InputError like
    load_rows, before the first row.
    """
    config = _config(track)
    folder = _folder(name, revision)
    if folder is not None:
        yield from _checked(_rows_of_folder(folder, name, split, track), name, track)
    else:
        streamed = stream_hub(*_on_the_hub(name, config), split, revision or tag_of(name), Row)
        yield from _checked(streamed, name, track)


def _checked(rows: Iterable[Row], name: str, track: str, check_texts: bool = True) -> Iterator[Row]:
    """Passes rows on. Raises InputError for a repeated row or one that contradicts its text."""
    seen: set[str] = set()
    for row in rows:
        if check_texts:
            check_row(vars(row), name)
        if row.track != track:
            message = f"row {row.id}: expected the track {track!r}, not {row.track[:40]!r}"
            raise InputError(message, source=name)
        if row.id in seen:
            raise InputError(f"row {row.id} stands twice in the split", source=name)
        seen.add(row.id)
        yield row


def _config(track: str) -> str:
    """The config on the Hub that holds a track."""
    if track not in TRACKS:
        raise InputError(f"unknown track {track!r}; known: {', '.join(TRACKS)}")
    return "default" if track == "assign" else track


def load_raw_row(
    name: str, identifier: str, *, split: str = "test", revision: str | None = None
) -> RawRow:
    """The compiler's machine IR or machine code of one row, from the config `raw`.

    Raises InputError if the split has no row of that id.
    """
    for row in _raw_rows(name, split, revision):
        if row.id == identifier:
            return row
    raise InputError(
        f"the dataset has no machine code of {identifier!r} in the split {split!r}", source=name
    )


def load_raw_rows(
    name: str, *, split: str = "test", revision: str | None = None, arch: str, raw_format: str
) -> dict[str, RawRow]:
    """The raw rows of a format in a split, by their ids; empty if there are none.

    In a folder only the files of `arch` are read.
    """
    rows = _raw_rows(name, split, revision, arch)
    return {row.id: row for row in rows if row.format == raw_format}


def _raw_rows(name: str, split: str, revision: str | None, arch: str = "*") -> Iterable[RawRow]:
    folder = _folder(name, revision)
    if folder is None:
        return read_hub(*_on_the_hub(name, "raw"), split, revision or tag_of(name), RawRow)
    paths = sorted(folder.glob(f"raw/*/{arch}/*/{split}-*.parquet"))
    return (row for _, row in _read(folder, paths, RawRow))


def _on_the_hub(name: str, config: str) -> tuple[str, str]:
    """The id and the config on the Hub of a dataset's name."""
    dataset, own = split_name(name)
    if own == EXPERT:
        return dataset, f"{EXPERT}-raw" if config == "raw" else EXPERT
    if own and config != "raw":
        # Published architectures share one config of the split track.
        config = own if config == "default" else split_config(own)
    return dataset, config


def split_config(architecture: str) -> str:
    """The config on the Hub with an architecture's rows of the split track."""
    return "split" if architecture in PUBLISHED else f"{architecture}-split"


def _folder(name: str, revision: str | None = None) -> Path | None:
    """The folder of a dataset on disk; None for an id on the Hub, which alone has revisions."""
    if revision is not None and is_local(name):
        raise InputError("--revision is for datasets on the Hub", source=name)
    name, config = split_name(name)
    if config == EXPERT:
        around = _folder(name)
        if around == embedded_path():
            return around.with_name(f"{EMBEDDED}-{EXPERT}")
        if around is None or (around / EXPERT).is_dir():
            return around and around / EXPERT
        raise InputError(f"the dataset has no folder {EXPERT!r}", source=around)
    if name == EMBEDDED:
        return embedded_path()
    if Path(name).is_dir():
        return Path(name)
    if Path(name).exists() or name.startswith((".", "/")) or name.count("/") != 1:
        raise InputError(
            f"expected {EMBEDDED!r}, the folder of a dataset or a dataset id on the Hub "
            f"such as 'verilocc/regalloc', not {name!r}"
        )
    return None


def is_local(name: str) -> bool:
    """True if a dataset's name means local files: `mini` or a folder."""
    name = split_name(name)[0]
    return name == EMBEDDED or Path(name).is_dir()


def _order(row: Row) -> tuple[str, str, int, str]:
    return row.arch, row.family, row.n_instructions, row.id


def _rows_of_folder(
    folder: Path, name: str, split: str, track: str, memory: MemoryBudget | None = None
) -> Iterator[Row]:
    base = folder / TRACKS[track]
    config = split_name(name)[1]
    there = {path.name for each in TRACKS.values() for path in (folder / each).glob("*")}
    wanted = [config] if config in TARGETS else default_architectures(there)
    files = [path for path in base.glob("*/*/*.parquet") if path.parts[-3] in wanted]
    paths = sorted(path for path in files if path.name.startswith(f"{split}-"))
    for listed in _listed(folder):
        path, parts = folder / listed, listed.split("/")
        here = parts[0] == base.name and parts[1] in wanted and path.name.startswith(f"{split}-")
        # A whole folder may be left out on purpose.
        if here and path.parent.is_dir() and not path.exists():
            raise InputError(f"the file is missing: {MANIFEST} lists it", source=path)
    if not paths:
        present = sorted({path.name.split("-")[0] for path in files})
        raise InputError(
            f"there is no split {split!r} of the {track} track here; "
            + (f"splits: {', '.join(present)}" if present else f"expected files in {base.name}/"),
            source=folder,
        )
    return (_of_its_path(row, path) for path, row in _read(folder, paths, Row, memory))


def _of_its_path(row: Row, path: Path) -> Row:
    """The row. Raises InputError if its path names another architecture or family."""
    if (row.arch, row.family) != path.parts[-3:-1]:
        found = f"{row.arch[:40]}/{row.family[:40]}"
        raise InputError(f"row {row.id} is of {found}, not as the path says", source=path)
    return row


def _read(
    folder: Path, paths: list[Path], row_type: type[RowType], memory: MemoryBudget | None = None
) -> Iterator[tuple[Path, RowType]]:
    """The rows of files, each with its path.

    Raises InputError if a file differs from the folder's manifest, if there is one,
    and if the budget `memory` is used up.
    """
    listed = _listed(folder)
    for path in paths:
        name = path.relative_to(folder).as_posix()
        if name in listed:
            _check_hash(path, listed[name])
        yield from ((path, row) for row in iterate_parquet(path, row_type, memory))


def _listed(folder: Path) -> dict[str, object]:
    """The files that a folder's manifest lists, with their SHA-256; none without a manifest."""
    path = folder / MANIFEST
    manifest = read_json(path) if path.is_file() else {}
    files = manifest.get("files", {}) if isinstance(manifest, dict) else None
    if not isinstance(files, dict):
        raise InputError("expected an object with the object 'files'", source=path)
    return files


def _check_hash(path: Path, expected: object) -> None:
    digest = hashlib.sha256()
    with open_input(path, MEMORY_BYTES) as file:  # more is refused, and slow to hash
        while piece := file.read(MIB):
            digest.update(piece)
    if digest.hexdigest() != expected:
        raise InputError(
            f"the file is damaged or was changed: its SHA-256 is not what {MANIFEST} lists",
            source=path,
        )
