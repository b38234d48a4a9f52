"""Clients of the local Hub as processes, forked when all libraries are imported.

To import them takes seconds. They read the variables of the Hub meanwhile, so that there is
a server of clients for each choice of such variables. As a program, this is the server: it
runs one client after the other, each a line of JSON on its standard input.
"""

from __future__ import annotations

import atexit
import gc
import importlib
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple, NoReturn

from tests.hub.server import ROOT, LocalHub

LIBRARIES = ("datasets", "pyarrow.dataset", "huggingface_hub.hf_api")
OWN = ("dataset_builders.publishing.publish", "verilocc_bench.dataset.hub", "verilocc_bench.cli")


class Program(NamedTuple):
    """A client that runs. Until it has ended no other can be started."""

    number: int
    told: IO[str]

    def kill(self) -> None:
        """Ends it at once."""
        os.kill(self.number, signal.SIGKILL)
        assert self.wait().returncode == -signal.SIGKILL

    def wait(self) -> subprocess.CompletedProcess[str]:
        """What became of it."""
        return subprocess.CompletedProcess((), *json.loads(self.told.readline()))


class Programs:
    """A server of clients."""

    def __init__(self, hub: LocalHub, **variables: str) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._home = Path(self._folder.name, "home")
        self._hub, self._variables = hub, variables | {"HF_HOME": str(self._home)}
        command = [sys.executable, "-W", "error::UserWarning", "-m", "tests.hub.programs"]
        environment, pipe = hub.environment(self._home, None) | self._variables, subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=environment, cwd=ROOT, stdin=pipe, stdout=pipe, text=True
        )
        atexit.register(self._close)

    def start(self, home: Path, token: str | None, *arguments: str) -> Program:
        """A client whose caches are in `home`."""
        home.mkdir(exist_ok=True)
        self._home.unlink(missing_ok=True)
        self._home.symlink_to(home)
        variables = self._hub.environment(self._home, token) | self._variables
        told, asked = self._process.stdout, self._process.stdin
        assert told is not None
        print(json.dumps([arguments, variables]), file=asked, flush=True)
        return Program(int(told.readline()), told)

    def _close(self) -> None:
        with self._process as process:
            process.terminate()
        self._folder.cleanup()


programs_of = cache(Programs)
"""The server of such clients of a Hub, which ends with the tests."""


def serve() -> None:
    """Starts programs as standard input says, and tells their numbers and ends."""
    for name in (*LIBRARIES, *OWN):
        importlib.import_module(name)
    gc.freeze()  # the search for garbage would copy to each child all that is here
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            child = os.fork()
            if child == 0:
                os.close(0)
                os.open(os.devnull, os.O_RDONLY)
                os.dup2(out.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                _run(*json.loads(line))
            print(child, flush=True)
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            errors.seek(0)
            print(json.dumps([status, out.read(), errors.read()]), flush=True)


def _run(arguments: list[str], variables: dict[str, str]) -> NoReturn:
    """What `python -c TEXT …` or `python -m MODULE …` does, to its end."""
    os.environ.clear()
    os.environ.update(variables)
    kind, what, *sys.argv[1:] = arguments
    status: object = 0
    try:
        if kind == "-m":
            runpy.run_module(what, run_name="__main__", alter_sys=True)
        else:
            exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else status is not None)


if __name__ == "__main__":
    serve()
