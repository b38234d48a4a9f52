"""`verilocc-bench completion`: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from verilocc_bench.cli.argument_types import output_file, output_folder
from verilocc_bench.errors import MissingExtraError

_NAMES = {"bash": "bash", "zsh": "zsh", "fish": "fish"}
_FOLDERS = ("DIR", "FOLDER", "RUN")


def run(options: argparse.Namespace) -> int:
    """Prints the script for a shell. Raises MissingExtraError without shtab."""
    try:
        import shtab
    except ImportError:
        raise MissingExtraError("shtab", "completion", "completion in a shell") from None
    from verilocc_bench.cli import build_parser

    parser = build_parser()
    for action in _actions(parser):
        if action.type in (Path, output_file, output_folder):
            folder = action.type is output_folder or action.metavar in _FOLDERS
            # Where shtab looks for it.
            action.complete = shtab.DIRECTORY if folder else shtab.FILE  # type: ignore[attr-defined]
        elif action.dest in ("instance", "recipe"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    print(shtab.complete(parser, shell=_NAMES[options.shell]))
    return 0


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """All actions of a parser and of the parsers of its commands."""
    for action in parser._actions:
        yield action
        if isinstance(action, argparse._SubParsersAction):
            choices: dict[str, Any] = action.choices
            for each in choices.values():
                yield from _actions(each)
