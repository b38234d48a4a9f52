"""Reviews a pull request of the submissions dataset on the Hub.

    python -m leaderboard.review NUMBER [--repo-id OWNER/NAME] [--dataset DATASET]
                                 [--output DIR] [--comment] [--merge]

Fetches what the pull request adds, revalidates it, and writes the verdict to
the output folder. `--comment` posts the verdict, `--merge` merges an accepted
submission. Nothing of the pull request is executed. The exit status is 0 if the
submission is accepted, 1 if it is refused, 2 if it cannot be judged.
"""

from __future__ import annotations

import argparse
import re
import secrets
import shutil
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from leaderboard.comment import comment
from leaderboard.document import document_text, refused
from leaderboard.packing import path_of
from leaderboard.revalidate import COMMENT, EXECUTED, REVALIDATION, revalidate
from leaderboard.submission import Refusal
from verilocc_bench.dataset.hub_requests import ask, ask_once
from verilocc_bench.errors import InputError
from verilocc_bench.files import opened_to_write, write_atomically
from verilocc_bench.settings.flags import at_least

KIND = "dataset"
SUBMISSION_FOLDER = "submission"
LIMIT_BYTES = 4 << 30
_PATH = re.compile(
    r"(submissions/[a-z0-9-]{1,80}/[a-z0-9-]{1,80})/"
    r"(submission\.yaml|README\.md|answers\.jsonl|answers\.jsonl\.gz)",
    re.ASCII,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.review", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("number", type=int, help="the pull request")
    add("--repo-id", default="verilocc/submissions", help="the submissions dataset")
    add("--dataset", help="a copy of the board's dataset (default: its name on the Hub, or mini)")
    add("--revision", help="a branch, tag or commit of it on the Hub")
    add("--output", type=Path, help="where results go (default: reviews/ and the number)")
    add("--jobs", type=at_least(int, 1), default=1, help="processes (default: 1)")
    add("--comment", action="store_true", help="say the verdict in the pull request")
    add("--merge", action="store_true", help="merge it, if it is taken")
    options = parser.parse_args(arguments)
    output = options.output or Path("reviews", str(options.number))
    try:
        document = review(
            options.repo_id,
            options.number,
            output,
            dataset=options.dataset,
            revision=options.revision,
            jobs=options.jobs,
        )
        print((output / COMMENT).read_text("utf-8"), end="")
        _answer(options, document, (output / COMMENT).read_text("utf-8"))
    except (InputError, OSError) as error:
        print(f"review: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("review: interrupted; the same command goes on", file=sys.stderr)
        return 130
    return 0 if document["accepted"] else 1


def review(
    repository: str,
    number: int,
    output: Path,
    *,
    dataset: str | None = None,
    revision: str | None = None,
    jobs: int = 1,
) -> dict[str, Any]:
    """The verdict on a pull request; it is written to `output` with the files that were added."""
    commit = _head(repository, number)
    author = _author(repository, number)
    source = {"repository": repository, "number": number, "commit": commit, "author": author}
    files, refusals = _added(repository, commit)
    if not refusals:
        folder = output / SUBMISSION_FOLDER
        shutil.rmtree(folder, ignore_errors=True)
        _fetch(repository, commit, files, folder)
        document = revalidate(
            folder,
            output,
            dataset=dataset,
            revision=revision,
            jobs=jobs,
            execute=EXECUTED,
            execute_seed=secrets.token_hex(8),
        )
        there = next(iter(files)).rsplit("/", 1)[0]
        due = (
            path_of(document["submission"]["name"], document["board"]["name"])
            if (document["accepted"])
            else there
        )
        if there == due:
            document["source"] = source
            write_atomically(output / REVALIDATION, document_text(document))
            return document
        refusals = [Refusal("path", f"expected the submission under {due}", there)]
    document = refused(None, None, refusals, {}) | {"source": source}
    write_atomically(output / COMMENT, comment(document))
    write_atomically(output / REVALIDATION, document_text(document))
    return document


def _head(repository: str, number: int) -> str:
    """The head of a pull request now: the review is of this commit, whatever comes after."""
    from huggingface_hub import HfApi

    info = partial(HfApi().repo_info, repository, repo_type=KIND, revision=f"refs/pr/{number}")
    return str(ask(repository, info).sha)


def _author(repository: str, number: int) -> str:
    """Whose pull request it is: the one word about an entry's origin that is not its own."""
    from huggingface_hub import HfApi

    details = partial(HfApi().get_discussion_details, repository, number, repo_type=KIND)
    return str(ask(repository, details).author)


def _base(repository: str, commit: str) -> str:
    """The latest commit that a pull request has in common with the main branch."""
    from huggingface_hub import HfApi

    def commits(revision: str) -> list[str]:
        listed = partial(HfApi().list_repo_commits, repository, repo_type=KIND, revision=revision)
        return [each.commit_id for each in ask(repository, listed)]

    ours = set(commits("main"))
    found = next((each for each in commits(commit) if each in ours), None)
    if found is None:
        raise InputError("the pull request has no commit in common with main", source=repository)
    return found


def _added(repository: str, commit: str) -> tuple[dict[str, int], list[Refusal]]:
    """The files that a pull request adds, with sizes, and why it does more than submit."""
    before = _files(repository, _base(repository, commit))
    after, now = _files(repository, commit), _files(repository, "main")
    added = {path: size for path, (_, size) in after.items() if path not in before}
    refusals = []
    touched = [path for path in before if after.get(path) != before[path]]
    if touched:
        message = f"{len(touched)} files that are there are changed or deleted"
        refusals.append(Refusal("path", message, touched[0]))
    taken = [path for path in added if path in now]
    if taken:
        message = f"{len(taken)} files are there already, since it was opened"
        refusals.append(Refusal("path", message, taken[0]))
    strange = [path for path in added if not _PATH.fullmatch(path)]
    if strange:
        message = (
            f"{len(strange)} files are not of the form submissions/BOARD/NAME/ with "
            "submission.yaml, answers.jsonl or answers.jsonl.gz, README.md"
        )
        refusals.append(Refusal("path", message, strange[0]))
    folders = {found[1] for path in added if (found := _PATH.fullmatch(path))}
    if len(folders) != 1:
        message = f"expected one submission in a pull request, not {len(folders)}"
        refusals.append(Refusal("path", message, "submissions"))
    if sum(added.values()) > LIMIT_BYTES:
        message = f"{sum(added.values()):,} bytes, more than the {LIMIT_BYTES:,} accepted"
        refusals.append(Refusal("path", message, "submissions"))
    return added, refusals


def _files(repository: str, revision: str) -> dict[str, tuple[str, int]]:
    """All files of a revision with the identity of their content and their size."""
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoFile

    list_tree = partial(
        HfApi().list_repo_tree, repository, repo_type=KIND, revision=revision, recursive=True
    )
    entries = ask(repository, lambda: list(list_tree()))
    return {
        entry.path: (entry.blob_id if entry.lfs is None else entry.lfs.sha256, entry.size)
        for entry in entries
        if isinstance(entry, RepoFile)
    }


def _fetch(repository: str, commit: str, files: dict[str, int], folder: Path) -> None:
    """Copies the files without their paths, which were checked before."""
    from huggingface_hub import HfApi

    folder.mkdir(parents=True)
    for path in files:
        fetch = partial(
            HfApi().hf_hub_download,
            repository,
            path,
            repo_type=KIND,
            revision=commit,
        )
        name = path.rsplit("/", 1)[1]
        with (
            Path(ask(repository, fetch)).open("rb") as found,
            opened_to_write(folder / name) as copy,
        ):
            shutil.copyfileobj(found, copy, 1 << 20)


def _answer(options: argparse.Namespace, document: dict[str, Any], text: str) -> None:
    from huggingface_hub import HfApi

    api, repository, number = HfApi(), options.repo_id, options.number
    if options.comment:
        say = partial(api.comment_discussion, repository, number, text, repo_type=KIND)
        ask_once(repository, say)
    if options.merge and document["accepted"]:
        if _head(repository, number) != document["source"]["commit"]:
            raise InputError("it was changed meanwhile, and is not merged", source=repository)
        ask_once(repository, partial(api.merge_pull_request, repository, number, repo_type=KIND))


if __name__ == "__main__":
    sys.exit(main())
