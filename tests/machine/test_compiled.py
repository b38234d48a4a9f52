"""Compilation: once, however many processes call a function for the first time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SCRIPT = """
import os
from verilocc_bench.machine.compiled import compiled

@compiled
def inner(number):
    return number + 1

@compiled
def middle(number):
    return inner(number) * 2

@compiled
def outer(number):
    return middle(number) - inner(number) + 5

(part,) = [outer(4)] and inner.overloads.values()
print(type(part.library).__name__, inner(1), outer(1))
(whole,) = inner.overloads.values()
print(type(whole.library).__name__)

@compiled
def other(number):
    return number * 3

def called_by(count):
    ready, begin = os.pipe()
    children = []
    for _ in range(count):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.read(ready, 1)
            said = [other(4), sum(other.stats.cache_hits.values())]
            os.write(writer, repr(said).encode())
            os._exit(0)
        children.append((child, reader))
    os.write(begin, b"." * count)
    for child, reader in children:
        os.waitpid(child, 0)
        yield os.read(reader, 100).decode()

print(*sorted(called_by(2)), *called_by(1))
"""


def test_a_function_is_compiled_once(tmp_path: Path) -> None:
    """A part, and a part of a part, become whole when Python calls them; what is kept is taken.

    Of two that begin at once one compiles.
    """
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["_Part 2 7", "_Whole", "[12, 0] [12, 1] [12, 1]"]
