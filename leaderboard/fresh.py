"""Opens and closes a board of fresh kernels, which nobody can have trained on before it opens.

    python -m leaderboard.fresh open NAME --dataset DIR
    python -m leaderboard.fresh close NAME --seed SEED

DIR is what `verilocc-bench build --sweep fresh --seed SEED --beside PUBLISHED` wrote, and
PUBLISHED the folder of the published dataset. Opening adds the board to boards.json, with the
SHA-256 of the seed. Closing adds the seed. Anybody can then build the same kernels, which
shows that nobody chose them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from leaderboard.boards import BOARDS, Board
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.files import read_json, write_atomically

FRESH = "fresh"
"""The sweep of such a dataset: its manifest has this name, a colon, and the seed's SHA-256."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(
        prog="python -m leaderboard.fresh", description=(__doc__ or "").splitlines()[0]
    )
    commands = parser.add_subparsers(dest="command", required=True)
    opening = commands.add_parser("open", help="add a board")
    opening.add_argument("--dataset", type=Path, required=True, metavar="DIR")
    closing = commands.add_parser("close", help="publish a board's seed")
    closing.add_argument("--seed", required=True)
    for each in (opening, closing):
        each.add_argument("name", metavar="NAME")
        each.add_argument("--boards", type=Path, default=BOARDS, help="default: %(default)s")
    options = parser.parse_args(arguments)
    try:
        known = read_json(options.boards)
        if not isinstance(known, list) or not all(
            isinstance(each, dict) and "name" in each for each in known
        ):
            raise InputError("expected a list of boards with names", source=options.boards)
        if options.command == "open":
            changed = [*known, opened(options.name, options.dataset, known)]
        else:
            changed = closed(options.name, options.seed, known)
        write_atomically(options.boards, json.dumps(changed, indent=1) + "\n")
    except InputError as error:
        print(f"fresh: {error}", file=sys.stderr)
        return 2
    done = "opened" if options.command == "open" else "closed"
    print(f"{done}: {options.name}, in {options.boards}")
    return 0


def opened(name: str, dataset: Path, known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The entry of a new board. Raises InputError for a known name, or for other kernels."""
    manifest = read_json(dataset / "manifest.json")
    sweep = str(manifest.get("sweep")) if isinstance(manifest, dict) else ""
    digest = sweep.removeprefix(f"{FRESH}:")
    if not re.fullmatch("[0-9a-f]{64}", digest):
        message = f"it is of the sweep {sweep!r}, not of {FRESH!r} with the SHA-256 of a seed"
        raise InputError(message, source=dataset)
    if "beside" not in manifest:
        message = "its kernels may equal published ones: build it with --beside"
        raise InputError(message, source=dataset)
    if chosen := [name for name in ("every", "limit") if name in manifest]:
        message = f"its kernels may have been chosen: build it without --{chosen[0]}"
        raise InputError(message, source=dataset)
    if not re.fullmatch("[a-z0-9][a-z0-9.-]*", name):
        raise InputError(f"the name {name!r} has other than small letters, digits, dots, hyphens")
    if name == "index" or name in {each["name"] for each in known}:
        raise InputError(f"there is a board {name!r}, or another page of that name")
    rows = load_rows(str(dataset), split="test", track="assign")
    board = Board(
        name, f"verilocc/{name}", "assign", "test", len(rows.rows), rows.hash,
        seed_sha256=digest,
    )  # fmt: skip
    return {key: value for key, value in asdict(board).items() if value is not None}


def closed(name: str, seed: str, known: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The boards with this seed at one. Raises InputError where it is not that board's seed."""
    digest = hashlib.sha256(seed.encode()).hexdigest()
    board = next((each for each in known if each["name"] == name), None)
    if board is None or board.get("seed_sha256") is None:
        raise InputError(f"there is no board {name!r} of fresh kernels")
    if board["seed_sha256"] != digest:
        raise InputError(f"the seed has the SHA-256 {digest[:16]}…, not that of the board")
    return [dict(each) | ({"seed": seed} if each is board else {}) for each in known]


if __name__ == "__main__":
    sys.exit(main())
