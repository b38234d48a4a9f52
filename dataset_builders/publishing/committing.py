"""Sends contents, then makes one commit: exactly once, even if the Hub's reply is lost.

A reply can be lost after the commit was made. So before another attempt the
branch is read: if it holds the folder's files, the work is done.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from tqdm import tqdm

from dataset_builders.publishing.contents import LocalFile
from dataset_builders.publishing.hub_dataset import HubDataset, Operations, RepositoryState
from dataset_builders.publishing.plan import PublishRequest, UploadPlan, make_plan
from verilocc_bench.dataset.hub_requests import WAITS_SECONDS, HubError
from verilocc_bench.errors import InputError

Committed = tuple[str, str | None]
"""The commit, and the address of its pull request, if it has one."""

_NOTHING = "nothing was published"


def send_and_commit(
    request: PublishRequest,
    dataset: HubDataset,
    plan: UploadPlan,
    local: Mapping[str, LocalFile],
    state: RepositoryState,
) -> Committed:
    """Brings the branch, or a new pull request, from `state` to the `local` files.

    Raises InputError if the branch stays as it is, or if somebody else has
    changed it.
    """
    operations = dataset.operations(plan)
    _send(request, dataset, operations)
    waits = iter(WAITS_SECONDS)
    while True:
        try:
            made = dataset.commit(
                operations,
                request.message,
                request.branch,
                state.head,
                create_pr=request.create_pr,
            )
            return made.oid, made.pr_url
        except HubError as error:
            failure = error
        if not request.create_pr and (found := _looked_up(request, dataset, local, state, failure)):
            return found, None
        wait = next(waits, None)
        if wait is None or not (
            failure.is_refused_for_now or (failure.may_be_done and not request.create_pr)
        ):
            outcome = _NOTHING
            if request.create_pr and failure.may_be_done and not failure.is_refused_for_now:
                outcome = f"look whether the pull request was opened: {dataset.address}/discussions"
            raise InputError(f"{failure.message}; {outcome}", source=request.repository)
        time.sleep(failure.pause_seconds(wait))


def _send(request: PublishRequest, dataset: HubDataset, operations: Operations) -> None:
    total = sum(operation.upload_info.size for operation in operations.additions)
    with tqdm(total=total, unit="B", unit_scale=True, desc="sending", leave=False) as bar:
        for batch in operations.batches():
            try:
                dataset.send(batch, request.branch, create_pr=request.create_pr, jobs=request.jobs)
            except HubError as error:
                raise InputError(
                    f"{error.message}; {_NOTHING}, and files that have arrived are not sent again",
                    source=request.repository,
                ) from None
            bar.update(sum(operation.upload_info.size for operation in batch))


def _looked_up(
    request: PublishRequest,
    dataset: HubDataset,
    local: Mapping[str, LocalFile],
    before: RepositoryState,
    failure: HubError,
) -> str | None:
    """The commit with the files, if it was made after all; None if nothing has changed."""
    if not (failure.may_be_done or failure.is_conflict):
        return None
    try:
        now = dataset.state(request.branch)
    except HubError as error:
        raise InputError(
            f"{error.message}; whether the commit was made is not known: give the command again",
            source=request.repository,
        ) from None
    if now.head == before.head:
        return None
    if now.head is not None and make_plan(local, now.files).is_empty:
        return now.head
    raise InputError(
        f"somebody else has changed {request.branch!r} meanwhile; {_NOTHING}: look at the "
        "change, and give the command again",
        source=request.repository,
    )
