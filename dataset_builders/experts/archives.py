"""The libraries of kernels: archives of a package index, fetched on demand and unpacked in part.

An archive is one exact file,
known by its SHA-256; nothing of it is installed or run. The folder is
`~/.cache/verilocc-bench/experts`, or what the environment names in
VERILOCC_BENCH_EXPERTS. A file that lies there already is not fetched.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from verilocc_bench.errors import InputError
from verilocc_bench.files import file_sha256, write_atomically

FOLDER_VARIABLE = "VERILOCC_BENCH_EXPERTS"
INDEX_VARIABLE = "PIP_INDEX_URL"
DEFAULT_INDEX = "https://pypi.org/simple"
TIMEOUT_SECONDS = 60.0
_LINK = re.compile(r'<a[^>]*\bhref="([^"#]+)[^"]*"[^>]*>\s*([^<\s]+)\s*</a>')


@dataclass(frozen=True, slots=True)
class Archive:
    """A wheel or a source archive of a package index.

    `parts` are the folders and files in it that are unpacked, without the folder
    at the top of a source archive. `notice` is the one with its licence.
    """

    package: str
    version: str
    file: str
    sha256: str
    size_bytes: int
    parts: tuple[str, ...]
    notice: str

    def folder(self) -> Path:
        """The folder of the unpacked parts.

        Unpacks the archive if it lies beside the folder. Raises InputError if it
        was not fetched, or is another file than the one that is expected.
        """
        unpacked = archives_folder() / f"{self.package}-{self.version}-{self.sha256[:12]}"
        if not unpacked.is_dir():
            packed = archives_folder() / self.file
            if not packed.is_file():
                raise InputError(
                    f"{self.file} is not there; `make expert-archives` fetches it "
                    f"({self.size_bytes / 1e6:.1f} MB)",
                    source=archives_folder(),
                )
            self._unpack(packed, unpacked)
        return unpacked

    def notice_text(self) -> str:
        """The text of the library's licence."""
        return (self.folder() / self.notice).read_text(encoding="utf-8")

    def check(self, path: Path) -> None:
        """Raises InputError if a file is not this archive."""
        found = file_sha256(path)
        if found != self.sha256:
            message = f"its SHA-256 is {found}, expected {self.sha256}: remove the file"
            raise InputError(message, source=path)

    def _unpack(self, packed: Path, unpacked: Path) -> None:
        self.check(packed)
        partial = unpacked.with_name(f".{unpacked.name}.{os.getpid()}")
        shutil.rmtree(partial, ignore_errors=True)
        for name, data in _members(packed):
            if any(name == part or name.startswith(f"{part}/") for part in self.parts):
                write_atomically(partial / name, data)
        try:
            partial.rename(unpacked)
        except OSError:  # another process was faster
            if not unpacked.is_dir():
                raise
            shutil.rmtree(partial)


def archives_folder() -> Path:
    """The folder of all archives."""
    named = os.environ.get(FOLDER_VARIABLE)
    return Path(named) if named else Path.home() / ".cache" / "verilocc-bench" / "experts"


def _members(packed: Path) -> Iterator[tuple[str, bytes]]:
    """The files of an archive with their paths; links and paths that lead out are left out."""
    if packed.suffix == ".whl":
        with zipfile.ZipFile(packed) as wheel:
            for entry in wheel.infolist():
                if not entry.is_dir() and _is_inside(entry.filename):
                    yield entry.filename, wheel.read(entry)
        return
    with tarfile.open(packed) as source:
        for member in source:
            name = member.name.partition("/")[2]
            if member.isreg() and _is_inside(name):
                file = source.extractfile(member)
                assert file is not None
                yield name, file.read()


def _is_inside(name: str) -> bool:
    path = PurePosixPath(name)
    return bool(name) and not path.is_absolute() and ".." not in path.parts


def fetch(archives: Sequence[Archive]) -> list[Path]:
    """Fetches the archives that are not in the folder, and returns their paths.

    Says before each how large it is. Raises InputError if the index cannot be
    reached, lacks the file, or sends another one.
    """
    found = []
    for archive in archives:
        path = archives_folder() / archive.file
        if not path.is_file():
            size = f"{archive.size_bytes / 1e6:.1f} MB"
            print(f"fetching {archive.file}, {size}, into {path.parent}", file=sys.stderr)
            _fetch(archive, path)
        archive.check(path)
        found.append(path)
    return found


def _fetch(archive: Archive, path: Path) -> None:
    import httpx2

    index = os.environ.get(INDEX_VARIABLE, DEFAULT_INDEX).rstrip("/")
    page = f"{index}/{archive.package}/"
    try:
        with httpx2.Client(timeout=TIMEOUT_SECONDS, follow_redirects=True) as client:
            listing = client.get(page)
            listing.raise_for_status()
            address = next(
                (url for url, name in _LINK.findall(listing.text) if name == archive.file), None
            )
            if address is None:
                raise InputError(f"the index does not list {archive.file}", source=page)
            answer = client.get(str(listing.url.join(address)))
            answer.raise_for_status()
    except httpx2.HTTPError as error:
        raise InputError(f"cannot be fetched: {error}", source=page) from None
    if len(answer.content) != archive.size_bytes:
        message = f"{archive.file}: {len(answer.content)} bytes, expected {archive.size_bytes}"
        raise InputError(message, source=page)
    write_atomically(path, answer.content)
