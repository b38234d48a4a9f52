"""The sampling ledger: every sample on disk as soon as it is judged.

One JSON object a line, only ever appended, each by one write that begins and
ends with a newline: whoever is killed in the middle of a line spoils that
line alone, and a line that is no whole JSON object is passed over. A sample
stands under the fingerprint of its configuration (allocator and its revision,
prompts, decoding, seed), the id of its function and its index; so another
configuration never meets it, and the same one never asks for it again.

A verdict stands under a fingerprint of this package's code: a changed
verifier judges the answers in the ledger anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from verilocc_bench.allocators import AnyAnswer
from verilocc_bench.answers import answer_to_json, parse_answer
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.evaluate.fingerprints import code_fingerprint, fingerprint
from verilocc_bench.evaluate.records import Judged, Outcome, Sample

__all__ = ["LEDGER", "Entry", "Ledger", "LedgerWriter"]

LEDGER = "ledger.jsonl"


class LedgerWriter:
    """Appends to a ledger; several processes may do so at once."""

    def __init__(self, path: Path, configuration: str, judge: str) -> None:
        self.path, self.configuration, self.judge = path, configuration, judge
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        except OSError as error:
            raise _cannot_write(path, error) from None

    def append(self, row: Row, judged: Judged, outcome: Outcome | None = None) -> None:
        """Writes a sample, and the quality of its answer where that was measured."""
        verdict, answer, row_id = judged.verdict, judged.answer, row.id
        lines: list[dict[str, Any]] = [
            {
                **self._head("sample", row_id),
                "sample": judged.sample.to_json(),
                "verdict": None if verdict is None else verdict.to_json(),
                "answer": None if answer is None else answer_to_json(row_id, answer),
            }
        ]
        if outcome is not None:
            head = {**self._head("outcome", row_id), "label": fingerprint(row.assignment)}
            lines.append({**head, "outcome": outcome.to_json()})
        self._write(lines)

    def describe(self, settings: Mapping[str, Any]) -> None:
        """Writes what the fingerprint of the configuration stands for."""
        head = {"kind": "configuration", "configuration": self.configuration}
        self._write([{**head, "settings": settings}])

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)

    def _head(self, kind: str, row_id: str) -> dict[str, Any]:
        return {
            "kind": kind,
            "configuration": self.configuration,
            "judge": self.judge,
            "id": row_id,
        }

    def _write(self, documents: list[dict[str, Any]]) -> None:
        text = "".join(f"\n{json.dumps(each, allow_nan=False)}\n" for each in documents)
        data = memoryview(text.encode())
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError as error:
            raise _cannot_write(self.path, error) from None


@dataclass(frozen=True, slots=True)
class Entry:
    """A sample in a ledger, and where its line stands; `fresh` if today's verifier judged it."""

    sample: Sample
    offset: int
    length: int
    fresh: bool


class Ledger:
    """The samples of one configuration in a ledger that one run alone may write to.

    Raises InputError where another run holds it.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any], *, resume: bool = True) -> None:
        self.path = path
        self.configuration, self.judge = fingerprint(settings), code_fingerprint()
        self.writer = LedgerWriter(path, self.configuration, self.judge)
        self.entries: dict[tuple[str, int], Entry] = {}
        self._outcomes: dict[tuple[str, str], Outcome] = {}
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
                raise _cannot_write(path, error) from None
            stack.pop_all()
        return file

    def refresh(self) -> None:
        """Reads what has been written since the last time."""
        self._file.seek(self._end)
        key = self.configuration.encode()
        for line in self._file:
            if not line.endswith(b"\n"):  # still being written, or never to be finished
                break
            if key in line:
                self._take(line, self._end)
            self._end += len(line)

    def outcome(self, row: Row) -> Outcome | None:
        """The quality of the first valid sample that was measured, against the label of today."""
        return self._outcomes.get((row.id, fingerprint(row.assignment)))

    def read(self, entry: Entry) -> tuple[AnyAnswer | None, dict[str, Any] | None]:
        """The answer and the verdict, as JSON, of an entry."""
        self._file.seek(entry.offset)
        document = json.loads(self._file.read(entry.length))
        answer = document["answer"]
        if answer is not None:
            answer = parse_answer(answer, self.path)[1]
        return answer, document["verdict"]

    def read_line(self, row_id: str, index: int) -> dict[str, Any] | None:
        """The whole line of one sample; None where there is none."""
        entry = self.entries.get((row_id, index))
        if entry is None:
            return None
        self._file.seek(entry.offset)
        document: dict[str, Any] = json.loads(self._file.read(entry.length))
        return document

    def close(self) -> None:
        """Lets go of the file."""
        self.writer.close()
        self._file.close()

    def _take(self, line: bytes, offset: int) -> None:
        try:
            document = json.loads(line)
            if document["configuration"] != self.configuration:
                return
            fresh = document.get("judge") == self.judge
            match document["kind"]:
                case "configuration":
                    self._described = True
                case "sample":
                    entry = _entry(document, offset, len(line), fresh=fresh)
                    self.entries[str(document["id"]), entry.sample.index] = entry
                case "outcome" if fresh:
                    key = str(document["id"]), str(document["label"])
                    self._outcomes[key] = Outcome.from_json(document["outcome"])
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            # The rest of a line whose writer was killed, or what somebody made of it.
            return


def _entry(document: dict[str, Any], offset: int, length: int, *, fresh: bool) -> Entry:
    """Raises ValueError, KeyError or TypeError for what no run of ours would write."""
    sample = Sample.from_json(document["sample"])
    answer, verdict = document["answer"], document["verdict"]
    if not all(each is None or isinstance(each, dict) for each in (answer, verdict)):
        raise TypeError("expected objects")
    if (sample.failure is None) != (verdict is not None) or (
        verdict is not None and answer is None
    ):
        raise ValueError("a verdict belongs to an answer")
    # That there is no answer is none of the verifier's business.
    return Entry(sample, offset, length, fresh or answer is None)


def _cannot_write(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written: {error.strerror or error}", source=path)
