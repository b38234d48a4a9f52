"""The sampling ledger: every sample on disk as soon as it is judged.

Each line is one JSON object. A line is appended by one write that begins and
ends with a newline, so a process that is killed in the middle of a write spoils
that line alone. Each line ends with a checksum of its other bytes. A line with
a wrong checksum, or without one, is skipped and counted, and its sample is
asked for again.

The key of a sample is the fingerprint of its configuration (allocator and its
revision, prompts, decoding, seed), the id of its function, and its index. So
another configuration never reads the sample, and the same one never asks for
it again. One line holds its answer, its verdict and the measured quality, so
that these cannot contradict each other.

Each verdict has a fingerprint of this package's code. When the verifier
changes, it judges the answers in the ledger anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

from verilocc_bench.allocators import Answer
from verilocc_bench.dataset import Row
from verilocc_bench.edits.answer_files import answer_to_json, parse_answer
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.fingerprints import code_fingerprint, fingerprint
from verilocc_bench.evaluation.records import Judged, Outcome, Sample
from verilocc_bench.evaluation.score import known_bounds
from verilocc_bench.files import AppendedFile

LEDGER = "ledger.jsonl"

_CHECKSUM_BYTES = 8
_CHECKED = re.compile(rb'(\{.*), "checksum": "([0-9a-f]{16})"\}', re.DOTALL)


def checked_line(document: Mapping[str, Any]) -> bytes:
    """A JSON object as a line of its own, with a checksum at its end."""
    text = json.dumps(document, allow_nan=False).encode()
    return b'\n%b, "checksum": "%b"}\n' % (text[:-1], _checksum(text[:-1]))


def read_checked(line: bytes) -> dict[str, Any] | None:
    """The object of a line that `checked_line` made; None for a line with any other byte."""
    content = _content(line)
    return None if content is None else json.loads(content)


def _content(line: bytes) -> bytes | None:
    matched = _CHECKED.fullmatch(line.strip())
    if matched is None or _checksum(matched[1]) != matched[2]:
        return None
    return matched[1] + b"}"


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_CHECKSUM_BYTES).hexdigest().encode()


class LedgerWriter:
    """Appends to a ledger; several processes may do so at once."""

    def __init__(self, path: Path, configuration: str, judge: str) -> None:
        self.path, self.configuration, self.judge = path, configuration, judge
        self._file = AppendedFile(path)

    def append(self, row: Row, judged: Judged, outcome: Outcome | None = None) -> None:
        """Writes a sample, and the quality of its answer if that was measured."""
        verdict, answer, row_id = judged.verdict, judged.answer, row.id
        self._write(
            {
                "kind": "sample",
                "configuration": self.configuration,
                "judge": self.judge,
                "id": row_id,
                "sample": judged.sample.to_json(),
                "verdict": None if verdict is None else verdict.to_json(),
                "answer": None if answer is None else answer_to_json(row_id, answer),
                "label": None if outcome is None else _measured_against(row),
                "outcome": None if outcome is None else asdict(outcome),
            }
        )

    def describe(self, settings: Mapping[str, Any]) -> None:
        """Writes the settings that the fingerprint of the configuration stands for."""
        head = {"kind": "configuration", "configuration": self.configuration}
        self._write({**head, "settings": settings})

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    def _write(self, document: dict[str, Any]) -> None:
        self._file.append(checked_line(document))


@dataclass(frozen=True, slots=True)
class Entry:
    """A sample in a ledger, and where its line is in the file.

    `fresh` is True if the present verifier judged it.
    """

    sample: Sample
    offset: int
    length: int
    fresh: bool


class Ledger:
    """The samples of one configuration in a ledger. Only one run may write to it at a time.

    Raises InputError if another run writes to it.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, resume: bool = True) -> None:
        self.path = path
        self.configuration, self.judge = fingerprint(settings), code_fingerprint()
        self.writer = LedgerWriter(path, self.configuration, self.judge)
        self.entries: dict[tuple[str, int], Entry] = {}
        self._damaged, self._unchecked = 0, set[tuple[str, int]]()
        self._outcomes: dict[str, tuple[str, Outcome]] = {}
        self._described, self._end = False, 0
        self._file = self._open(path, resume=resume)
        self.refresh()
        if not self._described:
            self.writer.describe(settings)

    def _open(self, path: Path, *, resume: bool) -> BinaryIO:
        with contextlib.ExitStack() as stack:
            stack.callback(self.writer.close)
            try:
                file = stack.enter_context(path.open("rb+"))
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not resume:
                    file.truncate(0)
            except BlockingIOError:
                raise InputError("another run writes to this folder now", source=path) from None
            except OSError as error:
                reason = error.strerror or error
                raise InputError(f"cannot be written: {reason}", source=path) from None
            stack.pop_all()
        return file

    def refresh(self) -> None:
        """Reads what has been written since the last time."""
        self._file.seek(self._end)
        for line in self._file:
            if not line.endswith(b"\n"):  # still being written, or never to be finished
                break
            if not line.isspace():
                self._take(line, self._end)
            self._end += len(line)

    def warnings(self) -> Iterator[str]:
        """What was skipped, in words."""
        if self._damaged:
            lines = "1 line is" if self._damaged == 1 else f"{self._damaged:,} lines are"
            again = "the samples that they held are asked for again"
            yield f"{self.path}: {lines} damaged and passed over; {again}"
        unchecked = len(self._unchecked - self.entries.keys())
        if unchecked:
            samples = "1 sample" if unchecked == 1 else f"{unchecked:,} samples"
            why = "an earlier version wrote without a checksum are asked for again"
            yield f"{self.path}: {samples} that {why}"

    def outcome(self, row: Row) -> Outcome | None:
        """The measured quality of the first valid sample; None of another label or bound."""
        label, outcome = self._outcomes.get(row.id, (None, None))
        return outcome if label == _measured_against(row) else None

    def read(self, entry: Entry) -> tuple[Answer | None, dict[str, Any] | None]:
        """The answer and the verdict, as JSON, of an entry."""
        document = self._document(entry)
        answer = document["answer"]
        if answer is not None:
            answer = parse_answer(answer, self.path)[1]
        return answer, document["verdict"]

    def read_line(self, row_id: str, index: int) -> dict[str, Any] | None:
        """The whole line of one sample; None if the ledger lacks it."""
        entry = self.entries.get((row_id, index))
        return None if entry is None else self._document(entry)

    def close(self) -> None:
        """Lets go of the file."""
        self.writer.close()
        self._file.close()

    def _document(self, entry: Entry) -> dict[str, Any]:
        self._file.seek(entry.offset)
        document = read_checked(self._file.read(entry.length))
        if document is None:
            raise InputError("a line was damaged meanwhile: run evaluate again", source=self.path)
        return document

    def _take(self, line: bytes, offset: int) -> None:
        content = _content(line)
        own = self.configuration.encode() in line
        try:
            if content is None:
                self._pass_over(line, own=own)
            elif own:
                document = json.loads(content)
                if document["configuration"] == self.configuration:
                    self._add(document, offset, len(line))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # The rest of a line whose writer was killed, or what somebody made of it.
            self._damaged += 1

    def _pass_over(self, line: bytes, *, own: bool) -> None:
        """Counts a damaged line, or one of a version that wrote no checksums."""
        old = json.loads(line)
        if "checksum" in old or "kind" not in old:
            raise ValueError("damaged")
        if own and old["kind"] == "sample":
            self._unchecked.add((str(old["id"]), int(old["sample"]["index"])))

    def _add(self, document: dict[str, Any], offset: int, length: int) -> None:
        if document["kind"] == "configuration":
            self._described = True
            return
        fresh = document["judge"] == self.judge
        entry = _entry(document, offset, length, fresh=fresh)
        row_id, index = str(document["id"]), entry.sample.index
        if document["outcome"] is not None and fresh:
            outcome = Outcome.from_json(document["outcome"])
            self._outcomes[row_id] = str(document["label"]), outcome
        elif row_id in self._outcomes and self._outcomes[row_id][1].sample == index:
            del self._outcomes[row_id]  # of an answer that this one replaces
        self.entries[row_id, index] = entry


def _measured_against(row: Row) -> str:
    return fingerprint([row.assignment, row.best_lower_bound, *known_bounds().get(row.id, ())])


def _entry(document: dict[str, Any], offset: int, length: int, *, fresh: bool) -> Entry:
    """Raises ValueError, KeyError or TypeError for a line that no run would write."""
    sample = Sample.from_json(document["sample"])
    answer, verdict = document["answer"], document["verdict"]
    if not all(each is None or isinstance(each, dict) for each in (answer, verdict)):
        raise TypeError("expected objects")
    if (sample.failure is None) != (verdict is not None) or (
        verdict is not None and answer is None
    ):
        raise ValueError("a verdict belongs to an answer")
    # A sample without an answer has no verdict: any verifier will do.
    return Entry(sample, offset, length, fresh or answer is None)
