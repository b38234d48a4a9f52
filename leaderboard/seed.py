"""Makes the leaderboard's own entries: every baseline and reference model of seeds.yaml.

    python -m leaderboard.seed --dataset DATASET [--board BOARD] [--only NAME] [--jobs N]

Each is evaluated, made a submission and revalidated as anybody's is. The
documents go to leaderboard/entries/BOARD/, runs and submissions to a folder of
work, from which an interrupted run goes on. Answers of a model go beside its
document, as they take long to make again. What cannot be made (a board whose
kernels DATASET lacks, a model without its package or GPU) is named; the rest is made.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import yaml

from leaderboard.boards import Board, BoardCopy, boards
from leaderboard.document import document_text
from leaderboard.drafting import draft
from leaderboard.folder import ANSWERS, SUBMISSION
from leaderboard.packing import path_of
from leaderboard.revalidate import revalidate
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.settings.flags import at_least

ENTRIES = Path(__file__).with_name("entries")
WORK = Path("results", "leaderboard")


@dataclass(frozen=True, slots=True)
class Seed:
    """One entry to make: its name, evaluate's arguments, and what people say of a submission.

    `architectures` is None if all are answered, `boards` if it is on all boards
    of its track.
    """

    name: str
    track: str
    arguments: tuple[str, ...]
    architectures: tuple[str, ...] | None
    boards: tuple[str, ...] | None
    fields: Mapping[str, Any]

    def is_of(self, board: Board) -> bool:
        """True if the entry is on a board."""
        return self.track == board.track and (self.boards is None or board.name in self.boards)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.seed", description=(__doc__ or "").splitlines()[0]
    )
    add = parser.add_argument
    names = [board.name for board in boards()]
    add("--dataset", help="a copy of the boards' dataset (default: its name on the Hub)")
    add("--board", action="append", choices=names, help="only this board; may be given again")
    add("--only", action="append", metavar="NAME", help="only this entry; may be given again")
    add("--jobs", type=at_least(int, 1), default=1, help="processes (default: 1)")
    add(
        "--machine-code",
        type=int,
        default=0,
        metavar="N",
        help="functions whose answers are counted as machine code (default: none)",
    )
    add("--work", type=Path, default=WORK, help="where runs are kept (default: %(default)s)")
    add("--output", type=Path, default=ENTRIES, help="where entries go (default: %(default)s)")
    options = parser.parse_args(arguments)
    unknown = set(options.only or ()) - {each.name for each in seeds()}
    try:
        if unknown:
            raise InputError(f"no entry of seeds.yaml is named {min(unknown)!r}")
        chosen = list(_chosen(options))
        if not chosen:
            raise InputError("no such entry is of these boards")
        made = [
            _made(board, [each for _, each in group], options)
            for board, group in itertools.groupby(chosen, key=itemgetter(0))
        ]
        return 0 if all(made) else 2
    except InputError as error:
        print(f"seed: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("seed: interrupted; the same command goes on", file=sys.stderr)
        return 130


def _made(board: Board, entries: Sequence[Seed], options: argparse.Namespace) -> bool:
    """Makes a board's entries, and names those that cannot be made; True if all are made."""
    copy = board.copy_in(options.dataset)
    if not board.is_embedded and options.dataset is not None:
        try:
            BoardCopy(board, copy).rows()
        except InputError as error:
            print(f"seed: {board.name} is left out: {error}", file=sys.stderr)
            return False
    made = 0
    for each in entries:
        try:
            document = seed(
                each,
                board,
                copy,
                options.work,
                jobs=options.jobs,
                machine_code=options.machine_code,
            )
        except InputError as error:
            print(f"seed: {board.name}: {error}", file=sys.stderr)
            continue
        name = Path(path_of(each.name, board.name)).name
        path = options.output / board.name / f"{name}.json"
        write_atomically(path, document_text(document))
        if "parameters" in each.fields:
            answers = options.work / board.name / each.name / "submission" / ANSWERS[0]
            packed = gzip.compress(answers.read_bytes(), mtime=0)
            write_atomically(path.with_suffix(f".{ANSWERS[1]}"), packed)
        print(f"written: {path}", file=sys.stderr)
        made += 1
    return made == len(entries)


def _chosen(options: argparse.Namespace) -> Iterator[tuple[Board, Seed]]:
    for board in boards():
        if options.board is None or board.name in options.board:
            for each in seeds():
                if each.is_of(board) and (not options.only or each.name in options.only):
                    yield board, each


def seeds() -> tuple[Seed, ...]:
    """All entries of seeds.yaml, in its order."""
    document = yaml.safe_load(Path(__file__).with_name("seeds.yaml").read_text("utf-8"))
    found = []
    for each in document["entries"]:
        fields = {**document["common"], **each}
        architectures, own = fields.pop("architectures", None), fields.pop("boards", None)
        found.append(
            Seed(
                fields["name"],
                fields.pop("track", "assign"),
                tuple(shlex.split(fields.pop("arguments", f"--model {each['name']}"))),
                None if architectures is None else tuple(architectures),
                None if own is None else tuple(own),
                fields,
            )
        )
    return tuple(found)


def seed(
    entry: Seed,
    board: Board,
    dataset: str,
    work: Path,
    *,
    jobs: int = 1,
    machine_code: int = 0,
) -> dict[str, Any]:
    """Evaluates an entry on a copy of the board's dataset, and revalidates it; its document.

    The answers to `machine_code` functions are counted as machine code.

    Raises InputError if the run fails or is refused.
    """
    folder = work / board.name / entry.name
    where = [] if board.track == "assign" else ["--track", board.track]
    if board.limit is not None:
        where += ["--limit", str(board.limit)]
    if entry.architectures is not None:
        where += ["--arch", ",".join(entry.architectures)]
    run = ["--output-path", str(folder / "run"), "--jobs", str(jobs)]
    evaluate = [sys.executable, "-m", "verilocc_bench", "evaluate", *entry.arguments]
    status = subprocess.run([*evaluate, "--dataset", dataset, *where, *run], check=False).returncode
    if status != 0:
        raise InputError(f"evaluate ended with status {status}", source=entry.name)
    submission = folder / "submission"
    shutil.rmtree(submission, ignore_errors=True)
    draft(folder / "run", submission)
    path = submission / SUBMISSION
    known = yaml.safe_load(path.read_text("utf-8"))
    command = shlex.join(
        ["verilocc-bench", "evaluate", *entry.arguments, "--dataset", board.dataset, *where]
    )
    fields = {**known, **entry.fields, "command": command}
    write_atomically(path, yaml.safe_dump(fields, sort_keys=False))
    document = revalidate(
        submission,
        folder / "revalidated",
        dataset=dataset,
        jobs=jobs,
        machine_code=machine_code,
        own=True,
    )
    if not document["accepted"]:
        reasons = "; ".join(f"{each['place']}: {each['message']}" for each in document["refusals"])
        raise InputError(f"refused: {reasons}", source=entry.name)
    return document


if __name__ == "__main__":
    sys.exit(main())
