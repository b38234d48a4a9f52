"""Tasks in processes that die, hang, run out of memory or are killed."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from pathlib import Path

import pytest

from dataset_builders.execution.supervisor import TaskReply, differences
from dataset_builders.execution.tasks import MOST_FAILURES, Execution, Lost, _TaskRun, run_tasks
from tests.dataset_builders.fake_compilers import fail, process_ids
from verilocc_bench.errors import InputError

pytestmark = pytest.mark.slow

Task = tuple[str, str] | int


def results(items: list[Task], jobs: int = 2, seconds: float = 60) -> dict[Task, str | Lost]:
    return dict(run_tasks(fail, items, Execution(jobs, time_limit_seconds=seconds)))


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except (FileNotFoundError, ProcessLookupError):  # The second: it ended while it was read.
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.05)
    pytest.fail("nothing happened for a minute")


def test_every_item_has_its_result() -> None:
    items = list(range(20))
    found = list(run_tasks(fail, iter(items), Execution(2)))
    assert sorted(found) == [(item, f"result {item}") for item in items]
    assert list(run_tasks(fail, [], Execution(2))) == []


def test_processes_and_folders_are_gone_afterwards() -> None:
    ids = dict(run_tasks(process_ids, range(6), Execution(2)))
    answers = [answer for answer in ids.values() if not isinstance(answer, Lost)]
    processes = {process for process, _ in answers}
    folders = {folder for _, folder in answers}
    assert 1 <= len(processes) <= 2
    assert 1 <= len(folders) <= 2
    assert not any(is_alive(process) for process in processes)
    assert not any(Path(folder).exists() for folder in folders)


def test_items_are_lost_alone(tmp_path: Path) -> None:
    losers: dict[Task, Lost | str] = {
        ("die", ""): Lost("crashed", "died twice"),
        ("exit", ""): Lost("crashed", "died twice"),
        ("memory", ""): Lost("crashed", "ran out of memory twice"),
        ("die once", str(tmp_path / "a")): "survived",
        ("memory once", str(tmp_path / "b")): "survived",
    }
    others: dict[Task, Lost | str] = {number: f"result {number}" for number in range(6)}
    assert results([0, 1, *losers, 2, 3, 4, 5]) == losers | others


class FlakyPlace:
    """Two workers; `deaths` says how often the worker dies under each item."""

    lost_worker = BrokenExecutor

    def __init__(self, deaths: dict[str, int]) -> None:
        self.deaths = deaths
        self.submitted = 0

    def submit(self, task: bytes) -> Future[TaskReply]:
        future: Future[TaskReply] = Future()
        _, item = pickle.loads(task)
        self.submitted += 1
        shared = self.submitted <= 2
        if shared or self.deaths[item]:
            # While both are under way, one takes the other with it: nobody knows which.
            if not shared:
                self.deaths[item] -= 1
            future.set_exception(BrokenExecutor())
        else:
            future.set_result(TaskReply("done", value=pickle.dumps("survived")))
        return future

    def width(self) -> int:
        return 2

    def check(self) -> None: ...

    def close(self, *, at_once: bool) -> None: ...


@pytest.mark.parametrize(
    ("deaths", "expected"), [(0, "survived"), (1, "survived"), (2, Lost("crashed", "died twice"))]
)
def test_only_deaths_alone_count(deaths: int, expected: str | Lost) -> None:
    """An item may have had no part in the death that made it a suspect."""
    place = FlakyPlace({"a": deaths, "b": 0})
    found = dict(_TaskRun(fail_never, iter(["a", "b"]), place).outcomes())
    assert found == {"a": expected, "b": "survived"}


def fail_never(item: str) -> str:
    return item


def test_a_hanging_item_is_ended() -> None:
    found = results([("hang", ""), 1, 2], seconds=2)
    assert found[("hang", "")] == Lost("timeout", "was not done after 2 seconds")
    assert (found[1], found[2]) == ("result 1", "result 2")


@pytest.mark.parametrize("how", ["bug", "odd bug"])
def test_a_bug_is_raised_when_the_rest_is_done(how: str) -> None:
    items: list[Task] = [0, (how, ""), *range(1, 12)]
    found: dict[Task, object] = {}
    with pytest.raises((ZeroDivisionError, RuntimeError)) as raised:
        collect(items, found)
    assert set(found) == set(range(12))
    notes = "\n".join(raised.value.__notes__)
    assert f"while working on ('{how}', '')" in notes
    assert 'fake_compilers.py", line' in notes


def collect(items: list[Task], found: dict[Task, object]) -> None:
    """Keeps what there is before an exception."""
    found.update(run_tasks(fail, items, Execution(1)))


def test_many_bugs_end_the_run() -> None:
    found: dict[Task, object] = {}
    bugs: list[Task] = [("bug", str(number)) for number in range(MOST_FAILURES)]
    with pytest.raises(ZeroDivisionError):
        collect([0, *bugs, *range(1, 40)], found)
    assert 0 in found
    assert len(found) < 10


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("input", "a/path: no such tool"),
        ("full", "/tmp/somewhere: cannot be written: No space left on device"),
    ],
)
def test_what_is_no_bug_ends_the_run_at_once(how: str, message: str) -> None:
    found: dict[Task, object] = {}
    with pytest.raises(InputError) as raised:
        collect([0, (how, ""), *range(1, 40)], found)
    assert str(raised.value) == message
    assert 0 in found
    assert len(found) < 10


SCRIPT = """
import signal
import sys
from dataset_builders.execution.tasks import Execution, run_tasks
from tests.dataset_builders.fake_compilers import begin
if __name__ == "__main__":
    # Where the tests themselves run in the background, an interrupt is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        list(run_tasks(begin, [sys.argv[1]], Execution(1)))
    except KeyboardInterrupt:
        sys.exit(7)
"""


@pytest.mark.parametrize("victim", ["coordinator", "task process", "interrupt"])
def test_nothing_goes_on_alone(victim: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = Path(__file__).parents[2]
    run = subprocess.Popen(
        [sys.executable, script, tmp_path],
        env={**os.environ, "PYTHONPATH": str(root)},
        start_new_session=True,
        stderr=subprocess.PIPE,
    )
    try:
        wait_until(lambda: (tmp_path / "ids").exists() or run.poll() is not None)
        task, child = map(int, (tmp_path / "ids").read_text().split())
        if victim == "coordinator":
            run.kill()
        elif victim == "interrupt":
            os.killpg(run.pid, signal.SIGINT)
            assert run.communicate(timeout=60)[1] == b""
            assert run.returncode == 7
        else:
            os.kill(task, signal.SIGKILL)
        wait_until(lambda: not (is_alive(task) or is_alive(child)))
    finally:
        run.kill()
        run.wait()
        assert run.stderr is not None
        run.stderr.close()


def test_differences_are_named() -> None:
    ours = {"format": "1", "versions": {"triton": "3", "ptxas": "13"}}
    assert differences(ours, ours) == ""
    theirs = {"format": "2", "versions": {"triton": "3", "llvmlite": "1"}}
    found = differences(ours, theirs)
    assert found == "format, versions of llvmlite, versions of ptxas"
