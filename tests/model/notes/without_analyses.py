"""Takes all analyses away, to show what does without them."""

from __future__ import annotations

import pytest

import verilocc_bench.analysis.lane_flow
import verilocc_bench.analysis.liveness
import verilocc_bench.analysis.loops
import verilocc_bench.analysis.pressure
from verilocc_bench.analysis import AllocationProblem


def forbid_analyses(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on liveness, loops, pressure and placements raise AssertionError."""

    def refuse(*_: object) -> None:
        raise AssertionError("an analysis was asked for")

    monkeypatch.setattr(verilocc_bench.analysis.liveness, "analyse_liveness", refuse)
    monkeypatch.setattr(verilocc_bench.analysis.loops, "loop_depths", refuse)
    monkeypatch.setattr(verilocc_bench.analysis.pressure, "measure_pressure", refuse)
    monkeypatch.setattr(verilocc_bench.analysis.lane_flow, "LaneFlow", refuse)
    for name in ("liveness", "pressure", "loop_depths", "placements"):
        monkeypatch.setattr(AllocationProblem, name, property(refuse))
