"""Reading users' files with clear errors, and writing files whole or not at all."""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from verilocc_bench.errors import InputError

__all__ = [
    "decode_text",
    "parse_json",
    "read_data",
    "read_json",
    "read_text",
    "write_atomically",
]

MIB = 1 << 20
DEFAULT_LIMIT_BYTES = 256 * MIB


def read_data(path: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> bytes:
    """The bytes of a file of at most `limit_bytes`, but some. Raises InputError otherwise."""
    try:
        size = path.stat().st_size
        if not path.is_file():
            raise InputError("expected a file", source=path)
        if size > limit_bytes:
            raise InputError(
                f"the file has {size:,} bytes, more than the {limit_bytes:,} accepted here",
                source=path,
            )
        data = path.read_bytes()
    except FileNotFoundError:
        raise InputError("there is no such file", source=path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    if not data.strip():
        raise InputError("the file is empty", source=path)
    return data


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


def read_json(path: Path, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> Any:
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
        raise InputError(f"{name} is no JSON number", source=source, line=line)

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


def write_atomically(path: Path, data: str | bytes | Iterable[str]) -> None:
    """Writes a file, of one piece or of many, so that it is there whole or not at all.

    Makes its folder.
    """
    pieces = (data,) if isinstance(data, str | bytes) else data
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                for piece in pieces:
                    file.write(piece.encode() if isinstance(piece, str) else piece)
                file.flush()
                os.fsync(file.fileno())
            umask = os.umask(0)
            os.umask(umask)
            Path(temporary).chmod(0o666 & ~umask)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", source=path) from None
