"""What to publish and where: the request, the differences of both sides, and the result."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dataset_builders.publishing.contents import LocalFile, is_owned
from verilocc_bench.errors import InputError


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


MAIN = "main"
MESSAGE = "Publish the dataset"


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """A folder and a repository, as owner/name.

    `branch` is made if it does not exist; refs/pr/N is an open pull request.
    `private` holds for a new repository, `tag` names the commit, `jobs` is the
    number of processes for the check and of connections. Raises InputError for
    a request that contradicts itself.
    """

    folder: Path
    repository: str
    branch: str = MAIN
    message: str = MESSAGE
    private: bool = False
    create_pr: bool = False
    dry_run: bool = False
    tag: str | None = None
    jobs: int = 1

    def __post_init__(self) -> None:
        if not self.folder.is_dir():
            raise InputError("expected the folder of a dataset", source=self.folder)
        if self.tag is not None and self.create_pr:
            raise InputError("a pull request has no release to tag: --tag or --create-pr")
        if self.create_pr and self.branch.startswith("refs/"):
            raise InputError("--create-pr needs a branch to open a pull request on")
        if not self.message.strip():
            raise InputError("expected a message for the commit")


@dataclass(frozen=True, slots=True)
class Publication:
    """The result of a request: `plan` is the change that was made, or would be in a dry run.

    `commit` holds the folder's files; None in a dry run. `pull_request` is the
    address of a new one. `created` is true if the repository is new, or would
    be in a dry run.
    """

    plan: UploadPlan
    address: str
    commit: str | None
    pull_request: str | None
    created: bool
