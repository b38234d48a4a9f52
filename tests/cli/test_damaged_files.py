"""Damaged copies of every kind of file through every command that reads such files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from leaderboard import drafting, render
from tests.cli.damaged_files import DamagedKind, faults
from tests.cli.damaged_kinds import KINDS, OF_AN_ARENA
from tests.leaderboard.submissions import Arena, arena, arena_folder
from verilocc_bench.evaluation import hub_results

__all__ = ["arena", "arena_folder"]

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cuda", "llc")]

FEW, ALL = 1, pytest.param(200, marks=pytest.mark.exhaustive)


@pytest.mark.parametrize("copies", [FEW, ALL])
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_file(kind: Callable[[Path], DamagedKind], copies: int, tmp_path: Path) -> None:
    found = list(faults(kind(tmp_path), copies, copies, tmp_path, whole=copies > FEW))
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("copies", [FEW, ALL])
@pytest.mark.parametrize("kind", OF_AN_ARENA.values(), ids=OF_AN_ARENA)
def test_a_file_of_a_run_or_a_submission(
    kind: Callable[[Path, Arena], DamagedKind],
    copies: int,
    arena: Arena,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (drafting, render):
        monkeypatch.setattr(module, "boards", lambda: (arena.board,))
    monkeypatch.setattr(hub_results, "read_hub", lambda *_: arena.rows)
    found = list(faults(kind(tmp_path, arena), copies, copies, tmp_path, whole=copies > FEW))
    assert not found, "\n\n".join(found)
