"""`verilocc-bench submit`."""

from __future__ import annotations

import argparse

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
    from leaderboard.packing import packed
    from leaderboard.submitting import open_pull_request, write_folder

    with packed(options.folder, options.dataset, options.revision) as package:
        for path, file in package.files.items():
            print(f"{path}  {file.stat().st_size:,} bytes")
        if options.dry_run:
            print("the submission is whole; nothing was sent (--dry-run)")
        elif options.output is not None:
            print(f"written: {write_folder(package, options.output)}")
        else:
            print(f"pull request: {open_pull_request(package, options.repo_id)}")
    return 0


def _draft(options: argparse.Namespace) -> int:
    from leaderboard.drafting import TO_FILL_IN, draft

    if options.dry_run or options.output is not None:
        raise InputError("--from-run writes a new folder: without --dry-run and --output")
    draft(options.from_run, options.folder)
    print(f"begun: {options.folder}/submission.yaml; to be filled in: {', '.join(TO_FILL_IN)}")
    print(f"then: verilocc-bench submit {options.folder} --dry-run")
    return 0
