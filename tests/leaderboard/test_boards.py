"""Boards with the smallest functions of each task alone, and of experts' kernels."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leaderboard import boards as boards_module
from leaderboard import drafting, examining
from leaderboard.boards import Board, BoardCopy, boards
from leaderboard.drafting import draft
from leaderboard.examining import examine
from tests.leaderboard.submissions import Arena, submitted
from tests.training.small import dataset
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows, rows_hash
from verilocc_bench.errors import InputError

FULL = Board("full", "verilocc/regalloc:expert", "assign", "test", 2, "0" * 64)


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    """Two GEMM kernels and one of attention."""
    known = [row for row in load_rows("mini").rows if row.arch == "gfx942"]
    rows = [row for row in known if row.family == "gemm"][:2]
    rows += [row for row in known if row.family == "mha"][:1]
    dataset(tmp_path / "dataset", tuple(rows))
    folder = str(tmp_path / "dataset")
    board = Board("whole", folder, "assign", "test", len(rows), rows_hash(rows))
    return Arena(Path(folder), board, load_rows(folder).rows, rows[0])


@pytest.fixture
def small(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> Arena:
    """The same with one function of each family, besides the board of all."""
    board = replace(arena.board, name="smallest", functions=2, limit=1)
    for module in (boards_module, examining, drafting):
        monkeypatch.setattr(module, "boards", lambda: (arena.board, board))
    return replace(arena, board=board, rows=BoardCopy(board, board.dataset).rows())


def test_the_smallest_functions_of_each_task(arena: Arena, small: Arena) -> None:
    smallest: dict[tuple[str, str], int] = {}
    for row in arena.rows:
        task = row.arch, row.family
        smallest[task] = min(smallest.get(task, row.n_instructions), row.n_instructions)
    assert len(small.rows) == small.board.functions
    assert {(row.arch, row.family): row.n_instructions for row in small.rows} == smallest


def test_the_limit_says_which_board(arena: Arena, small: Arena, tmp_path: Path) -> None:
    whole = examine(submitted(arena).write(tmp_path / "whole"), tmp_path / "a")
    assert (whole.board, whole.refusals) == (arena.board, [])
    part = examine(submitted(small, limit=1).write(tmp_path / "part"), tmp_path / "b")
    assert (part.board, part.refusals) == (small.board, [])
    assert set(part.rows) == {row.id for row in small.rows}
    more = examine(submitted(arena, limit=1).write(tmp_path / "more"), tmp_path / "c")
    assert [each.kind for each in more.refusals] == ["unknown-function"]
    assert "is in the split 'test' of the assign track" in more.refusals[0].message
    none = examine(submitted(small, limit=2).write(tmp_path / "none"), tmp_path / "d")
    assert "with the limit 2, which no board has" in none.refusals[0].message
    assert ", limit 1" in none.refusals[0].message


@pytest.mark.slow
def test_a_limited_run_is_a_draft(small: Arena, tmp_path: Path) -> None:
    command = ["evaluate", "--model", "compiler", "--dataset", str(small.folder)]
    assert main([*command, "--limit", "1", "--output-path", str(tmp_path / "1")]) == 0
    assert main([*command, "--limit", "2", "--output-path", str(tmp_path / "2")]) == 0
    (run,) = tmp_path.glob("1/**/results.json")
    draft(run.parent, tmp_path / "draft")
    text = (tmp_path / "draft" / "submission.yaml").read_text()
    assert "\nlimit: 1\n" in text
    assert "--limit 1" in text
    (run,) = tmp_path.glob("2/**/results.json")
    with pytest.raises(InputError, match=r"part of the board \(--limit\); boards have --limit 1"):
        draft(run.parent, tmp_path / "other")


def test_where_the_functions_are(tmp_path: Path) -> None:
    assert FULL.copy_in(str(tmp_path)) == str(tmp_path)  # the folder of experts itself
    (tmp_path / "expert").mkdir()
    assert FULL.copy_in(str(tmp_path)) == f"{tmp_path}:expert"
    assert FULL.copy_in(None) == "verilocc/regalloc:expert"
    assert FULL.copy_in("folder") == FULL.copy_in("folder:expert") == "folder:expert"
    assert replace(FULL, dataset="verilocc/regalloc").copy_in("folder") == "folder"
    mini = replace(FULL, dataset="mini:expert")
    assert mini.is_embedded
    assert mini.copy_in("folder") == "mini:expert"
    assert not FULL.is_embedded
    alone = replace(FULL, dataset="mini:sm_90")
    assert alone.is_embedded
    assert replace(FULL, dataset="verilocc/regalloc:sm_90").copy_in("folder") == "folder:sm_90"


def test_boards_are_told_apart() -> None:
    keys = [(board.hash, board.track, board.limit) for board in boards()]
    assert len(set(keys)) == len(keys)
    for board in boards():
        if board.is_embedded:
            assert len(BoardCopy(board, board.dataset).rows()) == board.functions
