"""Examines a submission before any answer is judged: is it whole, and what it claims to be?"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from leaderboard.answer_lines import FunctionLines, byte_limits, check_size, index_lines, unpacked
from leaderboard.boards import Board, BoardCopy, boards
from leaderboard.folder import SUBMISSION, answers_file, check_folder, open_file
from leaderboard.measured import answer_hash
from leaderboard.submission import Refusal, Submission, read_submission
from verilocc_bench.dataset import Row
from verilocc_bench.edits import Answer
from verilocc_bench.edits.answer_files import parse_answer
from verilocc_bench.errors import InputError
from verilocc_bench.files import decode_text, parse_json

NAMED = 5
"""The most functions that a refusal names."""


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers of a submission: the file, and the lines of each function.

    `strange_lines` counts lines of functions that are not asked; `strange` is
    the first of these functions.
    """

    path: Path
    lines: Mapping[str, FunctionLines]
    strange: str | None
    strange_lines: int


@dataclass(slots=True)
class Examined:
    """The findings about a submission; if there are `refusals`, the rest may be missing.

    `files` holds hashes by name, `rows` the functions that must be answered.
    """

    submission: Submission | None = None
    board: Board | None = None
    files: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    answers: Answers | None = None
    refusals: list[Refusal] = field(default_factory=list)

    def check(self, folder: Path) -> None:
        """Raises InputError, with all reasons, for a submission that would be refused."""
        if self.refusals:
            reasons = "; ".join(f"{each.place}: {each.message}" for each in self.refusals)
            raise InputError(f"would be refused: {reasons}", source=folder)


def examine(
    folder: Path,
    work: Path,
    dataset: str | None = None,
    revision: str | None = None,
    *,
    own: bool = False,
) -> Examined:
    """Examines a submission; compressed answers are unpacked into `work`.

    `dataset` is a trusted copy of the board's dataset. Raises InputError if it
    has other functions. `own` entries alone have the names and the authors of the
    leaderboard's. Faults of the submission are among the refusals.
    """
    found = Examined()
    try:
        check_folder(folder)
        found.submission, found.refusals = read_submission(folder, own=own)
        if found.submission is None:
            return found
        found.board = _board(found.submission)
        if found.board.seed is not None and not own:
            raise InputError(f"{SUBMISSION}: dataset: the board {found.board.name} is closed")
        found.files = {SUBMISSION: _sha256(folder / SUBMISSION)}
    except InputError as error:
        found.refusals = [_refusal("format", error, folder)]
        return found
    copy = BoardCopy(found.board, found.board.copy_in(dataset), revision)
    rows = copy.rows()
    asked = {row.arch for row in rows}
    if strange := sorted(set(found.submission.architectures) - asked):
        message = f"the board {found.board.name} has no kernel for {', '.join(strange)}"
        found.refusals = [Refusal("submission", message, f"{SUBMISSION}: architectures")]
        return found
    architectures = found.submission.architectures or tuple(sorted(asked))
    found.submission = replace(found.submission, architectures=architectures)
    found.rows = {row.id: row for row in rows if row.arch in architectures}
    work.mkdir(parents=True, exist_ok=True)
    try:
        path, limits = answers_file(folder), byte_limits(found.rows)
        # Line breaks, and answers to functions that are refused by name, need some room, too.
        total = found.submission.samples * sum(limits.values())
        check_size(path, total)
        found.files[path.name] = _sha256(path)
        found.answers = _find_answers(path, work, limits, total, found.submission.samples)
    except InputError as error:
        found.refusals = [_refusal("answers", error, folder)]
        return found
    found.refusals = [
        *_mismatches(found.answers, found.rows, found.submission, copy),
        *_strange_figures(found.answers, found.submission),
    ]
    return found


def _strange_figures(answers: Answers, submission: Submission) -> Iterator[Refusal]:
    """Measured figures that belong to no answer of the submission."""
    for number, figure in enumerate(submission.measured, 1):
        lines = answers.lines.get(figure.id)
        given = () if lines is None else answers_of(answers.path, lines)
        if figure.answer_sha256 not in {answer_hash(figure.id, each) for each in given}:
            message = f"measured of an answer to {figure.id} that is not in the submission"
            yield Refusal("submission", message, f"{SUBMISSION}: measured, {number}")


def answers_of(path: Path, lines: FunctionLines) -> Iterator[Answer]:
    """The answers among some lines of a file; other lines are left out."""
    with os.fdopen(open_file(path), "rb") as file:
        for offset, length in lines.places:
            file.seek(offset)
            try:
                text = decode_text(file.read(length), path)
                yield parse_answer(parse_json(text, path), path)[1]
            except InputError:
                continue


def _board(submission: Submission) -> Board:
    stated = (submission.dataset_hash, submission.track, submission.limit)
    for board in boards():
        if (board.hash, board.track, board.limit) == stated:
            if submission.dataset != board.dataset:
                raise InputError(f"{SUBMISSION}: dataset: this hash is {board.dataset}'s")
            return board
    known = "; ".join(
        f"{board.name}: {board.dataset}, {board.split} split of the {board.track} track, "
        f"{board.hash[:16]}…{'' if board.limit is None else f', limit {board.limit}'}"
        for board in boards()
    )
    limit = "" if submission.limit is None else f" with the limit {submission.limit}"
    raise InputError(
        f"{SUBMISSION}: dataset_hash: answers of the {submission.track} track to the revision "
        f"{submission.dataset_hash[:16]}…{limit}, which no board has; boards: {known}"
    )


def _refusal(kind: str, error: InputError, folder: Path) -> Refusal:
    """An error as a refusal; a file has the name that it has in the folder."""
    place = str(error).removesuffix(" ".join(error.message.split())).rstrip(": ")
    place = place.removeprefix(str(folder)).lstrip("/") or "the folder"
    return Refusal(kind, " ".join(error.message.split()), place)


def _sha256(path: Path) -> str:
    with os.fdopen(open_file(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _find_answers(
    path: Path, work: Path, limits: Mapping[str, int], total_bytes: int, samples: int
) -> Answers:
    found = unpacked(path, work, total_bytes)
    lines = index_lines(found, limits, samples, path)
    return Answers(found, lines.functions, lines.strange, lines.strange_lines)


def _mismatches(
    answers: Answers, rows: Mapping[str, Row], submission: Submission, copy: BoardCopy
) -> Iterator[Refusal]:
    """Functions that are missing, that do not belong, or that have the wrong number of samples."""
    place = "answers"
    if answers.strange is not None:
        known = {row.id: row for row in copy.rows()}
        if answers.strange in known:
            why = f"of {known[answers.strange].arch}, which `architectures` does not name"
        else:
            there = copy.where_else(answers.strange)
            why = "no function of the dataset" if there is None else f"in {there}"
        message = (
            f"{answers.strange_lines:,} lines answer kernels that are not of this board; the "
            f"first, {answers.strange}, is {why}"
        )
        yield Refusal("unknown-function", message, place)
    missing = [identifier for identifier in rows if identifier not in answers.lines]
    if missing:
        named = ", ".join(missing[:NAMED])
        message = f"{len(missing):,} of {len(rows):,} kernels have no answer: {named}"
        yield Refusal("missing-function", message, place)
    counts = {
        identifier: answers.lines[identifier].count
        for identifier in rows
        if identifier in answers.lines
    }
    wrong = {key: count for key, count in counts.items() if count != submission.samples}
    if wrong:
        first = next(iter(wrong))
        message = (
            f"{len(wrong):,} kernels have another number of samples than the "
            f"{submission.samples} of {SUBMISSION}; the first, {first}, has {wrong[first]:,}"
        )
        yield Refusal("sample-count", message, place)
