"""`verilocc-bench publish`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataset_builders.publishing.plan import Publication, PublishRequest, UploadPlan


def run(options: argparse.Namespace) -> int:
    """Publishes a dataset folder on the Hub, and says what changed there."""
    from dataset_builders.publishing.plan import PublishRequest
    from dataset_builders.publishing.publish import publish_dataset

    request = PublishRequest(
        folder=options.folder,
        repository=options.repo_id,
        branch=options.revision,
        message=options.message,
        private=options.private,
        create_pr=options.create_pr,
        dry_run=options.dry_run,
        tag=options.tag,
        jobs=options.jobs,
    )
    publication = publish_dataset(request)
    for line in _would_change(publication) if request.dry_run else _changed(request, publication):
        print(line)
    return 0


def _would_change(publication: Publication) -> Iterator[str]:
    plan = publication.plan
    if publication.created:
        yield f"create  {publication.address}"
    yield from (f"add     {file.path}  {file.size_bytes:,} bytes" for file in plan.added)
    yield from (f"change  {file.path}  {file.size_bytes:,} bytes" for file in plan.changed)
    yield from (f"delete  {path}" for path in plan.deleted)
    yield f"{_counts(plan)}; {plan.sent_bytes:,} bytes to send; nothing was sent (--dry-run)"


def _changed(request: PublishRequest, publication: Publication) -> Iterator[str]:
    plan = publication.plan
    if plan.is_empty:
        yield f"nothing to publish: {publication.address} holds these {plan.unchanged} files"
    else:
        yield f"published: {publication.address} ({_counts(plan)})"
    if publication.pull_request is not None:
        yield f"pull request: {publication.pull_request}"
    yield f"commit: {publication.commit}"
    if request.tag is not None:
        yield f"tag: {request.tag}"


def _counts(plan: UploadPlan) -> str:
    return (
        f"files: {len(plan.added)} new, {len(plan.changed)} changed, {len(plan.deleted)} deleted, "
        f"{plan.unchanged} unchanged"
    )
