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
import pickle
import re
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

# Tests run in several processes: threads of one would wait for the cores of another, and torch's
# wait busily. Programs that tests start inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest

from tests.command_line import CommandLine
from tests.sampling import is_further
from verilocc_bench import tool_process
from verilocc_bench.backends.amdgpu import tools as amdgpu_tools
from verilocc_bench.backends.amdgpu.recovery import assembler
from verilocc_bench.backends.nvidia import tools as cuda_tools
from verilocc_bench.backends.nvidia.tools import CUDA_TOOLS, find_tool
from verilocc_bench.errors import InputError
from verilocc_bench.files import write_atomically
from verilocc_bench.machine import disassembly

TESTS = Path(__file__).parent
SLOW_FOLDERS = ("benchmarks", "examples", "hub", "report", "training")
SLOW_FIXTURES = {"cuda", "llc"}
SHARED_TOOLS = re.compile(
    r"(/usr|.*/nvidia/cu)\S*/bin/(llc|llvm-mc|llvm-objdump|nvdisasm|ptxas)(-22)?"
)

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
def _tools_run_once(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a compiler or disassembler makes of a file is kept for all tests of all processes.

    nvdisasm takes a third of a second to say anything, and tests ask about the same files.
    Tests of the call itself undo this by `__wrapped__`.
    """
    plain, kept = tool_process.run_tool, tmp_path_factory.getbasetemp()
    kept = (kept.parent if "PYTEST_XDIST_WORKER" in os.environ else kept) / "tools"
    kept.mkdir(exist_ok=True)

    @functools.wraps(plain)
    def run_tool(
        tool: Path, arguments: Sequence[str], folder: Path, *rest: Any, **given: Any
    ) -> subprocess.CompletedProcess[bytes]:
        read = {each for each in arguments if (folder / each).is_file()}
        if not SHARED_TOOLS.fullmatch(str(tool)) or len(read) != 1:
            return plain(tool, arguments, folder, *rest, **given)
        asked = repr((tool, [each for each in arguments if each not in read])).encode()
        content = b"\0".join((asked, *((folder / each).read_bytes() for each in read)))
        path = kept / hashlib.sha256(content).hexdigest()
        if not path.exists():
            done = plain(tool, arguments, folder, *rest, **given)
            if done.returncode:
                return done
            written = {each for each in arguments if (folder / each).is_file()} - read
            made = {each: (folder / each).read_bytes() for each in written}
            write_atomically(path, pickle.dumps((done, made)))
        done, made = pickle.loads(path.read_bytes())
        for name, data in made.items():
            (folder / name).write_bytes(data)
        return done

    for module in (amdgpu_tools, assembler, cuda_tools, disassembly):
        module.run_tool = run_tool


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
