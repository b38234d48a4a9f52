"""The command line where every folder passes its check, for datasets that are no whole ones.

As a program it runs one command, or with `--serve` one after the other, each in
a process that is forked when all libraries are imported: they read the
variables of the Hub only then, and take a second for it.
"""

from __future__ import annotations

import atexit
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
import types
from functools import cache
from pathlib import Path

from tests.hub.server import ROOT, LocalHub


class QuickPublisher:
    """A server of commands, that are clients of one Hub."""

    def __init__(self, hub: LocalHub) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.hub.unchecked", "--serve"],
            env=hub.environment(Path(self._home.name), None),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self.close)

    def run(self, arguments: list[str], token: str | None) -> subprocess.CompletedProcess[str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([arguments, token]), file=self._process.stdin, flush=True)
        status, said, errors = json.loads(self._process.stdout.readline())
        return subprocess.CompletedProcess(arguments, status, said, errors)

    def close(self) -> None:
        with self._process as process:
            process.terminate()
        self._home.cleanup()


@cache
def quick_publisher(hub: LocalHub) -> QuickPublisher:
    """The one of a Hub, which ends with the tests."""
    return QuickPublisher(hub)


def _main(arguments: list[str]) -> int:
    from verilocc_bench.cli import main

    module = types.ModuleType("dataset_builders.inspection.check")
    passed = types.SimpleNamespace(passed=True, findings=())
    vars(module)["check_dataset"] = lambda folder, **_: passed
    sys.modules[module.__name__] = module
    return main(arguments)


def _serve() -> None:
    for name in ("huggingface_hub.hf_api", "dataset_builders.publishing.publish"):
        importlib.import_module(name)
    for line in sys.stdin:
        arguments, token = json.loads(line)
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
            child = os.fork()
            if child == 0:
                os.dup2(out.fileno(), 1)
                os.dup2(errors.fileno(), 2)
                os._exit(_child(arguments, token))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            out.seek(0)
            errors.seek(0)
            print(json.dumps([status, out.read(), errors.read()]), flush=True)


def _child(arguments: list[str], token: str | None) -> int:
    if token is not None:
        os.environ["HF_TOKEN"] = token
    try:
        return _main(arguments)
    except BaseException as end:
        traceback.print_exc()
        return int(end.code) if isinstance(end, SystemExit) and isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    if sys.argv[1:] == ["--serve"]:
        _serve()
    else:
        sys.exit(_main(sys.argv[1:]))
