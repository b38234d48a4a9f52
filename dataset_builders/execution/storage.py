"""Errors of full or broken disks, and the one line that reports them."""

from __future__ import annotations

import errno
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from verilocc_bench.errors import InputError

_ERRNOS = frozenset(
    {errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC, errno.EPERM, errno.EROFS}
)
_LEAST_BYTES = 1 << 20


def is_storage_error(error: BaseException) -> bool:
    """True if a disk is full, broken or read-only: a fault of the machine, not of the program."""
    return isinstance(error, OSError) and error.errno in _ERRNOS


def storage_error(error: OSError, path: Path | str) -> InputError:
    """The error as one line with a path: the error's own, or else `path`."""
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
    """True if the folder for temporary files has less than 1 MiB of room left."""
    return shutil.disk_usage(tempfile.gettempdir()).free < _LEAST_BYTES
