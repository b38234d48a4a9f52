"""Reading users' files with clear errors, and the one way in which files are written.

A regular file is replaced whole or stays as it was. A device, a pipe or an open
descriptor (`/dev/stdout`) cannot be replaced, and is written to. Symbolic links
are followed: what they lead to is written, and they stay.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from verilocc_bench.errors import InputError

MIB = 1 << 20
DEFAULT_LIMIT_BYTES = 256 * MIB
JSON_LIMIT_BYTES = 64 * MIB
"""A JSON document of brackets alone takes 40 times its size as Python objects."""

STANDARD_OUTPUT = Path("-")
"""How users name standard output where a file is expected."""

_MOST_LINKS = 40
_OWN_PIPE = re.compile(r"/dev/stdin|(/dev|/proc/self)/fd/\d+", re.ASCII)
"""Pipes that are open already, as `<(…)` of a shell: they have a writer, and end with it."""


def open_input(path: Path, limit_bytes: int | None = None) -> BinaryIO:
    """A regular file of at most `limit_bytes`, open for reading.

    Raises InputError for anything else, before anything is read. It never
    waits for another program, as the opening of a named pipe does.
    """
    return _open(path, limit_bytes, pipes=False)


def read_data(path: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """The bytes of a file of at most `limit_bytes`, but some. Raises InputError otherwise.

    A pipe that this process was given is read to its end: `/dev/stdin`, `/dev/fd/63`.
    """
    with _open(path, limit_bytes, pipes=True) as file:
        try:
            data = file.read(limit_bytes + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    if len(data) > limit_bytes:
        raise InputError(f"more than the {limit_bytes:,} bytes accepted here", source=path)
    if not data.strip():
        raise InputError("the file is empty", source=path)
    return data


def _open(path: Path, limit_bytes: int | None, *, pipes: bool) -> BinaryIO:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise InputError("there is no such file", source=path) from None
    except (OSError, ValueError) as error:  # a name with a NUL in it is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"cannot be read: {reason}", source=path) from None
    status = os.fstat(handle)
    if pipes and stat.S_ISFIFO(status.st_mode) and _OWN_PIPE.fullmatch(str(path)):
        os.set_blocking(handle, True)
        return os.fdopen(handle, "rb")
    problem = None
    if not stat.S_ISREG(status.st_mode):
        problem = "expected a file"
        if not stat.S_ISDIR(status.st_mode):
            problem += ", this is a device or a pipe"
    elif limit_bytes is not None and status.st_size > limit_bytes:
        problem = (
            f"the file has {status.st_size:,} bytes, more than the {limit_bytes:,} accepted here"
        )
    if problem is not None:
        os.close(handle)
        raise InputError(problem, source=path)
    return os.fdopen(handle, "rb")


def read_text(path: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> str:
    """The text of a UTF-8 file of at most `limit_bytes`. Raises InputError otherwise."""
    return decode_text(read_data(path, limit_bytes), path)


def decode_text(data: bytes, source: Path) -> str:
    """The text of UTF-8 data. Raises InputError, about `source`, for other data."""
    try:
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"expected UTF-8 text, byte {error.start} is not", source=source, line=line
        ) from None


def read_json(path: Path, limit_bytes: int = JSON_LIMIT_BYTES) -> Any:
    """The one JSON document of a file; see parse_json."""
    return parse_json(read_text(path, limit_bytes), path)


def parse_json(text: str, source: str | Path, line: int | None = None) -> Any:
    """A JSON document, strictly: no duplicate keys, no NaN or infinities.

    `line` is where the document stands in a file of many. Raises InputError.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            for key, _ in pairs:
                if key in seen:
                    raise InputError(f"key {key[:60]!r} stands twice", source=source, line=line)
                seen.add(key)
        return found

    def refuse(name: str) -> float:
        raise InputError(f"{name} is not a JSON number", source=source, line=line)

    def finite(literal: str) -> float:
        value = float(literal)
        if not math.isfinite(value):
            raise InputError(f"{literal[:40]} is out of range", source=source, line=line)
        return value

    try:
        return json.loads(text, object_pairs_hook=unique, parse_constant=refuse, parse_float=finite)
    except json.JSONDecodeError as error:
        raise InputError(
            f"expected JSON: {error.msg}",
            source=source,
            line=error.lineno if line is None else line,
            column=error.colno,
        ) from None
    except RecursionError:
        raise InputError("JSON nested too deeply", source=source, line=line) from None
    except ValueError as error:  # an integer of too many digits
        raise InputError(f"expected JSON: {error}", source=source, line=line) from None


def file_sha256(path: Path) -> str:
    """The SHA-256, in hex, of a file's bytes, which are read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_hash(root: Path, paths: Iterable[Path]) -> str:
    """The SHA-256, in hex, of the contents of some files and of their paths below a folder."""
    digest = hashlib.sha256()
    for path in paths:
        name = path.relative_to(root).as_posix()
        digest.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def revision_of(paths: Iterable[Path]) -> str:
    """The SHA-256, in hex, of names and contents; files are read in pieces, however large."""
    total = hashlib.sha256()
    for path in paths:
        total.update(f"{path.name}\n{file_sha256(path)}\n".encode())
    return total.hexdigest()


def write_output(path: Path | None, data: str | bytes) -> None:
    """Writes what a user asked for to a file, or to standard output for None and `-`."""
    if path is not None and path != STANDARD_OUTPUT:
        write_atomically(path, data)
    elif sys.stdout is None:
        raise InputError("cannot be written: it is closed", source="standard output")
    elif isinstance(data, str):
        sys.stdout.write(data)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def write_atomically(path: Path, data: str | bytes | Iterable[str]) -> None:
    """Writes a file, of one piece or of many; see opened_to_write."""
    with opened_to_write(path) as file:
        for piece in (data,) if isinstance(data, str | bytes) else data:
            file.write(piece.encode() if isinstance(piece, str) else piece)


class AppendedFile:
    """A file that is only ever added to; several processes may do so at once.

    Folders that are missing are made. Raises InputError where that fails, and for what
    is not a plain file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Without O_NONBLOCK a pipe of this name would wait for its reader.
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o666)
        except OSError as error:
            raise _cannot_write(path, error) from None
        if not stat.S_ISREG(os.fstat(self._file).st_mode):
            os.close(self._file)
            raise InputError("expected a plain file", source=path)

    def append(self, data: bytes) -> None:
        """Writes all of it, by one write where the system can."""
        rest = memoryview(data)
        try:
            while rest:
                rest = rest[os.write(self._file, rest) :]
        except OSError as error:
            raise _cannot_write(self.path, error) from None

    def close(self) -> None:
        """Closes the file."""
        os.close(self._file)


def _cannot_write(path: Path, error: OSError) -> InputError:
    return InputError(f"cannot be written: {error.strerror or error}", source=path)


@contextmanager
def opened_to_write(path: Path) -> Iterator[BinaryIO]:
    """A file to write to, which is in its place, whole, when the body ends without an error.

    An existing file keeps its mode, and its owner where that is permitted;
    folders that are missing are made. Anything but a regular file is written to
    at once: a pipe waits for its reader. Raises InputError where that fails.
    """
    try:
        number = _descriptor(path)
        if number is not None:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
            opened = os.dup(number)
        elif is_stream(path):
            opened = os.open(path, os.O_WRONLY | os.O_NOCTTY | os.O_CLOEXEC)
        else:
            with _replacement(Path(os.path.realpath(path)), path) as file:
                yield file
            return
        with os.fdopen(opened, "wb") as file:
            yield file
    except OSError as error:
        raise _cannot_write(path, error) from None


def is_stream(path: Path) -> bool:
    """Whether what is written to `path` goes to a device, a pipe or standard output."""
    if path == STANDARD_OUTPUT:
        return True
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


def _descriptor(path: Path) -> int | None:
    """The open file of this process that a path such as /dev/stdout leads to.

    Its path would do for a terminal or a pipe. A regular file that is opened
    again by its path is written from its beginning, over what others wrote.
    """
    own = Path("/proc/self/fd").resolve()
    for _ in range(_MOST_LINKS):
        if path.name.isdecimal() and path.parent.resolve() == own:
            return int(path.name)
        if not path.is_symlink():
            return None
        path = path.parent / path.readlink()
    return None


@contextmanager
def _replacement(target: Path, named: Path) -> Iterator[BinaryIO]:
    """A new file beside `target`, a path without links, which takes its place at the end."""
    old = None
    try:
        old = target.stat()
    except FileNotFoundError:
        target.parent.mkdir(parents=True, exist_ok=True)
    if old is not None:
        if stat.S_ISDIR(old.st_mode):
            raise InputError("expected a file, this is a folder", source=named)
        # Renaming asks for no permission on the file itself, but its owner may protect it.
        os.close(os.open(target, os.O_WRONLY | os.O_CLOEXEC))
    temporary = target.with_name(f".{target.name[:32]}.{secrets.token_hex(8)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if old is not None:
                # Only root may give files away; a member of a group may give them to the group.
                for owner in (old.st_uid, -1):
                    with suppress(PermissionError):
                        os.fchown(handle, owner, old.st_gid)
                        break
                os.fchmod(handle, stat.S_IMODE(old.st_mode) & 0o777)
            os.fsync(handle)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
