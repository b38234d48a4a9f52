"""Renamed answers: as valid as before, by both verifiers, and as good."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from tests.sampling import one_of_each_kernel
from tests.training.small import allocated, check_as_good
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.training.renaming import rename, renamed
from verilocc_bench.verification import FastVerifier
from verilocc_bench.views.view_rows import problem_of

ROWS = load_rows("mini").rows

WIDE = """\
verilocc-bench 1
target gfx942
registers v:24 a:0 s:16 vcc:2=vcc_lo,vcc_hi
reserved s15
class V 1 v
class S2 2 s/2 vcc/2
class V2 2 v/2
class V6 6 v/2
bb0(v0)
%0:V6=IMPLICIT_DEF
%1=COPY v0
%2=IMPLICIT_DEF
%3:V2=IMPLICIT_DEF
%4:S2=IMPLICIT_DEF
%5=IMPLICIT_DEF
DS_WRITE_B32 %0,%1,%2,%3,%4,%5
"""
WIDE_ANSWER = {"%0": "v6", "%1": "v12", "%2": "v4", "%3": "v16", "%4": "vcc", "%5": "v20"}


def answer_of(row: Row) -> dict[str, str]:
    assert row.assignment is not None
    answer: dict[str, str] = json.loads(row.assignment)
    return answer


def check_renamed(
    problem: AllocationProblem, answer: Mapping[str, str], found: Mapping[str, str]
) -> None:
    before, after = check_as_good(problem, answer, problem, found)
    assert before.registers_used is not None
    assert after.registers_used is not None
    for file, used in after.registers_used.items():
        assert used <= before.registers_used[file], file


@pytest.mark.parametrize("arch", sorted({row.arch for row in ROWS}))
def test_renamed_labels_stay_valid_and_as_good(arch: str) -> None:
    moved = []
    for row in [row for row in one_of_each_kernel(ROWS) if row.arch == arch]:
        problem, answer = problem_of(row), answer_of(row)
        found = rename(problem, answer, seed=1)
        assert list(found) == list(answer)
        check_renamed(problem, answer, found)
        moved.append(sum(found[key] != answer[key] for key in answer) / len(answer))
    assert sum(moved) / len(moved) > 0.4


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "sm_80"])
def test_generated_functions(target: str) -> None:
    """Fixed registers, reserved ones, ties and early clobbers on every corner."""
    checked = moved = 0
    for seed, problem, answer in allocated(target, 75):
        if FastVerifier(problem).verify(answer).valid:  # it knows nothing of some ties
            found = rename(problem, answer, seed)
            check_renamed(problem, answer, found)
            checked += 1
            moved += found != answer
    assert checked > 9
    assert moved


def test_what_lies_together_stays_together() -> None:
    problem = AllocationProblem.from_text(WIDE)
    places = set()
    for seed in range(20):
        found = rename(problem, WIDE_ANSWER, seed)
        check_renamed(problem, WIDE_ANSWER, found)
        # In the block of v0, of VCC, and of the highest register nothing moves.
        assert found["%4"] == "vcc"
        assert found["%5"] == "v20"
        places.add(found["%0"])
    assert len(places) > 1


def test_same_seed_same_names() -> None:
    row = max(ROWS, key=lambda row: (row.arch == "sm_80", -row.n_instructions))
    problem, answer = problem_of(row), answer_of(row)
    assert rename(problem, answer, 3) == rename(problem_of(row), answer, 3)
    assert rename(problem, answer, 3) != rename(problem, answer, 4)
    first, *others = renamed(problem, answer, 3, seed=0)
    assert first == answer
    assert len({json.dumps(dict(each)) for each in others}) == 3
