"""Fixtures that several rooms of the tests share."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Callable

import pytest

from verilocc_bench.backends.nvidia.tools import CUDA_TOOLS, find_tool
from verilocc_bench.errors import InputError


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


@pytest.fixture(scope="session")
def cuda() -> None:
    """Skips where ptxas or nvdisasm is missing, but fails instead where CI is `true`."""
    try:
        for tool in CUDA_TOOLS:
            find_tool(tool)
    except InputError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


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
