"""Who gets standard output: results alone."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from verilocc_bench.errors import InputError
from verilocc_bench.files import STANDARD_OUTPUT
from verilocc_bench.settings.allocator import AllocatorSettings
from verilocc_bench.settings.search import SearchSettings


def summary_stream(output: Path | None, *, json: bool) -> TextIO:
    """The stream for a command's summary: standard error if `-o -` takes standard output.

    Raises InputError if --json asks for standard output too.
    """
    if output != STANDARD_OUTPUT:
        return sys.stdout
    if json:
        raise InputError("-o - and --json both ask for standard output: give -o FILE")
    return sys.stderr


@contextlib.contextmanager
def reserved_stdout() -> Iterator[TextIO | None]:
    """A stream to standard output; everything else written there goes to standard error.

    That holds for allocators in C and for the processes that they start, too.
    None without a standard output.
    """
    try:
        sys.stdout.flush()
        is_process_output = sys.stdout.fileno() == 1
        saved = os.dup(1) if is_process_output else -1
        if is_process_output:
            os.dup2(2, 1)
    except (AttributeError, OSError, ValueError):  # closed, or a stream of somebody's own
        yield sys.stdout
        return
    if not is_process_output:
        yield sys.stdout
        return
    encoding = sys.stdout.encoding
    with os.fdopen(saved, "w", encoding=encoding, errors="backslashreplace") as stream:
        try:
            yield stream
        finally:
            with contextlib.suppress(ValueError):  # an allocator may have closed it
                sys.stdout.flush()
            os.dup2(saved, 1)


def tell_objective(options: argparse.Namespace, model: str, settings: AllocatorSettings) -> None:
    """Says on standard error what an allocator that searches is after."""
    if isinstance(settings, SearchSettings):
        line = f"verilocc-bench {options.command}: {model}: objective {settings.objective}"
        print(line, file=sys.stderr)
