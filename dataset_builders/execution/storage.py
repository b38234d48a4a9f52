"""A disk that takes no more: which errors those are, and the one line that says so."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verilocc_bench.errors import InputError

__all__ = ["is_storage_error", "storage_error", "storage_errors_named", "temporary_folder_is_full"]

_ERRNOS = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.ENOSPC,
        errno.EPERM,
        errno.EROFS,
    }
)
_LEAST_BYTES = 1 << 20


def is_storage_error(error: BaseException) -> bool:
    """Whether a disk is full, broken or not ours, which is no mistake of the program."""
    return isinstance(error, OSError) and error.errno in _ERRNOS


def storage_error(error: OSError, path: Path | str) -> InputError:
    """The error as one line that names a path: the error's own, else `path`."""
    source = error.filename if isinstance(error.filename, str | Path) else path
    return InputError(f"cannot be written: {error.strerror or error}", source=source)


@contextmanager
def storage_errors_named(path: Path) -> Iterator[None]:
    """Turns storage errors of the body into an InputError that names a path."""
    try:
        yield
    except OSError as error:
        if not is_storage_error(error):
            raise
        raise storage_error(error, path) from None


def temporary_folder_is_full() -> bool:
    """Whether the folder for temporary files has next to no room left."""
    return shutil.disk_usage(tempfile.gettempdir()).free < _LEAST_BYTES
