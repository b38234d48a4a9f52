"""Finds the lines of a file of answers without holding them in memory, within bounds.

The lines of a function may be anywhere in the file; its samples keep their
order. Compressed files are unpacked next to the results, but only up to the
length that honest answers to these functions can have.
"""

from __future__ import annotations

import hashlib
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from leaderboard.folder import open_file
from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.files import opened_to_write

PIECE_BYTES = 1 << 20
LINE_BYTES = 4_096
"""Bytes that any line may have: for an id, or a failure's message."""

REGISTER_BYTES = 48
"""Bytes for each virtual register: `"%1234": "ttmp12", ` has 20."""

EDIT_BYTES = 256
"""Bytes for each virtual register and each instruction on the split track."""

_ID = re.compile(rb'\s*\{\s*"id"\s*:\s*"([0-9a-f]{16})"')


@dataclass(slots=True)
class FunctionLines:
    """The places of a function's samples, as (offset, length), and a hash of them.

    `count` is the number of samples; `places` holds at most the allowed number.
    """

    count: int = 0
    places: list[tuple[int, int]] = field(default_factory=list)
    digest: hashlib._Hash = field(default_factory=hashlib.sha256)


@dataclass(slots=True)
class FoundLines:
    """The lines of a file by function; the number of lines of other functions, and the first."""

    functions: dict[str, FunctionLines] = field(default_factory=dict)
    strange: str | None = None
    strange_lines: int = 0


def byte_limits(rows: Mapping[str, Row]) -> dict[str, int]:
    """The longest answer to each function, in bytes."""
    found = {}
    for identifier, row in rows.items():
        limit = LINE_BYTES + REGISTER_BYTES * row.n_virtual_registers
        if row.track == "split":
            limit += EDIT_BYTES * (row.n_virtual_registers + row.n_instructions)
        found[identifier] = limit
    return found


def check_size(path: Path, limit_bytes: int) -> None:
    """Raises InputError for a file of more than `limit_bytes`, before any byte is read.

    The limit holds for compressed files, too: they are not longer.
    """
    handle = open_file(path)
    try:
        if os.fstat(handle).st_size > limit_bytes:
            raise _too_long(path, limit_bytes)
    finally:
        os.close(handle)


def unpacked(path: Path, work: Path, limit_bytes: int) -> Path:
    """The file itself, or its content unpacked into `work`.

    Raises InputError if the content has more than `limit_bytes`, or cannot be
    unpacked.
    """
    check_size(path, limit_bytes)
    with os.fdopen(open_file(path), "rb") as file:
        if path.suffix != ".gz":
            return path
        target = work / "answers.jsonl"
        with opened_to_write(target) as unpacked_file:
            written = 0
            for piece in _pieces(file, path):
                written += len(piece)
                if written > limit_bytes:
                    raise _too_long(path, limit_bytes)
                unpacked_file.write(piece)
    return target


def _pieces(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The content of a gzip file of one member. Anything behind it could hide much work."""
    unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    data = b""
    try:
        while not unpacker.eof:
            data = unpacker.unconsumed_tail or file.read(PIECE_BYTES)
            piece = unpacker.decompress(data, PIECE_BYTES)
            if piece:
                yield piece
            elif not data:
                raise InputError("cannot be unpacked: it ends in the middle", source=path)
    except (OSError, zlib.error) as error:
        raise InputError(f"cannot be unpacked: {error}", source=path) from None
    if unpacker.unused_data or file.read(1):
        raise InputError("expected nothing behind the compressed answers", source=path)


def _too_long(path: Path, limit_bytes: int) -> InputError:
    return InputError(
        f"more than the {limit_bytes:,} bytes that answers to these functions can have",
        source=path,
    )


def index_lines(path: Path, limits: Mapping[str, int], samples: int, shown: Path) -> FoundLines:
    """The lines of each function in `limits`, and the number of lines of other functions.

    Keeps at most `samples` + 1 places of each function. Raises InputError,
    which names `shown`, for a line that is too long or does not begin with its
    id.
    """
    found = FoundLines()
    longest = max(limits.values(), default=LINE_BYTES)
    offset = number = 0
    with os.fdopen(open_file(path), "rb") as file:
        while line := file.readline(longest + 2):
            number += 1
            matched = _ID.match(line)
            if matched is None:
                raise InputError(
                    'expected a line that begins with {"id": …}, 16 hexadecimal digits',
                    source=shown,
                    line=number,
                )
            identifier = matched[1].decode()
            limit = limits.get(identifier, longest)
            if len(line.rstrip(b"\n")) > limit:
                raise InputError(
                    f"longer than the {limit:,} bytes that an answer to {identifier} can have",
                    source=shown,
                    line=number,
                )
            if identifier not in limits:
                found.strange = found.strange or identifier
                found.strange_lines += 1
            else:
                lines = found.functions.setdefault(identifier, FunctionLines())
                lines.count += 1
                if lines.count <= samples:
                    lines.places.append((offset, len(line)))
                    lines.digest.update(line.rstrip(b"\n") + b"\n")
            offset += len(line)
    return found
