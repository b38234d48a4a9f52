"""All repositories of the local Hub with their discussions, in memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.hub.accounts import NAMESPACES, Account, may_read, may_write
from tests.hub.commits import CommitRequest, changed_tree
from tests.hub.discussions import Discussion
from tests.hub.errors import Refusal, no_repository, no_revision
from tests.hub.repository import MAIN, Commit, Repository, StoredFile

GIT_ATTRIBUTES = StoredFile(b"*.parquet filter=lfs diff=lfs merge=lfs -text\n")

Key = tuple[str, str]
"""Kind (model, dataset, space) and name."""


@dataclass
class Store:
    repositories: dict[Key, Repository] = field(default_factory=dict)
    discussions: dict[Key, list[Discussion]] = field(default_factory=dict)

    def find(self, kind: str, name: str, account: Account | None) -> Repository:
        found = self.repositories.get((kind, name))
        if found is None or not may_read(account, found.namespace, private=found.private):
            raise no_repository()
        return found

    def find_to_write(self, kind: str, name: str, account: Account | None) -> Repository:
        found = self.find(kind, name, account)
        if account is None:
            raise Refusal(401, "Invalid username or password.")
        if not may_write(account, found.namespace):
            raise Refusal(403, "Forbidden: you must use a write token to upload to a repository.")
        return found

    def create(self, kind: str, name: str, account: Account, *, private: bool) -> Repository:
        namespace = name.split("/", maxsplit=1)[0]
        if namespace not in NAMESPACES:
            raise Refusal(404, f'The namespace "{namespace}" does not exist')
        if not may_write(account, namespace):
            reason = (
                f'You don\'t have the rights to create a {kind} under the namespace "{namespace}"'
            )
            raise Refusal(403, reason)
        if (kind, name) in self.repositories:
            raise Refusal(409, f"You already created this {kind} repo")
        made = Repository(kind, name, private)
        first = made.commit(
            None, {".gitattributes": GIT_ATTRIBUTES}, "initial commit", "", account.name
        )
        made.references[f"refs/heads/{MAIN}"] = first
        self.repositories[kind, name] = made
        self.discussions[kind, name] = []
        return made

    def discussions_of(self, repository: Repository) -> list[Discussion]:
        return self.discussions[repository.kind, repository.name]

    def discussion(self, repository: Repository, number: int) -> Discussion:
        found = self.discussions_of(repository)
        if not 1 <= number <= len(found):
            raise Refusal(404, "Discussion not found")
        return found[number - 1]

    def open_discussion(
        self, repository: Repository, title: str, author: str, base: Commit | None, branch: str
    ) -> Discussion:
        """A discussion; with a `base` a pull request, still without changes."""
        opened = self.discussions_of(repository)
        made = Discussion(len(opened) + 1, title, author, base, f"refs/heads/{branch}")
        opened.append(made)
        if base is not None:
            repository.references[made.reference] = base
        return made

    def commit(
        self, repository: Repository, revision: str, request: CommitRequest, author: str
    ) -> Commit:
        """A commit on a branch or a pull request, if that is still at the parent that it names."""
        reference = repository.writable_reference(revision)
        head = repository.references[reference]
        if request.parent not in (None, head.oid):
            reason = "A commit has happened since. Please refresh and try again."
            raise Refusal(412, reason)
        return self._commit_to(repository, reference, head, request, author)

    def commit_as_pull_request(
        self, repository: Repository, branch: str, request: CommitRequest, author: str
    ) -> tuple[Commit, Discussion]:
        if f"refs/heads/{branch}" not in repository.references:
            raise no_revision(branch)
        base = repository.resolve(request.parent or branch)
        files = changed_tree(repository, base.files, request)
        opened = self.open_discussion(repository, request.title, author, base, branch)
        opened.comment(author, request.description)
        commit = repository.commit(base, files, request.title, request.description, author)
        repository.references[opened.reference] = commit
        opened.add_event("commit", author, {"subject": commit.title, "oid": commit.oid})
        return commit, opened

    def _commit_to(
        self,
        repository: Repository,
        reference: str,
        head: Commit,
        request: CommitRequest,
        author: str,
    ) -> Commit:
        files = changed_tree(repository, head.files, request)
        commit = repository.commit(head, files, request.title, request.description, author)
        repository.references[reference] = commit
        if reference.startswith("refs/pr/"):
            pull_request = self.discussion(repository, int(reference.rsplit("/", 1)[1]))
            event: dict[str, Any] = {"subject": commit.title, "oid": commit.oid}
            pull_request.add_event("commit", author, event)
        return commit
