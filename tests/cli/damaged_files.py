"""Damaged copies of files, each through the commands that read such a file.

A command may find nothing wrong, or say in one line what is wrong. It must not end in a
traceback, hang, or leave half a file behind.
"""

from __future__ import annotations

import contextlib
import io
import random
import shutil
import signal
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from verilocc_bench.cli import main

SECONDS = 600
"""How long a command may take before it counts as hung."""
HEADER_BYTES = 64
LONGEST_LINE = 1000

Program = Callable[[Sequence[str]], int]
Commands = Callable[[Path, Path], Iterable[Sequence[object]]]
"""The commands for a damaged file and a folder, which is empty before each of them."""


@dataclass(frozen=True)
class DamagedKind:
    """A whole file, and the commands that read such files.

    A command that begins with a function is run by it, others by the command line. Not
    `with_whole`, if another kind shows that the commands read the whole file.
    """

    name: str
    whole: bytes
    commands: Commands
    with_whole: bool = True


class Hang(BaseException):
    """A command took too long."""


def damaged(whole: bytes, generator: random.Random) -> bytes:
    """A copy with one to three places changed: flipped, cut off, repeated, lost or blotted out."""
    data = bytearray(whole)
    for _ in range(generator.choice((1, 1, 2, 3))):
        if not data:
            break
        # Files say at their beginning, some at their end, how the rest is to be read.
        where = generator.choice(("anywhere", "anywhere", "head", "tail"))
        head = min(len(data), HEADER_BYTES)
        start = generator.randrange(head if where == "head" else len(data))
        if where == "tail":
            start = len(data) - 1 - start // 4
        length = min(generator.choice((1, 1, 2, 4, 8, 32, 200)), len(data) - start)
        stop = start + length
        match generator.randrange(7):
            case 0:
                data[start] ^= 1 << generator.randrange(8)
            case 1:
                data[start:stop] = generator.randbytes(length)
            case 2:
                data[start:stop] = bytes([generator.choice((0, 0xFF, 0x7F, 0x39, 0x20))]) * length
            case 3:
                del data[generator.randrange(len(data)) :]
            case 4:
                data[start:start] = data[start:stop] * generator.choice((1, 2, 50))
            case 5:
                del data[start:stop]
            case _:
                other = generator.randrange(len(data))
                data[start:stop] = data[other : other + length]
    return bytes(data)


def faults(
    kind: DamagedKind, seed: int, copies: int, folder: Path, *, whole: bool
) -> Iterator[str]:
    """What goes wrong with damaged copies: the copy, the command, and what it did.

    With `whole`, a whole copy comes first, which shows that the commands read it.
    """
    for number in range(0 if whole and kind.with_whole else 1, copies + 1):
        content = kind.whole
        if number > 0:
            content = damaged(kind.whole, random.Random(f"{kind.name} {seed} {number}"))
        home = folder / f"{Path(kind.name).stem}-{number}"
        path, out = home / kind.name, home / "out"
        out.mkdir(parents=True)
        path.write_bytes(content)
        for command in kind.commands(path, out):
            fault = _fault_of(command, home, whole=number == 0)
            if fault is not None:
                words = " ".join(str(each) for each in command)
                yield f"{kind.name}, copy {number} of seed {seed}: {words}\n{fault}"
            shutil.rmtree(out)
            out.mkdir()
            path.write_bytes(content)
        shutil.rmtree(home)


def _fault_of(command: Sequence[object], home: Path, *, whole: bool) -> str | None:
    """What is wrong about one command, or None."""
    before = set(home.rglob("*"))
    words = [str(word) for word in command if not callable(word)]
    program: Program = next((word for word in command if callable(word)), main)
    printed, told = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
        status = _status(program, words)
    line = told.getvalue()
    if isinstance(status, str):
        return status
    if status not in {0, 1, 2} or "Traceback" in line + printed.getvalue():
        return f"status {status}\n{line}{printed.getvalue()}"
    if whole and status == 2:
        return f"the whole file is refused:\n{line}"
    if status == 2 and (line.count("\n") != 1 or len(line) > LONGEST_LINE):
        return f"status 2 without one clear line:\n{line}"
    left = [
        path.relative_to(home).as_posix()
        for path in set(home.rglob("*")) - before
        if path.is_file() and (status == 2 or path.name.startswith("."))
    ]
    return f"status {status}, and left behind {sorted(left)}\n{line}" if left else None


def _status(program: Program, words: Sequence[str]) -> int | str:
    """The exit status, or a traceback."""

    def stop(_number: int, _frame: object) -> None:
        raise Hang

    former = signal.signal(signal.SIGALRM, stop)
    signal.alarm(SECONDS)
    try:
        return program(words)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else f"exit {end.code}"
    except (Exception, Hang):
        return "".join(traceback.format_exception(*sys.exc_info()))
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, former)
