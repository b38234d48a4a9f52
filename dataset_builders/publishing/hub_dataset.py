"""A dataset's repository on the Hub: its state, and the requests that publishing makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from dataset_builders.publishing.plan import MAIN, RemoteFile, UploadPlan
from verilocc_bench.dataset.hub_requests import LOGGED_OUT, HubError, ask, ask_once
from verilocc_bench.errors import InputError

if TYPE_CHECKING:
    from huggingface_hub import CommitInfo, CommitOperationAdd, CommitOperationDelete

KIND = "dataset"
TIMEOUT_SECONDS = 30.0
FILES_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class RepositoryState:
    """The state of a repository; `head` is None if the branch does not exist.

    `files` are the files of the branch, or of the main branch if the branch
    does not exist.
    """

    exists: bool = False
    private: bool = False
    head: str | None = None
    start: str | None = None
    tags: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, RemoteFile] = field(default_factory=dict)


class HubDataset:
    """Requests about one repository. Each raises HubError if it fails."""

    def __init__(self, identifier: str) -> None:
        from huggingface_hub import HfApi
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils._validators import validate_repo_id

        self.identifier = identifier
        self._api = HfApi()
        try:
            validate_repo_id(identifier)
        except HFValidationError:
            identifier = ""
        if identifier.count("/") != 1:
            raise InputError(f"expected an id as in owner/name, not {self.identifier[:80]!r}")

    @property
    def address(self) -> str:
        """The repository's address for people."""
        return f"{self._api.endpoint}/datasets/{self.identifier}"

    def require_token(self) -> None:
        """Raises InputError if there is no token; the Hub decides if it is valid."""
        from huggingface_hub import get_token

        if get_token() is None:
            raise InputError(LOGGED_OUT, source=self.identifier)

    def state(self, branch: str) -> RepositoryState:
        """The state of the repository at a branch or pull request now."""
        from huggingface_hub.errors import RepositoryNotFoundError

        def find() -> Any:
            try:
                return self._api.repo_info(self.identifier, repo_type=KIND, timeout=TIMEOUT_SECONDS)
            except RepositoryNotFoundError:
                return None

        found = ask(self.identifier, find)
        if found is None:
            return RepositoryState()
        listed = partial(self._api.list_repo_refs, repo_type=KIND, include_pull_requests=True)
        references = ask(self.identifier, partial(listed, self.identifier))
        tags = {tag.name: tag.target_commit for tag in references.tags}
        heads = {head.name: head.target_commit for head in references.branches}
        heads |= {head.ref: head.target_commit for head in references.pull_requests or ()}
        head, start = heads.get(branch), heads.get(MAIN)
        if head is None and (branch in tags or branch.startswith("refs/")):
            what = "is a tag" if branch in tags else "is not there"
            raise InputError(
                f"expected a branch or an open pull request: {branch!r} {what}",
                source=self.identifier,
            )
        files = {file.path: file for file in self.files(head or start)}
        return RepositoryState(True, bool(found.private), head, start, tags, files)

    def files(self, commit: str | None) -> list[RemoteFile]:
        """All files of a commit; empty without a commit."""
        if commit is None:
            return []
        return ask(self.identifier, lambda: list(self._listed(commit)))

    def _listed(self, commit: str) -> Iterator[RemoteFile]:
        from huggingface_hub.hf_api import RepoFile

        entries = self._api.list_repo_tree(
            self.identifier, repo_type=KIND, revision=commit, recursive=True
        )
        for entry in entries:
            if isinstance(entry, RepoFile):
                sha256 = None if entry.lfs is None else entry.lfs.sha256
                yield RemoteFile(entry.path, entry.size, entry.blob_id, sha256)

    def create(self, *, private: bool) -> None:
        """Makes the repository: private if asked, otherwise by the owner's settings."""
        create = partial(
            self._api.create_repo, self.identifier, repo_type=KIND, private=private or None
        )
        try:
            ask(self.identifier, create)
        except HubError as error:
            owner = self.identifier.split("/", maxsplit=1)[0]
            reasons = {
                403: f"this token may not make datasets of {owner!r}, or there is no such owner",
                404: f"there is no owner {owner!r} on the Hub",
                409: "it exists on the Hub, and this token may not see it",
            }
            reason = reasons.get(error.status or 0, error.message)
            raise HubError(reason, self.identifier, status=error.status) from None

    def create_branch(self, branch: str, start: str) -> None:
        """Makes a branch that starts at a commit."""
        create = partial(self._api.create_branch, self.identifier, branch=branch, revision=start)
        ask(self.identifier, partial(create, repo_type=KIND, exist_ok=True))

    def tag(self, name: str, commit: str) -> None:
        """Makes a tag for a commit."""
        create = partial(self._api.create_tag, self.identifier, tag=name, revision=commit)
        ask(self.identifier, partial(create, repo_type=KIND))

    def operations(self, plan: UploadPlan) -> Operations:
        """The plan in the form of the Hub's client."""
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete

        return Operations(
            [CommitOperationAdd(file.path, file.location) for file in plan.sent],
            [CommitOperationDelete(path, is_folder=False) for path in plan.deleted],
        )

    def send(
        self, files: Sequence[CommitOperationAdd], branch: str, *, create_pr: bool, jobs: int
    ) -> None:
        """Sends the contents that the Hub lacks. They are invisible before the commit."""
        ask_once(
            self.identifier,
            lambda: self._api.preupload_lfs_files(
                self.identifier,
                files,
                repo_type=KIND,
                revision=branch,
                create_pr=create_pr,
                num_threads=jobs,
                free_memory=False,
            ),
        )

    def commit(
        self,
        operations: Operations,
        message: str,
        branch: str,
        parent: str | None,
        *,
        create_pr: bool,
    ) -> CommitInfo:
        """Makes all operations in one commit if the branch is still at `parent`; tries once."""
        return ask_once(
            self.identifier,
            lambda: self._api.create_commit(
                self.identifier,
                operations.all,
                commit_message=message,
                repo_type=KIND,
                revision=branch,
                parent_commit=parent,
                create_pr=create_pr,
            ),
        )


@dataclass(frozen=True, slots=True)
class Operations:
    """The operations of a commit."""

    additions: Sequence[CommitOperationAdd]
    deletions: Sequence[CommitOperationDelete]

    @property
    def all(self) -> list[CommitOperationAdd | CommitOperationDelete]:
        """All operations of the commit."""
        return [*self.additions, *self.deletions]

    def batches(self) -> Iterable[Sequence[CommitOperationAdd]]:
        """The files to send, in batches."""
        starts = range(0, len(self.additions), FILES_AT_ONCE)
        return (self.additions[start : start + FILES_AT_ONCE] for start in starts)
