"""Closed standard streams, interrupts while the program is loaded, servers that never answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.sampling import some_of
from verilocc_bench.cli.evaluate_command import UNAVAILABLE
from verilocc_bench.dataset import load_rows

pytestmark = pytest.mark.slow

PROGRAM = [sys.executable, "-m", "verilocc_bench"]
ROW = min(load_rows("mini").rows, key=lambda row: row.n_instructions)
UNREACHABLE = "http://127.0.0.1:9/v1"
ASKED = ["--model-name", "x", "--prompt-format", "whole", "--retries", "0", "--limit", "1"]


def run(arguments: list[str], closed: str) -> subprocess.CompletedProcess[str]:
    """The program with standard streams closed, as a shell does it: `2>&-`."""
    command = ["sh", "-c", f'exec "$@" {closed}', "sh", *PROGRAM, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["list", "models"], 0),
        (["evaluate", "--model", "linear-scan", "--limit", "1", "--arch", "gfx90a"], 0),
        (["normalize", "nothing.mir"], 2),
        (["no-such-command"], 2),
    ],
    ids=["list", "evaluate", "an error", "usage"],
)
@pytest.mark.parametrize("closed", some_of(["<&- 2>&-", "2>&-"]))
def test_no_standard_error(arguments: list[str], status: int, closed: str) -> None:
    told = run(arguments, closed)
    assert told.returncode == status
    assert "Traceback" not in told.stdout
    assert "verilocc-bench " not in told.stdout  # the errors of a command begin with it
    assert bool(told.stdout) == (status == 0)


def test_a_file_never_takes_the_place_of_standard_error(tmp_path: Path) -> None:
    answer = tmp_path / "answer.json"
    told = run(["allocate", "--model", "linear-scan", ROW.id, "-o", str(answer)], "2>&- >&- <&-")
    assert told.returncode == 0
    assert json.loads(answer.read_text())["id"] == ROW.id


def interrupted(*arguments: str, seconds: float | None = 0.0) -> tuple[int, str]:
    """How a Python program ends that is interrupted so long after it began, and what it says."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, *arguments], text=True, **pipes) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        if seconds is not None:
            time.sleep(seconds)
            os.kill(process.pid, signal.SIGINT)
        try:
            _, told = process.communicate(timeout=60)
        finally:
            process.kill()
    return process.returncode, told


@pytest.mark.parametrize("delay", some_of([0.12, 0.06, 0.4, 0.25], one_in=2))
def test_an_interrupt_while_it_is_loaded(delay: float) -> None:
    # In the background of a shell an interrupt may be ignored, and that is inherited.
    code = (
        "import signal, runpy, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('begun', flush=True)\n"
        "sys.argv = ['verilocc-bench', 'evaluate', '--model', 'cp-sat', '--samples', '50']\n"
        "runpy.run_module('verilocc_bench', run_name='__main__')\n"
    )
    status, told = interrupted("-c", code, seconds=delay)
    assert status == 130, told
    assert "Traceback" not in told
    assert "interrupted" in told


DROPPED = {
    "a finalizer": """
class Finalized:
    def __del__(self):
        interrupt()
Finalized()
""",
    "an import that takes every exception for a missing module": """
try:
    import interrupted_module
except BaseException:
    pass
""",
    "a class body": """
import interrupted_class
""",
}


@pytest.mark.parametrize("place", DROPPED)
def test_an_interrupt_that_python_drops(place: str, tmp_path: Path) -> None:
    """There are places where it cannot be raised. It is not lost."""
    (tmp_path / "interrupted_module.py").write_text("from signals import interrupt\ninterrupt()\n")
    (tmp_path / "interrupted_class.py").write_text(
        "from signals import interrupt\n"
        "class Named:\n    def __set_name__(self, owner, name):\n        interrupt()\n"
        "class Owner:\n    named = Named()\n"
    )
    number = "SIGTERM" if place == "a finalizer" else "SIGINT"
    (tmp_path / "signals.py").write_text(
        f"import signal\ndef interrupt():\n    signal.raise_signal(signal.{number})\n"
    )
    (tmp_path / "program.py").write_text(
        "import signal, sys, time\n"
        "from signals import interrupt\n"
        "from verilocc_bench import __main__, cli\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def run():\n"
        f"    {DROPPED[place].strip().replace(chr(10), chr(10) + '    ')}\n"
        "    time.sleep(60)\n"
        "    return 0\n"
        "cli.main = run\n"
        "sys.exit(__main__.main())\n"
    )
    command = [sys.executable, str(tmp_path / "program.py")]
    told = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (told.returncode, told.stdout) == (130, "")
    assert told.stderr == "verilocc-bench: interrupted\n"


@pytest.mark.parametrize(
    ("module", "last"),
    [
        ("try:\n    time.sleep(60)\nexcept BaseException:\n    pass\n", "time.sleep(60)"),
        ("time.sleep(60)\n", "return 0"),
        ("signal.raise_signal(signal.SIGTERM)\n", "return 0"),
    ],
    ids=["a long import that drops it", "an import without end", "the end of the program"],
)
def test_an_interrupt_after_patience_and_at_the_end(module: str, last: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(f"import signal, time\nprint('begun', flush=True)\n{module}")
    (tmp_path / "program.py").write_text(
        "import atexit, signal, sys, time\n"
        "from verilocc_bench import __main__, cli, interrupts\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "interrupts.LONGEST_IMPORT_SECONDS = interrupts.SECOND_PAUSE_SECONDS = 0.1\n"
        "atexit.register(time.sleep, 0.3)\n"
        "def run():\n"
        "    import slow\n"
        f"    {last}\n"
        "cli.main = run\n"
        "sys.exit(__main__.main())\n"
    )
    # One that comes right before a sleep begins does not end it.
    seconds = None if "raise_signal" in module else 0.2
    found = interrupted(str(tmp_path / "program.py"), seconds=seconds)
    assert found == (130, "verilocc-bench: interrupted\n")


def test_a_server_that_never_answers_has_a_status_of_its_own(
    run: CommandLine,
) -> None:
    few = ["--arch", "gfx90a", "--family", "gemm"]
    captured = run("evaluate", "--model", UNREACHABLE, *ASKED, *few, "--json", status=UNAVAILABLE)
    overall = json.loads(captured.out)["results"]["overall"]
    assert (overall["samples"], overall["infrastructure_failures"]) == (0, 1)
    assert "no answer: a server or the machine failed every time" in captured.err
    # Another that answers makes a result.
    models = ["--model", UNREACHABLE, "--model", "linear-scan"]
    run("evaluate", *models, *ASKED, *few)
