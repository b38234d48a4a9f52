"""A sample of a submission's answers, executed as machine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leaderboard import executing
from leaderboard.revalidate import COMMENT
from tests.leaderboard.submissions import Arena, check, kinds, submitted
from verilocc_bench.dataset import load_raw_row
from verilocc_bench.execution import AnswerExecutor

# The first of them waits until the interpreter is compiled.
pytestmark = pytest.mark.slow


@pytest.fixture(name="raw")
def _raw(llc: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The arena's dataset has no raw rows; they are those of mini."""
    monkeypatch.setattr(
        executing, "load_raw_row", lambda _, identifier, **__: load_raw_row("mini", identifier)
    )


@pytest.mark.usefixtures("raw")
def test_valid_answers_are_executed(arena: Arena, tmp_path: Path) -> None:
    document = check(submitted(arena).write(tmp_path / "s"), tmp_path / "out", execute=2)
    assert document["accepted"]
    assert document["executed"] == {"executed": 2, "wrong": [], "why_not": None}
    words = (tmp_path / "out" / COMMENT).read_text()
    assert "2 answers were executed as machine code; all give the right numbers." in words
    again = {"execute": 1, "execute_seed": "other"}
    document = check(submitted(arena).write(tmp_path / "t"), tmp_path / "again", **again)
    assert document["executed"] == {"executed": 1, "wrong": [], "why_not": None, "seed": "other"}


@pytest.mark.usefixtures("raw")
def test_an_accepted_answer_with_other_numbers_refuses(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = AnswerExecutor.execute

    def other_bits(self: AnswerExecutor, answer: Any) -> Any:
        return replace(right(self, answer), same_bits=False)

    monkeypatch.setattr(AnswerExecutor, "execute", other_bits)
    document = check(submitted(arena).write(tmp_path / "s"), tmp_path / "out", execute=1)
    assert not document["accepted"]
    assert kinds(document) == ["execution-disagrees"]
    assert len(document["executed"]["wrong"]) == 1


def test_without_machine_ir_nothing_is_executed(arena: Arena, tmp_path: Path) -> None:
    document = check(submitted(arena).write(tmp_path / "s"), tmp_path / "out", execute=1)
    assert document["accepted"]
    assert document["executed"]["executed"] == 0
    assert "No answer was executed" in (tmp_path / "out" / COMMENT).read_text()
