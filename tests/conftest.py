"""What all tests share: which of them are slow, and fixtures for compilers.

`make test-fast` leaves out the tests with the marker `slow`: those that train, compile, ask a
server or a browser, start many processes, or take more than a second of processor time. A whole
folder is slow if it stands in SLOW_FOLDERS, and a test if it asks for one of SLOW_FIXTURES. A slow
file says `pytestmark = pytest.mark.slow` below its imports; a slow test in a quick file has the
decorator `@pytest.mark.slow`.

`make test` leaves out the tests with the marker `exhaustive`: further cases of what it asks about
some (`tests/sampling.py`). `make test-exhaustive` asks about them.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

# Tests run in several processes: threads of one would wait for the cores of another, and torch's
# wait busily. Programs that tests start inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from tests.command_line import CommandLine
from tests.sampling import is_further
from verilocc_bench.backends.nvidia import tools as cuda_tools
from verilocc_bench.backends.nvidia.tools import CUDA_TOOLS, find_tool
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically

TESTS = Path(__file__).parent
SLOW_FOLDERS = ("benchmarks", "examples", "hub", "report", "training")
SLOW_FIXTURES = {"cuda", "llc"}

gc.disable()  # while modules are imported, hardly anything becomes garbage


def pytest_collection_finish() -> None:
    gc.enable()
    gc.set_threshold(10_000)  # each search for garbage visits all that was imported


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Without slow tests, passes over slow files: importing what they need takes long."""
    if config.option.markexpr != "not slow" or not collection_path.name.startswith("test_"):
        return None
    folder = collection_path.relative_to(TESTS).parts[0]
    slow = re.search(r"^pytestmark = \[?\s*pytest\.mark\.slow", collection_path.read_text(), re.M)
    return folder in SLOW_FOLDERS or slow is not None or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Marks the tests of slow folders and fixtures; leaves out what is asked for by name alone."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        fixtures = set(getattr(item, "fixturenames", ()))
        if folder in SLOW_FOLDERS or fixtures & SLOW_FIXTURES:
            item.add_marker(pytest.mark.slow)
        if is_further(item.nodeid):
            item.add_marker(pytest.mark.exhaustive)
    if "exhaustive" not in config.option.markexpr:
        further = [item for item in items if item.get_closest_marker("exhaustive")]
        if further:
            config.hook.pytest_deselected(items=further)
            items[:] = [item for item in items if not item.get_closest_marker("exhaustive")]


@pytest.fixture(scope="session", autouse=True)
def _disassembled_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What nvdisasm says of a cubin is kept for all tests of all processes.

    It takes a third of a second to say anything, and tests ask it about the same cubins.
    Tests of the call itself undo this by `__wrapped__`.
    """
    plain = cuda_tools._disassemble
    kept = tmp_path_factory.getbasetemp()
    kept = (kept.parent if "PYTEST_XDIST_WORKER" in os.environ else kept) / "disassembled"
    kept.mkdir(exist_ok=True)

    @functools.wraps(plain)
    def disassemble(
        cubin: bytes, options: Sequence[str], source: str | Path | None, symbols: Sequence[int]
    ) -> str:
        if "VERILOCC_BENCH_NVDISASM" in os.environ:
            return plain(cubin, options, source, symbols)
        find_tool("nvdisasm")  # an error if it is not there
        asked = repr((options, tuple(symbols))).encode()
        path = kept / hashlib.sha256(asked + b"\0" + cubin).hexdigest()
        if not path.exists():
            write_atomically(path, plain(cubin, options, source, symbols))
        return path.read_bytes().decode()

    cuda_tools._disassemble = disassemble


def find_llc() -> str | None:
    """The program `llc` of LLVM 22, or None."""
    for name in ("llc-22", "llc"):
        if path := shutil.which(name):
            version = subprocess.run(
                [path, "--version"], capture_output=True, text=True, check=False
            )
            if re.search(r"LLVM version 22\.", version.stdout):
                return path
    return None


def require_tools() -> None:
    """Skips where ptxas or nvdisasm is missing, but fails instead where CI is `true`."""
    try:
        for tool in CUDA_TOOLS:
            find_tool(tool)
    except InputError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def cuda() -> None:
    require_tools()


@pytest.fixture(scope="session")
def llc() -> Callable[..., str]:
    """Runs llc of LLVM 22 on a text and returns what it writes.

    With `check=False` it may complain, as long as it writes something.
    Skips where there is none, but fails instead where CI is `true`.
    """
    path = find_llc()
    if path is None:
        reason = "needs llc of LLVM 22 (Debian: llvm-22)"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)

    def run(text: str, arch: str, *options: str, check: bool = True) -> str:
        command = [path, "-mtriple=amdgcn-amd-amdhsa", f"-mcpu={arch}", *options, "-o", "-", "-"]
        result = subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=60, check=False
        )
        assert result.returncode == 0 or not check, result.stderr[:2000]
        return result.stdout

    return run


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    """The command line."""
    return CommandLine(capsys)
