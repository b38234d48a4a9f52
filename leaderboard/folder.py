"""The files of a submission: a flat folder of plain files under known names."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from verilocc_bench.errors import InputError

SUBMISSION = "submission.yaml"
ANSWERS = ("answers.jsonl", "answers.jsonl.gz")
README = "README.md"
README_BYTES = 1 << 20
_KNOWN = frozenset({SUBMISSION, README, *ANSWERS})


def check_folder(folder: Path) -> None:
    """Raises InputError if a folder holds anything but plain files with known names.

    Opens no file.
    """
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
            for entry in found:
                name = entry.name.encode(errors="surrogateescape").decode(errors="replace")
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISLNK(mode):
                    raise InputError(
                        f"{name!r} is a link: only plain files are taken", source=folder
                    )
                if name not in _KNOWN:
                    expected = ", ".join(sorted(_KNOWN))
                    raise InputError(
                        f"{name[:60]!r} does not belong to a submission; known files: {expected}",
                        source=folder,
                    )
                if not stat.S_ISREG(mode):
                    raise InputError(f"{name!r} is not a plain file", source=folder)
                size = entry.stat(follow_symlinks=False).st_size
                if name == README and size > README_BYTES:
                    raise InputError(
                        f"{README} has {size:,} bytes, more than the {README_BYTES:,} accepted",
                        source=folder,
                    )
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=folder) from None
    names = {entry.name for entry in found}
    if SUBMISSION not in names:
        raise InputError(f"there is no {SUBMISSION}", source=folder)
    if len(names & set(ANSWERS)) != 1:
        raise InputError(f"expected one of {' and '.join(ANSWERS)}", source=folder)


def answers_file(folder: Path) -> Path:
    """The file of answers of a folder that was checked."""
    return next(folder / name for name in ANSWERS if (folder / name).exists())


def open_file(path: Path) -> int:
    """A descriptor of a plain file. Raises InputError for a link or anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=path) from None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InputError("expected a plain file", source=path)
    return handle


def read_small(path: Path, limit_bytes: int) -> bytes:
    """The bytes of a plain file, at most `limit_bytes` + 1 of them."""
    with os.fdopen(open_file(path), "rb") as file:
        return file.read(limit_bytes + 1)
