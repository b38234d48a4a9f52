"""Types of options of the command line, shared options, and how help shows their defaults."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from verilocc_bench.files import STANDARD_OUTPUT

MAX_THREADS = 1024
"""The largest work-group size of every target so far."""

MOST_TILES = 32


class HelpFormatter(argparse.HelpFormatter):
    """Shows the defaults of options that have one."""

    def _get_help_string(self, action: argparse.Action) -> str | None:
        default = action.default
        if default is None or isinstance(default, bool) or default == argparse.SUPPRESS:
            return action.help
        if "(default:" in (action.help or ""):
            return action.help
        shown = ",".join(map(str, default)) if isinstance(default, tuple) else default
        return f"{action.help} (default: {shown})"


Arguments = argparse.ArgumentParser | argparse._ArgumentGroup
"""What options are added to."""


def add_output(
    parser: Arguments, help_text: str, *, folder: bool = False, required: bool = False
) -> None:
    """Adds `--output`, a file or a folder to write to."""
    kind, metavar = (output_folder, "DIR") if folder else (output_file, "FILE")
    parser.add_argument(
        "-o", "--output", type=kind, required=required, metavar=metavar, help=help_text
    )


def add_other(parser: Arguments) -> None:
    """Adds the second answer of a comparison."""
    help_text = "a file with another; by default the compiler's own assignment"
    parser.add_argument("other", metavar="OTHER", type=Path, nargs="?", help=help_text)


def add_arrays(parser: Arguments) -> None:
    """Adds the arguments of a kernel of one's own."""
    parser.add_argument(
        "--arguments",
        type=Path,
        metavar="ARRAYS.npz",
        help="the arguments in the order of the kernel's: arrays, and arrays without dimensions "
        "for numbers",
    )


def natural(text: str) -> int:
    """A number from 0."""
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        most = ", of at most 18 digits" if text.isdecimal() else ""
        raise argparse.ArgumentTypeError(f"expected a number from 0{most}, not {text[:40]!r}")
    return int(text)


def positive(text: str) -> int:
    """A number from 1."""
    value = natural(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"expected a positive number, not {text[:40]!r}")
    return value


def tiles(text: str) -> int:
    """Tiles in each dimension of a grid, for which a reference is computed."""
    value = positive(text)
    if value > MOST_TILES:
        raise argparse.ArgumentTypeError(f"expected at most {MOST_TILES}, not {text[:40]!r}")
    return value


def address(text: str) -> int:
    """The address of an instruction, such as 0x40."""
    try:
        return int(text, 0)
    except ValueError:
        message = f"expected an address such as 0x40, not {text[:40]!r}"
        raise argparse.ArgumentTypeError(message) from None


def budget(text: str) -> Any:
    """Which registers a kernel is asked with."""
    from verilocc_bench.dataset.tight_budgets import BudgetChoice

    try:
        return BudgetChoice(text)
    except ValueError:
        choices = ", ".join(BudgetChoice)
        raise argparse.ArgumentTypeError(f"expected {choices}, not {text[:40]!r}") from None


def threads(text: str) -> int:
    """Threads of a work-group."""
    value = positive(text)
    if value > MAX_THREADS:
        raise argparse.ArgumentTypeError(f"expected at most {MAX_THREADS}, not {text[:40]!r}")
    return value


def names(text: str) -> tuple[str, ...]:
    """Reads names with commas between them; each may stand once."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if not found:
        raise argparse.ArgumentTypeError("expected names with commas between them")
    return found


def numbers(text: str) -> tuple[int, ...]:
    """Reads numbers from 1 with commas between them, and sorts them."""
    return tuple(sorted({positive(part.strip()) for part in text.split(",")}))


def output_file(text: str) -> Path:
    """Reads the path of a file to write, which need not exist; or a device, a pipe or `-`."""
    path = Path(text)
    if path == STANDARD_OUTPUT and text != str(STANDARD_OUTPUT):  # ./- is a file
        path = path.absolute()
    if _is_there(path) and path.is_dir():
        raise argparse.ArgumentTypeError(f"expected a file, {text} is a folder")
    return path


def output_folder(text: str) -> Path:
    """Reads the path of a folder to write to, which need not exist."""
    path = Path(text)
    if not text:
        raise argparse.ArgumentTypeError("expected a folder, not an empty name")
    if text == str(STANDARD_OUTPUT):
        raise argparse.ArgumentTypeError("expected a folder, - stands for standard output")
    if _is_there(path) and not path.is_dir():
        raise argparse.ArgumentTypeError(f"expected a folder, {text} is a file")
    return path


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise argparse.ArgumentTypeError(f"{str(path)[:80]}: {error.strerror}") from None
