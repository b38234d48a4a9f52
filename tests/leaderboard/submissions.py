"""A small board, and submissions for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from leaderboard import boards as boards_module
from leaderboard import examining
from leaderboard.boards import Board
from leaderboard.revalidate import revalidate
from tests.training.small import dataset
from verilocc_bench.dataset import Row, load_rows, rows_hash

Line = Mapping[str, Any]


@dataclass(frozen=True)
class Arena:
    """A board of a few kernels of each architecture, with one more in its training split."""

    folder: Path
    board: Board
    rows: tuple[Row, ...]
    trained: Row

    def label_lines(self, samples: int = 1) -> list[Line]:
        return [
            {"id": row.id, "assignment": row.label} for row in self.rows for _ in range(samples)
        ]


@pytest.fixture(scope="session")
def arena_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Board, Any]:
    rows = load_rows("mini").rows
    chosen: list[Row] = []
    for arch in ("gfx90a", "gfx942", "sm_80"):
        own = sorted((row for row in rows if row.arch == arch), key=lambda r: r.n_instructions)
        chosen += own[:2]
    trained = next(row for row in rows if row not in chosen)
    folder = tmp_path_factory.mktemp("arena")
    dataset(folder, tuple(chosen))
    dataset(folder, (trained,), split="train")
    board = Board("small", str(folder), "assign", "test", len(chosen), rows_hash(chosen))
    return folder, board, (load_rows(str(folder)).rows, trained)


@pytest.fixture
def arena(arena_folder: tuple[Path, Board, Any], monkeypatch: pytest.MonkeyPatch) -> Arena:
    folder, board, (rows, trained) = arena_folder
    for module in (boards_module, examining):
        monkeypatch.setattr(module, "boards", lambda: (board,))
    return Arena(folder, board, rows, trained)


@dataclass
class Submitted:
    """A submission as it is written to a folder."""

    fields: dict[str, Any]
    lines: list[Line] = field(default_factory=list)

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True)
        (folder / "submission.yaml").write_text(yaml.safe_dump(self.fields, sort_keys=False))
        text = "".join(json.dumps(line) + "\n" for line in self.lines)
        (folder / "answers.jsonl").write_text(text)
        return folder


def submitted(arena: Arena, samples: int = 1, **fields: Any) -> Submitted:
    """The compiler's labels, and all fields that a submission must have."""
    needed = {
        "format": 1,
        "name": "The compiler",
        "authors": ["Ada Lovelace", "Grace Hopper"],
        "contact": "ada@example.org",
        "training_data": "none",
        "hardware": "a laptop",
        "licence": "apache-2.0",
        "command": "verilocc-bench evaluate --model compiler",
        "dataset": arena.board.dataset,
        "dataset_hash": arena.board.hash,
        "assistance": "text",
        "decoding": "free",
        "samples": samples,
    }
    return Submitted({**needed, **fields}, arena.label_lines(samples))


def kinds(document: Mapping[str, Any]) -> list[str]:
    return [each["kind"] for each in document["refusals"]]


def messages(document: Mapping[str, Any]) -> str:
    return "\n".join(f"{each['place']}: {each['message']}" for each in document["refusals"])


def check(folder: Path, output: Path, **options: Any) -> dict[str, Any]:
    return revalidate(folder, output, **options)


Spoil = Callable[[Path], None]
Rows = Sequence[Row]
