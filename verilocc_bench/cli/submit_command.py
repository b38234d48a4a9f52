"""`verilocc-bench submit`."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from verilocc_bench.errors import InputError


def run(options: argparse.Namespace) -> int:
    """Begins a submission from a run; or checks one and sends it."""
    try:
        return _run(options)
    except OSError as error:
        if error.filename is None:
            raise
        raise InputError(f"{error.strerror}", source=str(error.filename)) from None


def _run(options: argparse.Namespace) -> int:
    if options.from_run is not None:
        return _draft(options)
    if options.measured:
        return _add_measured(options)
    from leaderboard.packing import packed
    from leaderboard.submitting import open_pull_request, write_folder

    with packed(options.folder, options.dataset, options.revision) as package:
        for path, file in package.files.items():
            print(f"{path}  {file.stat().st_size:,} bytes")
        if options.dry_run:
            return _dry_run(options)
        if options.output is not None:
            print(f"written: {write_folder(package, options.output)}")
        else:
            print(f"pull request: {open_pull_request(package, options.repo_id)}")
    return 0


def _dry_run(options: argparse.Namespace) -> int:
    """Verifies every answer as a reviewer does, and holds the claims against what is found.

    The status is 1 if a claim is false, or the submission is refused.
    """
    from leaderboard.revalidate import revalidate

    with tempfile.TemporaryDirectory(prefix="verilocc-bench-") as output:
        document = revalidate(
            options.folder, Path(output), dataset=options.dataset, revision=options.revision
        )
    for refusal in document["refusals"]:
        print(f"would be refused: {refusal['place']}: {refusal['message']}")
    claims = document.get("claims", [])
    wrong = [claim for claim in claims if not claim["same"]]
    for claim in wrong:
        place = f"{claim['task']}, {claim['figure']}"
        print(f"claimed of {place}: {claim['claimed']}; found: {claim['found']}")
    for mark in document.get("marks", []):
        print(f"would be marked: {mark['message']}")
    print(f"{len(claims) - len(wrong)} of {len(claims)} claims are what was found")
    print("the submission is whole; nothing was sent (--dry-run)")
    return int(bool(wrong) or not document["accepted"])


def _draft(options: argparse.Namespace) -> int:
    from leaderboard.drafting import TO_FILL_IN, draft

    if options.dry_run or options.output is not None or options.measured:
        message = "--from-run writes a new folder: without --dry-run, --output and --measured"
        raise InputError(message)
    draft(options.from_run, options.folder)
    print(f"begun: {options.folder}/submission.yaml; to be filled in: {', '.join(TO_FILL_IN)}")
    print(f"then: verilocc-bench submit {options.folder} --dry-run")
    return 0


def _add_measured(options: argparse.Namespace) -> int:
    from leaderboard.drafting import add_measurements
    from leaderboard.measured import UNVERIFIED

    if options.dry_run or options.output is not None:
        raise InputError("--measured writes to submission.yaml: without --dry-run and --output")
    count = add_measurements(options.folder, options.measured, options.dataset, options.revision)
    print(f"added to {options.folder}/submission.yaml: {count} figures, {UNVERIFIED}")
    return 0
