"""Makes a dataset's repository on the Hub hold a folder's files, in one commit.

Contents are sent first. The Hub keeps large files, so an interrupted
publication goes on. Then one commit adds, changes and deletes everything, if
the branch is still where it was when it was compared; before that nothing is
visible. At last the commit is read back and compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from dataset_builders.publishing.committing import Committed, send_and_commit
from dataset_builders.publishing.contents import LocalFile, published_files
from dataset_builders.publishing.hub_dataset import HubDataset, RepositoryState
from dataset_builders.publishing.plan import MAIN, Publication, PublishRequest, make_plan
from verilocc_bench.dataset.hub_requests import HubError, quiet
from verilocc_bench.errors import InputError


def publish_dataset(request: PublishRequest) -> Publication:
    """Publishes a folder that passes its check; a dry run only says what would change.

    Raises InputError for a folder that does not pass, for a request that
    contradicts the repository, and if the Hub cannot be reached or refuses.
    The branch is then unchanged, unless the message says otherwise.
    """
    dataset = HubDataset(request.repository)
    if not request.dry_run:
        dataset.require_token()
    with _undisturbed():
        # Errors of the request should show before a check that takes minutes.
        _check_state(request, dataset.state(request.branch))
    _check_folder(request)
    with published_files(request.folder, request.repository) as local, _undisturbed():
        state = dataset.state(request.branch)
        _check_state(request, state)
        if request.dry_run:
            plan = make_plan(local, state.files)
            return Publication(plan, dataset.address, None, None, not state.exists)
        return _publish(request, dataset, local, state)


def _check_state(request: PublishRequest, state: RepositoryState) -> None:
    if request.private and state.exists and not state.private:
        raise InputError(
            "it is public on the Hub, and publishing never changes that: leave out --private, "
            "or make it private there",
            source=request.repository,
        )


def _check_folder(request: PublishRequest) -> None:
    from dataset_builders.inspection.check import check_dataset

    report = check_dataset(request.folder.resolve(), jobs=request.jobs)
    if not report.passed:
        raise InputError(
            f"does not pass its check; findings: {len(report.findings)}, the first: "
            f"{report.findings[0]} (all: verilocc-bench dataset check {request.folder})",
            source=request.folder,
        )


def _publish(
    request: PublishRequest,
    dataset: HubDataset,
    local: Mapping[str, LocalFile],
    found: RepositoryState,
) -> Publication:
    state = _prepared(request, dataset, found)
    plan = make_plan(local, state.files)
    # A release never moves.
    tagged = None if request.tag is None else state.tags.get(request.tag)
    if tagged is not None and (not plan.is_empty or tagged != state.head):
        raise InputError(
            f"the tag {request.tag!r} names another commit already, and is not moved; "
            "nothing was published",
            source=request.repository,
        )
    assert state.head is not None
    made: Committed = (state.head, None)
    if not plan.is_empty:
        made = send_and_commit(request, dataset, plan, local, state)
        commit = made[0]
        # A .gitignore, for one, leaves files out.
        rest = make_plan(local, {file.path: file for file in dataset.files(commit)})
        if not rest.is_empty:
            first = [*(file.path for file in rest.sent), *rest.deleted][0]
            raise InputError(
                f"the commit {commit} was made, but does not hold the folder's files: {first!r} "
                "is not what was sent (does a .gitignore there name it?)",
                source=request.repository,
            )
    _tag(request, dataset, state, made[0])
    return Publication(plan, dataset.address, *made, created=not found.exists)


def _prepared(
    request: PublishRequest, dataset: HubDataset, state: RepositoryState
) -> RepositoryState:
    """The state after the repository and the branch were made, if they did not exist."""
    if not state.exists:
        dataset.create(private=request.private)
        state = dataset.state(request.branch)
    if state.head is None:
        if state.start is None:
            reason = f"there is no branch {MAIN!r} to begin from"
            raise InputError(reason, source=request.repository)
        dataset.create_branch(request.branch, state.start)
        state = dataset.state(request.branch)
    return state


def _tag(request: PublishRequest, dataset: HubDataset, state: RepositoryState, commit: str) -> None:
    if request.tag is None or request.tag in state.tags:
        return
    try:
        dataset.tag(request.tag, commit)
    except HubError as error:
        raise InputError(
            f"published as commit {commit}, but not tagged: {error.message}; "
            "give the command again to tag it",
            source=request.repository,
        ) from None


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Silences the client's log lines and warnings, which quote servers, and its many bars."""
    import huggingface_hub
    from huggingface_hub.utils.tqdm import (
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    had_bars = not are_progress_bars_disabled()
    with warnings.catch_warnings(), quiet(huggingface_hub):
        warnings.simplefilter("ignore")
        disable_progress_bars()
        try:
            yield
        finally:
            if had_bars:
                enable_progress_bars()
