"""The files of the dataset, in a folder and in a repository.

The card's examples are published with the name of the repository, and the
manifest with that card's hash. The folder itself does not change. If the folder
has experts' kernels in its folder `expert`, the published card has their configs.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from dataset_builders.release.card import expert_configs, with_configs
from dataset_builders.release.card_examples import named
from dataset_builders.sweeps.experts import EXPERT
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, read_text, write_atomically
from verilocc_bench.views.chat import CHAT

CARD, MANIFEST = "README.md", "manifest.json"

FOLDERS = ("data", "split", "raw", CHAT, "plots", "licenses", EXPERT)
FILES = frozenset({"README.md", "manifest.json", "rows.jsonl", "rejected.jsonl", "leakage.json"})

BLOCK_BYTES = 1 << 20

_TEST_ROWS = {("data", "", "", "test"): 1}
"""Experts' kernels are of one split."""


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file of the folder; `path` is relative to it, with slashes.

    The Hub identifies a large file by `sha256`, and any other by `blob_id`
    (git's SHA-1).
    """

    path: str
    location: Path
    size_bytes: int
    sha256: str
    blob_id: str


def is_owned(path: str) -> bool:
    """True if a file belongs to the dataset: it is published, and goes if the folder lacks it."""
    return path in FILES or (path.split("/", maxsplit=1)[0] in FOLDERS and "/" in path)


@contextmanager
def published_files(folder: Path, repository: str) -> Iterator[Mapping[str, LocalFile]]:
    """The dataset's files in a folder by path, as a repository will have them; no hidden files.

    The card and the manifest may be temporary files, until the context ends.
    Raises InputError for links and everything that is not a plain file.
    """
    found: dict[str, LocalFile] = {}
    for location in sorted(_walk(folder)):
        path = location.relative_to(folder).as_posix()
        if is_owned(path):
            found[path] = _read(path, location)
    inner = f"{EXPERT}/"
    configs = [] if f"{inner}{CARD}" not in found else list(expert_configs(_TEST_ROWS, inner))
    with TemporaryDirectory(prefix="verilocc-bench-") as temporary:
        work = Path(temporary)
        # The cards with the repository's name, and their manifests, as far as the folder's differ.
        card = _card(found, "", repository, configs, work)
        yield found | card | _card(found, inner, repository, [], work)


def _card(
    found: Mapping[str, LocalFile],
    place: str,
    repository: str,
    configs: list[dict[str, Any]],
    work: Path,
) -> dict[str, LocalFile]:
    """The card in a folder of the dataset, with further configs, and that folder's manifest."""
    card_path, manifest_path = f"{place}{CARD}", f"{place}{MANIFEST}"
    if card_path not in found:
        return {}
    text = read_text(found[card_path].location)
    card = named(text, repository)
    if configs:
        card = with_configs(card, configs)
    if card == text:
        return {}
    write_atomically(work / card_path, card)
    changed = {card_path: _read(card_path, work / card_path)}
    if manifest_path in found:
        manifest = read_json(found[manifest_path].location)
        manifest["files"][CARD] = changed[card_path].sha256
        # The same form as the release writes.
        text = json.dumps(manifest, indent=1, sort_keys=True) + "\n"
        write_atomically(work / manifest_path, text)
        changed[manifest_path] = _read(manifest_path, work / manifest_path)
    return changed


def _walk(folder: Path) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(parent, name) for name in names if not name.startswith("."))
        yield from (Path(parent, name) for name in folders if Path(parent, name).is_symlink())


def _refuse(error: OSError) -> None:
    raise InputError(f"cannot be read: {error.strerror}", source=error.filename)


def _read(path: str, location: Path) -> LocalFile:
    if location.is_symlink() or not location.is_file():
        raise InputError("expected a plain file, no link", source=location)
    try:
        size = location.stat().st_size
        sha256 = hashlib.sha256()
        blob = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        with location.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                sha256.update(block)
                blob.update(block)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", source=location) from None
    return LocalFile(path, location, size, sha256.hexdigest(), blob.hexdigest())
