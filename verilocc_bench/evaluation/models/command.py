"""Allocators that are programs: one JSON object a line in, one a line out.

`docs/allocators.md` has the protocol. A program is started once and asked
many times; several processes of it share the requests. A program that fails is
killed and started again; the failure counts. Only a fresh process's failure
counts, though: if a process that has answered before ends or writes nonsense,
a fresh one gets the same request. So it does not matter which process was
asked what before.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import queue
import shlex
import shutil
import sys
import threading
import time
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from verilocc_bench.allocators import (
    Answer,
    Assistance,
    FailureKind,
    Feedback,
    LabelUse,
    Request,
    Response,
)
from verilocc_bench.edits.answer_files import answer_to_json, parse_answer
from verilocc_bench.errors import AllocationFailed, InputError
from verilocc_bench.evaluation.models.command_process import ProgramProcess, ProgramReply
from verilocc_bench.files import parse_json
from verilocc_bench.settings.program import ProgramSettings

REQUESTS_PER_PROCESS = 64
SEED_BITS_DROPPED = 11
"""A JSON number is exact up to 53 bits; seeds have 64."""

RETRIED = frozenset({FailureKind.CRASHED, FailureKind.UNPARSABLE})
FAILURE_KEYS = {"id", "failure", "message"}


def command_allocator(rest: str, settings: ProgramSettings, jobs: int) -> CommandAllocator:
    """The allocator of `command:` and `rest`, with `jobs` processes.

    `rest` is split into words as a shell does it; no shell runs. Raises
    InputError if the program is missing, or a limit is not above 0.
    """
    try:
        argv = shlex.split(rest)
    except ValueError as error:
        raise InputError(
            f"expected command:PROGRAM ARGUMENTS, not 'command:{rest}': {error}"
        ) from None
    if not argv:
        raise InputError("expected command:PROGRAM ARGUMENTS, a program is missing")
    if "\0" in rest or shutil.which(argv[0]) is None:
        raise InputError(f"there is no program {argv[0]!r} that can be run, for 'command:{rest}'")
    return CommandAllocator(f"command:{rest}", argv, settings, processes=jobs)


@dataclass(frozen=True, slots=True)
class _ProgramTask:
    place: int
    request: Request
    results: queue.SimpleQueue[tuple[int, Response | BaseException]]
    cancelled: threading.Event


class CommandAllocator:
    """A program that answers requests (an Allocator that answers in groups).

    `processes` of it run at once. The time limit is for one request, and
    includes the program's start and its reading. The memory limit is for the
    address space of each process, and of each that it starts. `revision` is a
    hash of the command and of every file that it names.
    """

    assistance: ClassVar[Assistance] = Assistance.TEXT
    tracks: ClassVar[tuple[str, ...]] = ("assign", "split")
    deterministic: ClassVar[bool] = False
    foreign: ClassVar[bool] = False
    label_use: ClassVar[LabelUse] = LabelUse.NONE
    prompt: ClassVar[None] = None
    keeps_groups_whole: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        argv: Sequence[str],
        settings: ProgramSettings,
        *,
        processes: int = 1,
    ) -> None:
        seconds, mib = settings.time_limit_seconds, settings.memory_limit_mib
        if not 0 < seconds < threading.TIMEOUT_MAX:
            raise InputError(f"expected a time limit above 0 s, not {seconds:g}")
        if mib is not None and not 0 < mib < 1 << 32:
            raise InputError(f"expected a memory limit above 0 MiB, not {mib}")
        self.name = name
        self.argv = tuple(argv)
        self.settings = settings
        self.processes = max(1, processes)
        self.revision = _revision(self.argv)
        self._tasks: queue.SimpleQueue[_ProgramTask | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._running: list[threading.Event] = []

    @property
    def group_size(self) -> int:
        """How many requests it wants at once."""
        return REQUESTS_PER_PROCESS * self.processes

    def allocate(self, request: Request) -> Answer:
        """One answer. Raises AllocationFailed without one."""
        ((_, response),) = self.respond([request])
        if response.answer is None:
            raise AllocationFailed(f"{response.failure}: {response.message}")
        return response.answer

    def respond(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response]]:
        """See Allocator. A caller that stops early kills the programs at work."""
        if not self._threads:
            atexit.register(self.close)
        while len(self._threads) < min(self.processes, len(requests)):
            # A program dies with the thread that started it: these live until close().
            thread = threading.Thread(target=self._serve, daemon=True, name=self.name[:40])
            thread.start()
            self._threads.append(thread)
        results: queue.SimpleQueue[tuple[int, Response | BaseException]] = queue.SimpleQueue()
        cancelled = threading.Event()
        self._running.append(cancelled)
        for place, request in enumerate(requests):
            self._tasks.put(_ProgramTask(place, request, results, cancelled))
        missing = len(requests)
        try:
            while missing:
                place, response = results.get()
                missing -= 1
                if isinstance(response, BaseException):
                    raise response
                yield place, response
        finally:
            cancelled.set()
            for _ in range(missing):
                results.get()
            self._running.remove(cancelled)

    def check_ids(self, known: Callable[[], Container[str]]) -> None:
        """Does nothing: a program can be asked about any function."""

    def close(self) -> None:
        """Ends all programs: closes their inputs first, then kills them.

        Requests that are under way are given up.
        """
        for cancelled in self._running:
            cancelled.set()
        for _ in self._threads:
            self._tasks.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        atexit.unregister(self.close)

    def _serve(self) -> None:
        program = _RunningProgram(self.argv, self.settings, self.name)
        try:
            while (task := self._tasks.get()) is not None:
                try:
                    found: Response | BaseException = program.answer(task)
                except BaseException as error:  # noqa: BLE001  raised where it is waited for
                    found = error
                task.results.put((task.place, found))
        finally:
            program.end()


class _RunningProgram:
    """A program that runs as one process at a time, started when it is needed."""

    def __init__(self, argv: Sequence[str], settings: ProgramSettings, name: str) -> None:
        self.argv, self.settings, self.name = argv, settings, name
        self.process: ProgramProcess | None = None
        self.has_warned = False

    def answer(self, task: _ProgramTask) -> Response:
        """The response to a task, from the running process or a fresh one."""
        if task.cancelled.is_set():
            return Response(None, FailureKind.INFRASTRUCTURE, "the run was ended")
        started = time.perf_counter()
        problem = task.request.problem
        line = json.dumps(
            {
                "id": problem.id,
                "target": problem.target.name,
                "normalized": problem.normalized,
                "sample": task.request.sample,
                "seed": task.request.seed >> SEED_BITS_DROPPED,
                "attempt": len(task.request.feedback),
                "feedback": [
                    _feedback_json(feedback, problem.id) for feedback in task.request.feedback
                ],
            }
        ).encode()
        response, was_fresh = self._ask(task, line)
        if response.failure in RETRIED and not was_fresh and not task.cancelled.is_set():
            response, _ = self._ask(task, line)
        return replace(response, seconds=time.perf_counter() - started)

    def _ask(self, task: _ProgramTask, line: bytes) -> tuple[Response, bool]:
        """A response, and True if its process had answered nothing before."""
        if self.process is not None and not self.process.is_ready():
            self._drop(self.process)
        if self.process is None:
            try:
                self.process = ProgramProcess(self.argv, self.settings.memory_limit_mib)
            except OSError as error:
                message = f"no process can be started: {error.strerror or error}"
                return Response(None, FailureKind.INFRASTRUCTURE, message), True
        fresh = not self.process.answered
        reply = self.process.exchange(line, self.settings.time_limit_seconds, task.cancelled)
        response = _read_reply(reply, task.request.problem.id)
        if response.failure not in (None, FailureKind.NO_ANSWER):
            self._drop(self.process)
        return response, fresh

    def _drop(self, process: ProgramProcess) -> None:
        if process.wrote_unasked() and process.answered and not self.has_warned:
            self.has_warned = True
            print(f"{self.name}: more than one line for a request", file=sys.stderr)
        process.kill()
        self.process = None

    def end(self) -> None:
        """Ends the running process, if there is one."""
        if self.process is not None:
            self.process.end()
            self.process = None


def _feedback_json(feedback: Feedback, identifier: str) -> dict[str, Any]:
    document: dict[str, Any] = {"assignment": None}
    if feedback.answer is not None:
        document = answer_to_json(identifier, feedback.answer)
        del document["id"]
    document["failure"] = None if feedback.failure is None else feedback.failure.value
    document["message"] = feedback.message
    document["findings"] = [finding.to_json() for finding in feedback.findings]
    return document


def _read_reply(reply: ProgramReply, identifier: str) -> Response:
    if reply.line is None:
        return Response(None, reply.failure, _printable(reply.message or ""))
    try:
        return _read_answer(reply.line, identifier)
    except InputError as error:
        return Response(None, FailureKind.UNPARSABLE, _printable(error.message))


def _read_answer(line: bytes, identifier: str) -> Response:
    """The response in a line. Raises InputError unless it is an answer to this function."""
    try:
        text = line.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"expected UTF-8 text, byte {error.start} of the line is not") from None
    if not text.strip():
        raise InputError("expected an answer, not a blank line")
    document = parse_json(text, "answer")
    if b"\\u" in line:
        try:
            json.dumps(document, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InputError("half a surrogate pair is not a character") from None
    if isinstance(document, dict) and "failure" in document:
        _check_id(document.get("id"), identifier)
        return _read_failure(document)
    answered, answer = parse_answer(document, "answer")
    _check_id(answered, identifier)
    return Response(answer)


def _read_failure(document: dict[str, Any]) -> Response:
    message = document.get("message", "")
    if document.keys() - FAILURE_KEYS or document["failure"] != FailureKind.NO_ANSWER:
        raise InputError(
            'expected {"id": …, "failure": "no_answer", "message": …} where there is no answer'
        )
    if not isinstance(message, str):
        raise InputError("expected a string as 'message'")
    return Response(None, FailureKind.NO_ANSWER, _printable(message) or "the program has none")


def _check_id(answered: object, identifier: str) -> None:
    if answered is None:
        raise InputError("the answer has no 'id'")
    if answered != identifier:
        raise InputError(f"asked for {identifier}, it answered to {answered!r:.60}")


def _printable(text: str) -> str:
    """Text of a program that is safe in a terminal and in a table."""
    return "".join([c if c.isprintable() else " " for c in text[:1000]]).strip()


def _revision(argv: Sequence[str]) -> str:
    digest = hashlib.sha256(json.dumps(list(argv)).encode())
    for place, word in enumerate(argv):
        path = Path((shutil.which(word) if not place else None) or word)
        # No file can be called so, or a program may be run and not read.
        with contextlib.suppress(OSError):
            if path.is_file():
                with path.open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").digest()
                digest.update(b"%d:" % place + content)
    return digest.hexdigest()
