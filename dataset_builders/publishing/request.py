"""What to publish and where, and the result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dataset_builders.publishing.plan import UploadPlan
from verilocc_bench.errors import InputError

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
