"""The differences between a repository and a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dataset_builders.publishing.contents import LocalFile, is_owned


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """A file of a repository; `sha256` is None if it is not stored as a large file."""

    path: str
    size_bytes: int
    blob_id: str
    sha256: str | None

    def holds(self, file: LocalFile) -> bool:
        """True if the contents are the same."""
        if self.sha256 is not None:
            return self.sha256 == file.sha256
        return self.blob_id == file.blob_id


@dataclass(frozen=True, slots=True)
class UploadPlan:
    """The changes of one commit, each list sorted by path."""

    added: tuple[LocalFile, ...]
    changed: tuple[LocalFile, ...]
    deleted: tuple[str, ...]
    unchanged: int

    @property
    def is_empty(self) -> bool:
        """True if the repository holds the folder already."""
        return not (self.added or self.changed or self.deleted)

    @property
    def sent(self) -> tuple[LocalFile, ...]:
        """The files that are new or changed."""
        return self.added + self.changed

    @property
    def sent_bytes(self) -> int:
        """The bytes to send, if nothing was sent before."""
        return sum(file.size_bytes for file in self.sent)


def make_plan(local: Mapping[str, LocalFile], remote: Mapping[str, RemoteFile]) -> UploadPlan:
    """The changes after which a repository has the dataset's files of a folder."""
    added = [file for path, file in sorted(local.items()) if path not in remote]
    changed = [
        file
        for path, file in sorted(local.items())
        if path in remote and not remote[path].holds(file)
    ]
    gone = sorted(path for path in remote if is_owned(path) and path not in local)
    return UploadPlan(
        tuple(added), tuple(changed), tuple(gone), len(local) - len(added) - len(changed)
    )
