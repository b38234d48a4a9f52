"""The command line: one module a command, imported when the command runs.

Exit status: 0 done, 1 a well-formed answer that is wrong, 2 bad input or
usage (one line on standard error), 69 `evaluate` got no answer, because a server
or the machine failed every time, 70 an error of this program: a proof and a
valid answer contradict each other, 130 interrupted.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import importlib.util
import io
import os
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

from verilocc_bench import __version__
from verilocc_bench.cli.arguments import add_commands
from verilocc_bench.errors import ContradictionError, InputError, did_you_mean

__all__ = ["build_parser", "main"]

INTERRUPTED = 130
INTERNAL_ERROR = 70
"""EX_SOFTWARE of sysexits.h."""

_INVALID_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)$")
_SHARED_NAMES = frozenset({"leaderboard", "dataset_builders"})
"""Packages of verilocc-bench whose names another project may use, too."""

_OUTPUT_ERRORS = frozenset({errno.ENOSPC, errno.EIO, errno.EDQUOT})
_PATH_ERRORS = frozenset({errno.ENAMETOOLONG, errno.EACCES, errno.ELOOP})
"""Of paths that a user gave: all that looks for a file may raise these."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Prints one line, as for every other error; the usage is under --help."""
        if wrong := _INVALID_CHOICE.search(message):
            message += did_you_mean(wrong[1], re.findall(r"'([^']*)'", wrong[2]))
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")


def _other_package(name: str) -> str:
    """The words for a package that another project installed under the name of one of ours."""
    found = importlib.util.find_spec(name)
    where = "" if found is None or found.origin is None else f" in {Path(found.origin).parent}"
    return (
        f"the package {name!r}{where} is another project's, not verilocc-bench's; "
        "install it into an environment of its own"
    )


@cache
def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line: one for all commands that a process runs."""
    parser = _Parser(
        prog="verilocc-bench",
        description="Register allocation on GPU kernels: datasets, verifier, evaluation.",
    )
    parser.add_argument("--version", action="version", version=f"verilocc-bench {__version__}")
    add_commands(parser.add_subparsers(dest="command", metavar="COMMAND"))
    return parser


def _parsed(parser: argparse.ArgumentParser, arguments: Sequence[str] | None) -> argparse.Namespace:
    options, late = parser.parse_known_args(arguments)
    # argparse passes over a file that need not be given if an option stands before it.
    for name in ("answer", "other"):
        if late and not late[0].startswith("-") and getattr(options, name, late) is None:
            setattr(options, name, Path(late.pop(0)))
    if late:
        parser.error(f"unrecognized arguments: {' '.join(late)}")
    return options


def _open_closed_streams() -> None:
    """Opens the null device in place of standard streams that are closed.

    Otherwise the next file that is opened takes the place of such a stream, and
    receives what is printed there.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is not None:
            continue
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
        mode = "r" if name == "stdin" else "w"
        setattr(sys, name, open(number, mode, encoding="utf-8", closefd=False))  # noqa: SIM115


def _give_up_output() -> None:
    """Drops what is still in the buffer, so that Python does not try again at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError) -> str:
    """What a user is told of a path that cannot be, or of output that cannot be written.

    Raises any other error again.
    """
    if error.errno in _PATH_ERRORS and error.filename is not None:
        return f"{str(error.filename)[:200]}: {error.strerror}"
    if error.errno not in _OUTPUT_ERRORS or error.filename is not None:
        raise error
    _give_up_output()
    return f"cannot write to standard output: {error.strerror}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns its exit status."""
    _open_closed_streams()
    parser = build_parser()
    options = _parsed(parser, arguments)
    if options.command is None:
        parser.print_help(sys.stderr)
        return 2
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        module = importlib.import_module(options.module)
        status: int = module.run(options)
        if sys.stdout is not None:
            sys.stdout.flush()
    except InputError as error:
        print(f"verilocc-bench {options.command}: {error}", file=sys.stderr)
        return 2
    except ImportError as error:
        package = (error.name or "").split(".")[0]
        if package not in _SHARED_NAMES:
            raise
        message = _other_package(package)
        print(f"verilocc-bench {options.command}: {message}", file=sys.stderr)
        return 2
    except ContradictionError as error:
        message = f"internal error, please report it: {error}"
        print(f"verilocc-bench {options.command}: {message}", file=sys.stderr)
        return INTERNAL_ERROR
    except KeyboardInterrupt:
        print(f"verilocc-bench {options.command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone; there is nobody to tell.
        _give_up_output()
        return 1
    except OSError as error:
        print(f"verilocc-bench {options.command}: {_reason(error)}", file=sys.stderr)
        return 2
    return status
