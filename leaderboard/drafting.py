"""Drafts a submission from a run of `evaluate`; people add what the run does not know."""

from __future__ import annotations

import re
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from leaderboard.boards import boards
from leaderboard.examining import examine
from leaderboard.folder import ANSWERS, SUBMISSION, answers_file, check_folder, read_small
from leaderboard.measured import answer_hash
from leaderboard.shown_text import NAME
from leaderboard.strict_yaml import LIMIT_BYTES as YAML_BYTES
from leaderboard.strict_yaml import parse_yaml
from leaderboard.submission import CLAIMED, FORMAT
from verilocc_bench.edits.answer_files import read_answer
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import allocator_label, settings_kind
from verilocc_bench.evaluation.gpu_measurement import read_measurement
from verilocc_bench.evaluation.models.predictions import LIMIT_BYTES
from verilocc_bench.evaluation.results import RESULTS
from verilocc_bench.evaluation.schema import read_results
from verilocc_bench.files import MIB, decode_text, open_input, opened_to_write, write_atomically
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.flags import flag_of
from verilocc_bench.settings.language_model import AUTOMATIC
from verilocc_bench.settings.prompt_formats import AUTO

TO_FILL_IN = ("authors", "contact", "training_data", "hardware")
"""Keys that people must fill in; the name, too, where the model's name cannot stand for it."""

HEAD = """\
# What each field means: docs/leaderboard.md. These are to be filled in:
authors: []
contact:
training_data:
hardware:
# Of the answers, not of the model:
licence: apache-2.0
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


def add_measurements(
    folder: Path, measurements: Sequence[Path], dataset: str | None, revision: str | None
) -> int:
    """Adds what `measure` read back to a submission, as figures that nobody has verified.

    Returns how many there are. Raises InputError for a folder without results, and if the
    submission, with them, would be refused: each is of one of its answers.
    """
    if not folder.is_dir():
        raise InputError("expected the folder of a submission", source=folder)
    check_folder(folder)
    place = folder / SUBMISSION
    data = read_small(place, YAML_BYTES)
    document, text = parse_yaml(data, place), decode_text(data, place)
    if isinstance(document, dict) and "measured" in document:
        raise InputError("there are measured figures already: take them out first", source=place)
    figures = [figure for path in measurements for figure in _measured_figures(path)]
    added = text.rstrip("\n") + "\n" + yaml.safe_dump({"measured": figures}, sort_keys=False)
    with tempfile.TemporaryDirectory(prefix="verilocc-bench-") as temporary:
        trial = Path(temporary, "submission")
        answers = answers_file(folder)
        write_atomically(trial / SUBMISSION, added)
        write_atomically(trial / answers.name, answers.read_bytes())
        found = examine(trial, Path(temporary, "work"), dataset, revision, own=True)
    found.check(folder)
    write_atomically(place, added)
    return len(figures)


def _measured_figures(folder: Path) -> Iterator[dict[str, Any]]:
    found = read_measurement(folder).figures()
    if not found:
        raise InputError("no answer was timed: `verilocc-bench measure` says why", source=folder)
    for known in found:
        times = known["median_milliseconds"]
        _, answer = read_answer(folder / known["answer"])
        yield {
            "id": known["id"],
            "answer_sha256": answer_hash(known["id"], answer),
            "against": known["names"][1],
            **{key: known[key] for key in ("device", "driver_version", "grid", "rounds")},
            "milliseconds": times["answer"],
            "against_milliseconds": times["other"],
            **{key: known[key] for key in ("ratio", "ratio_low", "ratio_high", "same_bits")},
        }


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


def command_of(document: Mapping[str, Any]) -> str:
    """The command that makes a run again, but for `--output-path`."""
    config = document["config"]
    words = ["verilocc-bench", "evaluate", "--model", config["model"]]
    words += ["--dataset", document["dataset"]["name"]]
    if config["track"] != "assign":
        words += ["--track", config["track"]]
    if config["limit"] is not None:
        words += ["--limit", str(config["limit"])]
    if config["arch"]:
        words += ["--arch", ",".join(config["arch"])]
    if config["samples"] > 1:
        words += ["--samples", str(config["samples"]), "--k", ",".join(map(str, config["k"]))]
    if document["seed"]:
        words += ["--seed", str(document["seed"])]
    known = dict(config["options"])
    if config["prompt"] is not None:  # a language model, whose own default may be another
        known |= {"decoding": config["decoding"], "few_shot": config["prompt"]["few_shot"]}
        known["prompt_format"] = config["prompt"]["format"]
    for each in fields(settings_kind(config["model"])):
        value = known.get(each.name)
        if value is None or value == each.default:
            continue
        flag = flag_of(each)
        if isinstance(value, bool):
            words.append(flag.name if value else flag.name.replace("--", "--no-", 1))
        else:
            automatic = each.name == "batch_size" and value == AUTOMATIC
            words += [flag.name, AUTO if automatic else str(value)]
    return shlex.join(words)


def name_of(label: str) -> str:
    """A name for an entry: the model's name or its last part; empty if neither can stand."""
    for name in (label, re.split("[/:]", label)[-1]):
        if NAME.fullmatch(name):
            return name
    return ""


def _fields(document: dict[str, Any], run: Path) -> dict[str, Any]:
    config, digest = document["config"], document["dataset"]["hash"]
    known = [each for each in boards() if (each.hash, each.track) == (digest, config["track"])]
    boards_of_limit = [each for each in known if each.limit == config["limit"]]
    if not known:
        names = ", ".join(f"{board.dataset} ({board.hash[:16]}…)" for board in boards())
        raise InputError(
            f"this run is of no board's dataset ({digest[:16]}…); boards: {names}", source=run
        )
    if not boards_of_limit:
        limits = ", ".join(f"--limit {each.limit}" for each in known if each.limit is not None)
        only = f"; boards have {limits}" if limits else ""
        raise InputError(f"this run is of part of the board (--limit){only}", source=run)
    if config["family"] is not None:
        raise InputError("this run is of part of the board (--family)", source=run)
    if config["budget"] != "full":
        raise InputError("this run is at another budget (--budget)", source=run)
    # evaluate measures the first valid sample of several, the leaderboard the middle one.
    named = [key for key in CLAIMED if config["samples"] == 1 or key.startswith("pass@")]
    claims = {
        task: {key: record[key] for key in named if record.get(key) is not None}
        for task, record in document["results"].items()
    }
    overall = document["results"]["overall"]
    guided = config["decoding"] == Decoding.GUIDED
    found = {
        "name": name_of(allocator_label(config)),
        "command": command_of(document),
        "date": document["date"][:10],
        "format": FORMAT,
        "dataset": boards_of_limit[0].dataset,
        "dataset_hash": digest,
        "track": config["track"],
        "limit": config["limit"],
        "architectures": config["arch"],
        "assistance": config["assistance"],
        "decoding": config["decoding"],
        "samples": config["samples"],
        "verifier_calls": config["options"].get("verifier_calls") if guided else 1,
        "prompt_tokens": overall["totals"].get("prompt_tokens"),
        "completion_tokens": overall["totals"].get("completion_tokens"),
        "cost": overall.get("cost"),
        "claims": claims,
    }
    return {key: value for key, value in found.items() if value is not None}
