"""One function of a submission: what its samples are measured by."""

from __future__ import annotations

import itertools

from leaderboard.judging import _Known, _middle
from verilocc_bench.evaluate.metrics import BankConflicts
from verilocc_bench.evaluate.records import Outcome, Sample

VALID = Sample(0, True)


def known(registers: int | None, conflicts: int = 0, spills: int | None = None) -> _Known:
    """A valid sample of so many registers, or a wrong one."""
    if registers is None:
        return _Known(Sample(0, False), None, True, ())
    outcome = Outcome(
        0, registers, 40, 10, 8, 8, 0, BankConflicts(conflicts, 0), spills, 0 if spills else None
    )
    return _Known(VALID, outcome, True, ())


def middle(*samples: _Known) -> tuple[int, int]:
    """(registers, sample) of what is shown."""
    outcome = _middle(samples)
    assert outcome is not None
    return outcome.registers, outcome.sample


def test_the_middle_one_of_the_samples_is_shown_and_not_the_best() -> None:
    for order in itertools.permutations((20, 30, 40)):
        shown = middle(*map(known, order))
        assert shown == (30, order.index(30))
    assert middle(*map(known, (10, 10, 10, 50, 50))) == (10, 2)
    assert middle(*map(known, (10, 10, 50, 50, 50)))[0] == 50


def test_of_two_middle_ones_the_worse_is_shown() -> None:
    assert middle(known(20), known(30)) == (30, 1)
    assert middle(known(40), known(10), known(20), known(30)) == (30, 3)


def test_wrong_samples_do_not_move_the_middle() -> None:
    assert middle(known(None), known(30), known(None), known(20), known(10)) == (20, 3)
    assert _middle([known(None)]) is None
    assert _middle([]) is None


def test_samples_are_ordered_by_edits_then_registers_then_conflicts() -> None:
    assert middle(known(20, 9), known(20, 1), known(20, 5)) == (20, 2)
    assert middle(known(20, 9), known(30, 0), known(10, 50)) == (20, 0)
    assert middle(known(10, 0, 9), known(20, 0, 5), known(30, 0, 1)) == (20, 1)
    assert middle(known(10, 0, 9), known(30, 0, 5), known(20, 0, 1)) == (30, 1)
