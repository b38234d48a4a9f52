"""What is to be published, where, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dataset_builders.publishing.plan import UploadPlan
from verilocc_bench.errors import InputError

__all__ = ["MAIN", "Publication", "PublishRequest"]

MAIN = "main"
MESSAGE = "Publish the dataset"


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """A folder and a repository, as in owner/name.

    `branch` is made where there is none; refs/pr/N is a pull request that is
    open. `private` counts for a repository that is made, `tag` names the
    commit, `jobs` is processes of the check and connections. Raises InputError
    for a request that contradicts itself.
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
    """What became of a request: `plan` is what was, or in a dry run would be, changed.

    `commit` is the one that holds the folder's files; None in a dry run.
    `pull_request` is the address of one that was opened; `created` says
    whether the repository is, or in a dry run would be, a new one.
    """

    plan: UploadPlan
    address: str
    commit: str | None
    pull_request: str | None
    created: bool
