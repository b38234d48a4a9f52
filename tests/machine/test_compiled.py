"""Compilation: once, however many processes call a function for the first time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

FUNCTIONS = """
from verilocc_bench.machine.compiled import compiled

@compiled
def inner(number):
    return number + 1

@compiled
def outer(number):
    return inner(number) * 2
"""
SCRIPT = f"""
{FUNCTIONS}
import os

ready, begin = os.pipe()
children = []
for _ in range(2):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.read(ready, 1)
        said = [outer(4), sum(outer.stats.cache_hits.values())]
        os.write(writer, repr(said).encode())
        os._exit(0)
    children.append((child, reader))
os.write(begin, b"..")
for child, reader in children:
    os.waitpid(child, 0)
    print(os.read(reader, 100).decode())
"""


def test_of_processes_that_begin_at_once_one_compiles(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()) == ["[10, 0]", "[10, 1]"]
    again = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert again.stdout.splitlines() == ["[10, 1]", "[10, 1]"]


PARTS = f"""
{FUNCTIONS}
(part,) = [outer(4)] and inner.overloads.values()
print(type(part.library).__name__, inner(1), outer(1))
(whole,) = inner.overloads.values()
print(type(whole.library).__name__)
"""


def test_a_part_of_other_code_becomes_whole_when_python_calls_it(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(PARTS)
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["_Part 2 4", "JITCodeLibrary"]
