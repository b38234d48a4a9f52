"""Judges the functions of some families, part after part, and resumes interrupted runs.

The parts of all families have a fixed order, and each is judged as a whole. A
state is the outcome of the first N parts. Its file is replaced from time to
time, and when the run ends or is interrupted. The counts do not depend on
interruptions or on the number of processes.
"""

from __future__ import annotations

import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
from pathlib import Path

from verilocc_bench import __version__
from verilocc_bench.errors import InputError
from verilocc_bench.processes import process_pool
from verilocc_bench.selftest.small_scope.grammar import Family, FamilyPart, Grammar
from verilocc_bench.selftest.small_scope.small_scope_judging import FunctionJudge, JudgingOutcome
from verilocc_bench.selftest.small_scope.small_scope_state import (
    EnumerationState,
    read_state,
    write_state,
)

MAXIMUM_INSTRUCTIONS = 3
SECONDS_BETWEEN_SAVES = 10.0
AHEAD = 8
"""The number of parts that each process gets in advance."""

Result = tuple[JudgingOutcome, float]
"""The outcome of a part, and the seconds of processor time that it took."""


class Enumeration:
    """One run over all functions of some families, up to a number of instructions."""

    def __init__(
        self,
        families: Sequence[Family],
        *,
        instructions: int = MAXIMUM_INSTRUCTIONS,
        smt: bool = False,
        state_path: Path | None = None,
    ) -> None:
        self.families, self.smt, self.state_path = tuple(families), smt, state_path
        grammars = [Grammar(family) for family in families]
        self.chunks = [
            chunk
            for grammar in grammars
            for count in range(1, instructions + 1)
            for chunk in grammar.chunks(count)
        ]
        described = repr((__version__, self.families, instructions, smt))
        self.scope = hashlib.sha256(described.encode()).hexdigest()
        self.state = EnumerationState()
        if state_path is not None and state_path.exists():
            self.state = read_state(state_path, self.scope)
        self.interrupted = False

    @property
    def complete(self) -> bool:
        """True if every part is judged."""
        return self.state.done >= len(self.chunks)

    def run(
        self, jobs: int = 1, progress: Callable[[EnumerationState], None] = lambda _: None
    ) -> EnumerationState:
        """Runs to the end or until it is interrupted. Returns the state then."""
        left = self.chunks[self.state.done :]
        saved = time.monotonic()
        try:
            for chunk, (outcome, seconds) in zip(left, self._results(left, jobs), strict=True):
                self.state = self.state.plus(chunk.family, outcome, seconds)
                progress(self.state)
                if time.monotonic() - saved >= SECONDS_BETWEEN_SAVES:
                    self._save()
                    saved = time.monotonic()
        except KeyboardInterrupt:
            self.interrupted = True
        finally:
            self._save()
        return self.state

    def _save(self) -> None:
        if self.state_path is not None:
            write_state(self.state_path, self.scope, self.state)

    def _results(self, chunks: Sequence[FamilyPart], jobs: int) -> Iterator[Result]:
        if jobs > 1:
            return self._in_processes(chunks, jobs)
        worker = _PartJudge(self.families, self.smt)
        return (worker.judge(chunk) for chunk in chunks)

    def _in_processes(self, chunks: Sequence[FamilyPart], jobs: int) -> Iterator[Result]:
        waiting: deque[Future[Result]] = deque()
        left = iter(chunks)
        try:
            with process_pool(jobs, _start, (self.families, self.smt)) as pool:
                while True:
                    room = jobs * AHEAD - len(waiting)
                    waiting.extend(pool.submit(_work, chunk) for chunk in islice(left, room))
                    if not waiting:
                        return
                    yield waiting.popleft().result()
        except BrokenProcessPool:
            raise InputError("a process of the enumeration was ended from outside") from None


class _PartJudge:
    """Judges parts; keeps grammars and Z3's verdicts between them."""

    def __init__(self, families: Sequence[Family], smt: bool) -> None:
        self.grammars = {family.name: Grammar(family) for family in families}
        self.judges = FunctionJudge(smt)

    def judge(self, chunk: FamilyPart) -> Result:
        start = time.process_time()
        self.judges.outcome = JudgingOutcome()
        for function in self.grammars[chunk.family].functions(chunk):
            self.judges.judge(function)
        return self.judges.outcome, time.process_time() - start


_workers: list[_PartJudge] = []


def _start(families: Sequence[Family], smt: bool) -> None:
    _workers.append(_PartJudge(families, smt))


def _work(chunk: FamilyPart) -> Result:
    return _workers[0].judge(chunk)
