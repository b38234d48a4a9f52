"""The layout of a dataset folder, and how to find the folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dataset_builders.building.install import MANIFEST
from dataset_builders.sweeps.experts import EXPERT
from verilocc_bench.dataset import EMBEDDED, embedded_path, split_name
from verilocc_bench.dataset.versions import tag_of
from verilocc_bench.errors import InputError

CARD = "README.md"
ROW_LIST = "rows.jsonl"
REJECTED = "rejected.jsonl"
LEAKAGE = "leakage.json"

TIMEOUT_SECONDS = 10.0

_IGNORED = {".gitattributes"}
"""Files that the Hub adds to a repository by itself."""

_PARQUET = re.compile(
    r"(raw/)?(data|split)/([^/]+)/([^/]+)/([^/-]+)-(\d{5})-of-(\d{5})\.parquet", re.ASCII
)
_TRACKS = {"data": "assign", "split": "split"}


@dataclass(frozen=True, slots=True)
class ParquetPlace:
    """The parts of a Parquet file's path; `file` is relative to the folder."""

    file: str
    raw: bool
    folder: str
    arch: str
    family: str
    split: str
    shard: int
    shards: int

    @property
    def track(self) -> str:
        """The track of its rows."""
        return _TRACKS[self.folder]

    @property
    def bucket(self) -> tuple[str, str, str, str]:
        """Track folder, architecture, family, split: equal for rows and their raw rows."""
        return self.folder, self.arch, self.family, self.split


def parquet_place(file: str) -> ParquetPlace | None:
    """The parts of a path; None if it is not the path of a file of rows."""
    match = _PARQUET.fullmatch(file)
    if match is None:
        return None
    raw, folder, arch, family, split, shard, shards = match.groups()
    return ParquetPlace(file, bool(raw), folder, arch, family, split, int(shard), int(shards))


def raw_places(folder: Path) -> list[ParquetPlace]:
    """The files of raw rows in the order of their paths."""
    places = map(parquet_place, files_in(folder))
    return [place for place in places if place is not None and place.raw]


def files_in(folder: Path) -> list[str]:
    """The paths of all files of a dataset folder, relative to it and sorted.

    The dataset of experts' kernels that may lie in it has files of its own.
    """
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    inner = f"{EXPERT}/" if (folder / EXPERT / MANIFEST).is_file() else None
    return sorted(
        path
        for path in paths
        if path not in _IGNORED and not (inner is not None and path.startswith(inner))
    )


def locate_dataset(name: str, *, hub: bool = False) -> Path:
    """The folder of `mini` or of a path, or with `hub` of a whole download from the Hub.

    `:expert` behind a name stands for the folder in it, an architecture for the whole
    dataset. Raises InputError if there is no such dataset.
    """
    tag = tag_of(name)
    name, config = split_name(name)
    if tag is not None and (name == EMBEDDED or Path(name).is_dir()):
        raise InputError(f"a version is for the Hub: leave out @{tag.removeprefix('v')}")
    if name == EMBEDDED:
        whole = embedded_path()
        return whole.with_name(f"{EMBEDDED}-{EXPERT}") if config == EXPERT else whole
    if config == EXPERT and Path(name).is_dir():
        name = str(Path(name, EXPERT))
    path = Path(name)
    if path.is_dir():
        if not any((path / part).exists() for part in (MANIFEST, "data", "split")):
            raise InputError(
                f"no dataset: expected {MANIFEST} and the folders data/ and raw/", source=path
            )
        return path
    if path.exists() or name.startswith((".", "/")) or name.count("/") != 1:
        raise InputError(f"expected {EMBEDDED!r} or the folder of a dataset, not {name!r}")
    if not hub:
        raise InputError("there is no such folder; a dataset on the Hub does not do", source=path)
    found = _download(name, tag)
    return found / EXPERT if config == EXPERT else found


def _download(name: str, revision: str | None) -> Path:
    """A dataset of the Hub in the local cache; without a connection, the copy that is there."""
    from huggingface_hub import HfApi, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, RepositoryNotFoundError

    offline = False
    try:
        HfApi().dataset_info(name, revision=revision, timeout=TIMEOUT_SECONDS)
    except (HFValidationError, RepositoryNotFoundError):
        raise InputError("no such folder, and no such dataset on the Hub", source=name) from None
    except HfHubHTTPError as error:
        raise _not_downloaded(name, error) from None
    except Exception:  # noqa: BLE001  whatever the HTTP library raises that the client stands on
        offline = True
    try:
        fetch = partial(snapshot_download, repo_type="dataset", revision=revision)
        return Path(fetch(name, local_files_only=offline))
    except Exception as error:  # noqa: BLE001  the client raises errors of many libraries
        raise _not_downloaded(name, error) from None


def _not_downloaded(name: str, error: Exception) -> InputError:
    reason = " ".join(str(error).split())[:300]
    return InputError(f"no such folder, and not loaded from the Hub: {reason}", source=name)
