"""A pytest plugin that asks the collected tests about one mutant after the other.

The tests are collected once, in this process, and run in forks of it alone: first each by itself,
to see which functions it enters and how long it takes; then for each mutant those that enter its
function, until one fails. What killed another mutant of the function, or of its module, is asked
first, then the quickest. A test that takes ten times as long as it should has failed too.

mutmut's own runner collects the tests anew for each mutant and asks them in no order, which takes
here a hundred times as long.
"""

from __future__ import annotations

import gc
import hashlib
import importlib
import json
import os
import re
import resource
import selectors
import signal
import struct
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from _pytest.tmpdir import tmppath_result_key

from tests.mutants.making import Mutant, code_objects, function_of
from tests.sampling import FURTHER

MEMORY_BYTES = 6 << 30
PRELOADED = ("numpy", "z3", "verilocc_bench.verification.bulk")

LEFT_OUT = re.compile(
    "|".join(
        (
            *FURTHER,
            # Other processes, and other code.
            r"test_llvm_is_content",
            r"imports_no_solver",
            r"test_cubin\.py",
        )
    )
)
"""Tests that take too long to be asked of every mutant."""

ONLY_OF = {
    r"test_lower_bounds|test_bound_json|test_bounds_": "lower_bounds",
    r"beyond_analysis|beyond_the_limit|long_chains": r"conditions|conditional",
    r"allocators/test_minimizing": "exact",
    r"evaluation/test_(comparison|ledger|storing)": r"evaluation",
    r"test_histories_agree": r"value_tracker|explain",
}
"""Slow tests that are asked of mutants of these modules alone."""

KILLED, TIMEOUT, SURVIVED, UNTESTED = "killed", "timeout", "survived", "no tests"


@dataclass(slots=True)
class _Entered:
    """What a test enters, by its number, and the processor's seconds that it takes."""

    functions: frozenset[int] = frozenset()
    seconds: float = 0.0


@dataclass(slots=True)
class _Child:
    """A forked process with what it has written until now."""

    pid: int
    done: Callable[[int, bytes], None]
    written: bytearray = field(default_factory=bytearray)


class Asking:
    """The plugin. `told` is called with each mutant, its status and the test that killed it."""

    def __init__(
        self, mutants: Sequence[Mutant], told: Callable[[Mutant, str, str], None], jobs: int
    ) -> None:
        self.mutants, self.told, self.jobs = mutants, told, jobs
        self._items: list[pytest.Item] = []
        self._entered: list[_Entered] = []
        self._killers: dict[str, Counter[int]] = {}
        self._selector = selectors.DefaultSelector()

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        items[:] = [item for item in items if not LEFT_OUT.search(item.nodeid)]

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Takes the place of pytest's own loop."""
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected")
        self._items = session.items
        self._entered = [_Entered() for _ in self._items]
        for name in PRELOADED:
            importlib.import_module(name)
        functions = sorted({(m.module, m.function) for m in self.mutants})
        codes = {
            code: number
            for number, (module, name) in enumerate(functions)
            for code in code_objects(function_of(importlib.import_module(module).__dict__, name))
        }
        session.config._tmp_path_factory.getbasetemp()  # one for all processes
        gc.collect()
        gc.freeze()
        for number in range(len(self._items)):
            self._fork(lambda n=number: self._watch(n, codes), self._watched(number))
        self._wait(0)
        failed = [
            i.nodeid for i, e in zip(self._items, self._entered, strict=True) if not e.seconds
        ]
        if failed:
            raise session.Interrupted(f"fails without any mutant: {', '.join(failed[:5])}")
        total = sum(each.seconds for each in self._entered)
        print(f"{len(self._items)} tests, {total:.0f} seconds of the processor", file=sys.stderr)
        numbers = {function: number for number, function in enumerate(functions)}
        for mutant in self.mutants:
            self._wait(self.jobs - 1)  # so that what killed the last ones is known
            order = self._order(mutant, numbers[mutant.module, mutant.function])
            if not order:
                self.told(mutant, UNTESTED, "")
            else:
                self._fork(lambda m=mutant, o=order: self._ask(m, o), self._asked(mutant))
        self._wait(0)
        return True

    def _order(self, mutant: Mutant, function: int) -> list[int]:
        found = [
            number
            for number, (item, each) in enumerate(zip(self._items, self._entered, strict=True))
            if function in each.functions and _is_near(item.nodeid, mutant.module)
        ]
        near = self._killers.get(f"{mutant.module} {mutant.function}", Counter())
        far = self._killers.get(mutant.module, Counter())
        return sorted(found, key=lambda n: (-near[n], -far[n], self._entered[n].seconds, n))

    # In the forked processes

    def _watch(self, number: int, codes: dict[object, int]) -> Iterator[bytes]:
        entered: set[int] = set()

        def watch(frame: object, event: str, argument: object) -> None:
            if event == "call" and frame.f_code in codes:  # type: ignore[attr-defined]
                entered.add(codes[frame.f_code])  # type: ignore[attr-defined]

        sys.setprofile(watch)
        self._run(number)
        sys.setprofile(None)
        yield json.dumps([time.process_time(), sorted(entered)]).encode()

    def _ask(self, mutant: Mutant, order: Sequence[int]) -> Iterator[bytes]:
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        mutant.plant()
        for number in order:
            yield struct.pack("I", number)
            # The signal ends the process, whatever it is about.
            signal.setitimer(signal.ITIMER_PROF, 1 + 10 * self._entered[number].seconds)
            self._run(number)

    def _run(self, number: int) -> None:
        item = self._items[number]
        try:
            item.ihook.pytest_runtest_setup(item=item)
            item.ihook.pytest_runtest_call(item=item)
        except pytest.skip.Exception:
            pass
        finally:
            item.stash.setdefault(tmppath_result_key, {})  # what pytest's own loop leaves there
            item.ihook.pytest_runtest_teardown(item=item, nextitem=None)

    # In this process

    def _watched(self, number: int) -> Callable[[int, bytes], None]:
        def done(status: int, written: bytes) -> None:
            if status == 0:
                seconds, functions = json.loads(written)
                self._entered[number] = _Entered(frozenset(functions), seconds)

        return done

    def _asked(self, mutant: Mutant) -> Callable[[int, bytes], None]:
        def done(status: int, written: bytes) -> None:
            if status == 0:
                self.told(mutant, SURVIVED, "")
                return
            last = len(written) // 4 * 4
            number = struct.unpack("I", written[last - 4 : last])[0] if last else 0
            for place in (mutant.module, f"{mutant.module} {mutant.function}"):
                self._killers.setdefault(place, Counter())[number] += 1
            kind = TIMEOUT if status == -signal.SIGPROF else KILLED
            self.told(mutant, kind, self._items[number].nodeid)

        return done

    def _fork(
        self, work: Callable[[], Iterator[bytes]], done: Callable[[int, bytes], None]
    ) -> None:
        self._wait(self.jobs - 1)
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                os.close(reader)
                nothing = os.open(os.devnull, os.O_RDWR)
                for standard in range(3):
                    os.dup2(nothing, standard)
                warnings.simplefilter("error")
                for written in work():
                    os.write(writer, written)
                status = 0
            except BaseException:
                pass
            finally:
                os._exit(status)
        os.close(writer)
        self._selector.register(reader, selectors.EVENT_READ, _Child(pid, done))

    def _wait(self, most: int) -> None:
        """Until at most so many forked processes are left."""
        while len(self._selector.get_map()) > most:
            for key, _ in self._selector.select():
                child: _Child = key.data
                if data := os.read(key.fd, 1 << 16):
                    child.written += data
                    continue
                self._selector.unregister(key.fd)
                os.close(key.fd)
                _, status = os.waitpid(child.pid, 0)
                child.done(os.waitstatus_to_exitcode(status), bytes(child.written))


def _is_near(test: str, module: str) -> bool:
    return all(
        re.search(modules, module) for tests, modules in ONLY_OF.items() if re.search(tests, test)
    )


def fingerprint_of(folder: Path) -> str:
    """Changes with any file of a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".pyc":
            found.update(path.read_bytes())
    return found.hexdigest()[:12]
