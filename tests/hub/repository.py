"""A repository of the local Hub: commits, each a whole tree, and the references to them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property

from tests.hub.errors import Refusal, no_entry, no_revision

MAIN = "main"
_START = datetime(2026, 1, 1, tzinfo=UTC)


def at(step: int) -> str:
    """A date that depends on nothing but how much has happened before."""
    return (_START + timedelta(seconds=step)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def git_oid(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


@dataclass(frozen=True)
class StoredFile:
    """The content of one path; in git, that of an LFS file is its pointer."""

    data: bytes
    is_lfs: bool = False

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @cached_property
    def pointer(self) -> bytes:
        return (
            "version https://git-lfs.github.com/spec/v1\n"
            f"oid sha256:{self.sha256}\nsize {len(self.data)}\n"
        ).encode()

    @cached_property
    def oid(self) -> str:
        return git_oid(self.pointer if self.is_lfs else self.data)

    @property
    def content_oid(self) -> str:
        """By which clients see whether a file has changed."""
        return self.sha256 if self.is_lfs else self.oid


Tree = Mapping[str, StoredFile]


@dataclass(frozen=True, slots=True)
class Commit:
    oid: str
    parent: Commit | None
    files: Tree
    title: str
    description: str
    author: str
    date: str

    def history(self) -> Iterator[Commit]:
        commit: Commit | None = self
        while commit is not None:
            yield commit
            commit = commit.parent


@dataclass
class Repository:
    """`kind` is model, dataset or space; `references` go by full name, as refs/heads/main."""

    kind: str
    name: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    references: dict[str, Commit] = field(default_factory=dict)
    large_files: dict[str, bytes] = field(default_factory=dict)

    @property
    def namespace(self) -> str:
        return self.name.split("/")[0]

    def resolve(self, revision: str) -> Commit:
        """The commit that a branch, a tag, refs/pr/N or (a beginning of) an oid names."""
        for reference in (f"refs/heads/{revision}", f"refs/tags/{revision}", revision):
            if reference in self.references:
                return self.references[reference]
        if re.fullmatch(r"[0-9a-f]{7,40}", revision):
            for oid, commit in self.commits.items():
                if oid.startswith(revision):
                    return commit
        raise no_revision(revision)

    def writable_reference(self, revision: str) -> str:
        """The full name of a branch or a pull request."""
        for reference in (f"refs/heads/{revision}", revision):
            if reference in self.references and not reference.startswith("refs/tags/"):
                return reference
        raise no_revision(revision)

    def commit(
        self, parent: Commit | None, files: Tree, title: str, description: str, author: str
    ) -> Commit:
        """A new commit, named by the hash of all that it says, which no reference names yet."""
        tree = {path: file.oid for path, file in sorted(files.items())}
        date = at(len(self.commits))
        content = [parent and parent.oid, tree, title, description, author, date]
        oid = hashlib.sha1(json.dumps(content).encode()).hexdigest()
        made = Commit(oid, parent, dict(sorted(files.items())), title, description, author, date)
        self.commits[oid] = made
        return made

    def file(self, revision: str, path: str) -> tuple[Commit, StoredFile]:
        commit = self.resolve(revision)
        if path not in commit.files:
            raise no_entry(path)
        return commit, commit.files[path]

    def create_reference(self, reference: str, commit: Commit) -> None:
        if reference in self.references:
            raise Refusal(409, f"Reference already exists: {reference}")
        self.references[reference] = commit
