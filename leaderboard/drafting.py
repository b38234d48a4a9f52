"""Drafts a submission from a run of `evaluate`; people add what the run does not know."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import yaml

from leaderboard.boards import boards
from leaderboard.folder import ANSWERS, SUBMISSION
from leaderboard.submission import CLAIMED, FORMAT
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.models.predictions import LIMIT_BYTES
from verilocc_bench.evaluation.results import RESULTS
from verilocc_bench.evaluation.schema import read_results
from verilocc_bench.files import MIB, open_input, opened_to_write, write_atomically
from verilocc_bench.settings.allocator import Decoding

TO_FILL_IN = ("name", "authors", "contact", "training_data", "hardware", "licence", "command")
"""Keys that people must fill in."""

HEAD = """\
# What each field means: docs/leaderboard.md. These are to be filled in:
name:
authors: []
contact:
training_data:
hardware:
licence: apache-2.0
command:
# parameters, base, description and links may be added. The rest is from the run.
"""


def draft(run: Path, folder: Path) -> None:
    """Writes the answers of a run and a submission.yaml to a new folder.

    Raises InputError for a run that does not answer a whole board, and for a
    folder that exists.
    """
    if folder.exists():
        raise InputError("exists already: expected a new folder to write to", source=folder)
    document = read_results(run / RESULTS)
    answers = run / ANSWERS[0]
    if not answers.is_file():
        raise InputError(f"there is no {ANSWERS[0]}: expected the folder of a run", source=run)
    text = yaml.safe_dump(_fields(document, run), sort_keys=False)
    _check_complete(document, answers, run)
    folder.mkdir(parents=True)
    with answers.open("rb") as found, opened_to_write(folder / ANSWERS[0]) as copy:
        shutil.copyfileobj(found, copy, 1 << 20)
    write_atomically(folder / SUBMISSION, HEAD + text)


def _check_complete(document: dict[str, Any], answers: Path, run: Path) -> None:
    """Raises InputError if samples of the run are missing."""
    overall = document["results"]["overall"]
    failures, due = overall["infrastructure_failures"], overall["samples"]
    if failures:
        message = f"{failures:,} samples are missing for infrastructure failures"
        raise InputError(f"{message}: run evaluate again, it goes on", source=run)
    with open_input(answers, LIMIT_BYTES) as file:
        pieces = iter(lambda: file.read(MIB), b"")
        lines = sum(piece.count(b"\n") for piece in pieces)
    if lines != due:
        message = f"{lines:,} lines for {due:,} samples: run evaluate again, it goes on"
        raise InputError(message, source=answers)


def _fields(document: dict[str, Any], run: Path) -> dict[str, Any]:
    config, digest = document["config"], document["dataset"]["hash"]
    known = [each for each in boards() if (each.hash, each.track) == (digest, config["track"])]
    if not known:
        names = ", ".join(f"{board.dataset} ({board.hash[:16]}…)" for board in boards())
        raise InputError(
            f"this run is of no board's dataset ({digest[:16]}…); boards: {names}", source=run
        )
    for key in ("limit", "family"):
        if config[key] is not None:
            raise InputError(f"this run is of part of the board (--{key})", source=run)
    if config["budget"] != "full":
        raise InputError("this run is at another budget (--budget)", source=run)
    # evaluate measures the first valid sample of several, the leaderboard the middle one.
    named = [key for key in CLAIMED if config["samples"] == 1 or key.startswith("pass@")]
    claims = {
        task: {key: record[key] for key in named if record.get(key) is not None}
        for task, record in document["results"].items()
    }
    guided = config["decoding"] == Decoding.GUIDED
    fields = {
        "format": FORMAT,
        "dataset": known[0].dataset,
        "dataset_hash": digest,
        "track": config["track"],
        "architectures": config["arch"],
        "assistance": config["assistance"],
        "decoding": config["decoding"],
        "samples": config["samples"],
        "verifier_calls": config["options"].get("verifier_calls") if guided else 1,
        "claims": claims,
    }
    return {key: value for key, value in fields.items() if value is not None}
