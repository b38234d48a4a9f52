"""A sample of a submission's answers, counted as machine code beside the compiler's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leaderboard import revalidate
from leaderboard.boards import Board
from leaderboard.rendering.entries import BoardEntry
from leaderboard.rendering.pages import BoardPage, board_page, entry_page
from leaderboard.revalidate import COMMENT
from tests.leaderboard.submissions import Arena, check, submitted
from verilocc_bench.evaluation.code_source import CodeSource

pytestmark = pytest.mark.slow


def test_answers_are_counted_and_shown(
    llc: Callable[..., str], arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The arena's dataset has no raw rows; they are those of mini.
    monkeypatch.setattr(revalidate, "CodeSource", lambda *_: CodeSource("mini", ("test",)))
    document = check(submitted(arena).write(tmp_path / "s"), tmp_path / "out", machine_code=2)
    assert document["accepted"]
    counted = document["machine_code"]
    assert counted["functions"] == 2
    assert counted["why_not"] is None
    assert counted["record"]["kernels"] == counted["record"]["runnable"] == 2
    assert counted["record"]["figures"]["loop_waits"]["label"] > 0
    words = "As machine code, 2 of 2 answers to 2 kernels run"
    assert words in (tmp_path / "out" / COMMENT).read_text()

    board = Board(**document["board"])
    entry = BoardEntry(document)
    page = BoardPage(board, [entry], [board])
    assert "Loop waits" in board_page(page)
    assert words in entry_page(entry, page, {})


def test_without_raw_code_nothing_is_counted(
    llc: Callable[..., str], arena: Arena, tmp_path: Path
) -> None:
    document = check(submitted(arena).write(tmp_path / "s"), tmp_path / "out", machine_code=1)
    assert document["accepted"]
    assert document["machine_code"]["record"]["kernels"] == 0
    assert "no machine code" in document["machine_code"]["why_not"]
    assert "No answer was counted as machine code" in (tmp_path / "out" / COMMENT).read_text()
