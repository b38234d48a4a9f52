"""Results of revalidated submissions in the forms that the Hugging Face Hub reads.

    python -m leaderboard.hub_results ENTRIES --model OWNER/NAME --page URL

It writes `.eval_results/verilocc-bench.yaml` for the model's repository, with
the results of all entries whose link `model` leads there. These must have the
same authors: anybody may link to a model. `--page` is the leaderboard's
address, so that a reader can look up how the results were found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leaderboard.boards import boards
from leaderboard.rendering.entries import BoardEntry, read_entries
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.hub_results import Source, eval_results_yaml
from verilocc_bench.files import write_output

HUB = "https://huggingface.co/"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.hub_results", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    add("entries", type=Path, help="a folder of revalidated submissions (*.json, however deep)")
    add("--model", required=True, metavar="OWNER/NAME", help="the model that has the results")
    add("--entry", action="append", metavar="NAME", help="only this entry; may be given again")
    add("--board", default=boards()[0].name, help="default: %(default)s")
    add("--dataset-id", metavar="OWNER/NAME", help="the dataset's id on the Hub (default: its own)")
    add("--revision", help="the commit of the dataset on the Hub")
    add("--page", metavar="URL", help="where the leaderboard is")
    add("-o", "--output", type=Path, metavar="FILE", help="write there")
    options = parser.parse_args(arguments)
    try:
        text = hub_results(
            options.entries,
            board=options.board,
            model=options.model,
            names=options.entry,
            dataset_id=options.dataset_id,
            revision=options.revision,
            page=options.page,
        )
        write_output(options.output, text)
    except (InputError, OSError) as error:
        print(f"hub_results: {error}", file=sys.stderr)
        return 2
    return 0


def hub_results(
    folder: Path,
    *,
    board: str,
    model: str,
    names: Sequence[str] | None = None,
    dataset_id: str | None = None,
    revision: str | None = None,
    page: str | None = None,
) -> str:
    """The text of a file for the Hub. Raises InputError if no entry concerns the model."""
    if not folder.is_dir():
        raise InputError("expected a folder of revalidated submissions", source=folder)
    entries = [
        entry
        for entry in read_entries(folder)
        if entry.board == board and (names is None or entry.submission["name"] in names)
    ]
    entries = [
        entry
        for entry in entries
        if entry.submission["links"].get("model", "").rstrip("/") == HUB + model
    ]
    if names is None and len(entries) > 1:  # whose they are, their words do not tell
        known = [entry.submission for entry in entries]
        found = "; ".join(f"{each['name']!r} of {', '.join(each['authors'])}" for each in known)
        message = f"several entries link to {model}, choose with --entry: {found}"
        raise InputError(message, source=folder)
    if not entries:
        message = f"no entry of the board {board!r} links {HUB}{model} as its model"
        raise InputError(message, source=folder)
    documents = {entry.submission["name"]: _as_results(entry, model, revision) for entry in entries}
    source = None if page is None else Source("verilocc-bench leaderboard", page)
    return eval_results_yaml(documents, dataset_id, source)


def _as_results(entry: BoardEntry, model: str, revision: str | None) -> dict[str, Any]:
    """A document of revalidation in the form of results.json, with the keys that the Hub needs."""
    document, submission, board = entry.document, entry.submission, entry.document["board"]
    architectures = {task.split("/")[0] for task in document["results"]} - {"overall"}
    whole = next(each for each in boards() if each.name == board["name"]).functions
    return {
        "config": {
            "model": model,
            "arch": None if len(entry.kernels) == whole else sorted(architectures),
            "family": None,
            "limit": board.get("limit"),
            "budget": "full",
            "track": board["track"],
            "split": board["split"],
            "assistance": submission["assistance"],
            "decoding": submission["decoding"],
            "samples": submission["samples"],
            "prompt": None,
        },
        "dataset": {"name": board["dataset"], "revision": revision, "hash": board["hash"]},
        "results": document["results"],
        "versions": document["versions"],
        "date": None,
    }


if __name__ == "__main__":
    sys.exit(main())
