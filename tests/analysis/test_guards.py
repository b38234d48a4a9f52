"""Guards: the bound on what they can cost."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem, conditions
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function

HEADER = """verilocc-bench 1
target sm_80
registers R:60 UR:63 P:7 UP:7
class R 1 R
class P 1 P
"""


def problem(body: str) -> AllocationProblem:
    return AllocationProblem(parse_function(HEADER + body, canonical=False))


def test_guards_beyond_analysis_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs a_i, b_i in the worst order: the diagram doubles with each."""
    monkeypatch.setattr(conditions, "WORK_LIMIT", 20_000)
    count = 24
    lines = ["bb0->bb1", *(f"%{n}:P=SETP" for n in range(2 * count)), f"%{2 * count}:R=MOV"]
    for n in range(count):
        lines += [f"bb{2 * n + 1}->bb{2 * n + 3},bb{2 * n + 2}", f"@!%{n} BRA"]
        lines += [f"bb{2 * n + 2}->bb{2 * n + 3}", f"@%{count + n} STS %{2 * count}"]
    lines += [f"bb{2 * count + 1}", ""]
    with pytest.raises(InputError, match=r"^function [0-9a-f]{16}: the guards depend"):
        _ = problem("\n".join(lines)).liveness


def test_long_chains_of_guards_are_refused_or_done() -> None:
    count = 700
    lines = ["bb0", *(f"%{n}:P=SETP" for n in range(count)), f"%{count}:R=MOV"]
    lines += [f"@!%{count - 1 - n} %{count}=MOV" for n in range(count)]
    lines += [f"STS %{count}", ""]
    with pytest.raises(InputError, match="guards depend"):
        _ = problem("\n".join(lines)).liveness
