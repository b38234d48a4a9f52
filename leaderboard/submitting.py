"""Sends a package to a folder, or as a pull request to the Hub's submissions dataset."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

from leaderboard.packing import Package
from verilocc_bench.dataset.hub_requests import LOGGED_OUT, HubError, ask, ask_once
from verilocc_bench.errors import InputError

KIND = "dataset"


def write_folder(package: Package, output: Path) -> Path:
    """Writes a package under `output`, whole or not at all; returns its folder."""
    target = output / package.path
    if target.exists():
        raise InputError("there is a submission of this name already", source=target)
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.new")
    shutil.rmtree(temporary, ignore_errors=True)
    shutil.copytree(package.folder, temporary)
    temporary.rename(target)
    return target


def open_pull_request(package: Package, repository: str) -> str:
    """Opens a pull request that adds a package to a dataset's repository; returns its address.

    Raises InputError if the Hub refuses, or already has a submission of this
    name. At most some contents are then on the Hub, which nobody sees.
    """
    from huggingface_hub import CommitOperationAdd, HfApi, get_token

    api = HfApi()
    if get_token() is None:
        raise InputError(LOGGED_OUT, source=repository)
    for path in package.files:
        exists = partial(api.file_exists, repository, path, repo_type=KIND)
        if ask(repository, exists):
            reason = f"there is a submission of this name already: {path}"
            raise InputError(reason, source=repository)
    operations = [CommitOperationAdd(path, file) for path, file in package.files.items()]
    commit = partial(
        api.create_commit,
        repository,
        operations,
        commit_message=f"Submission: {package.name}",
        repo_type=KIND,
        create_pr=True,
    )
    try:
        # Sent once: a second attempt could open a second pull request.
        made = ask_once(repository, commit)
    except HubError as error:
        if not error.may_be_done:
            raise
        where = f"{api.endpoint}/datasets/{repository}/discussions"
        raise InputError(
            f"{error.message}; look whether the pull request was opened: {where}",
            source=repository,
        ) from None
    return str(made.pr_url)
