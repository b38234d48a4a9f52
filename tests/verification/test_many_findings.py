"""Answers with thousands of faults: the first are told, all are counted, in about linear time."""

from __future__ import annotations

from collections import Counter

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits.findings import Verdict
from verilocc_bench.ir import parse_function
from verilocc_bench.settings.judges import FAST, INDEPENDENT
from verilocc_bench.verification import (
    FastVerifier,
    FindingKind,
    IndependentVerifier,
    collisions,
    explain,
)
from verilocc_bench.verification.judges import Effort, Judges
from verilocc_bench.verification.symbolic import checker

HEADER = """verilocc-bench 1
target gfx942
registers v:256 a:256 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
"""


NVIDIA = """verilocc-bench 1
target sm_80
registers R:255 UR:63 P:7 UP:7
class R 1 R
class P 1 P
"""


def live_together(count: int) -> AllocationProblem:
    """So many registers, all live from their definitions to the end."""
    definitions = "".join(f"%{number}=V_A\n" for number in range(count))
    uses = "".join(f"V_B %{number}\n" for number in range(count))
    return AllocationProblem(parse_function(f"{HEADER}bb0\n{definitions}{uses}"))


def far_apart(count: int, blocks: int) -> AllocationProblem:
    """Registers that are defined in the first blocks and read in the last."""
    lines = [HEADER]
    for block in range(blocks):
        lines.append(f"bb{block}->bb{block + 1}\n")
        lines.append(f"%{block}=V_A\n" if block < count else "V_NOP\n")
    lines.append(f"bb{blocks}\n" + "".join(f"V_B %{number}\n" for number in range(count)))
    return AllocationProblem(parse_function("".join(lines)))


def in_one(problem: AllocationProblem) -> dict[str, str]:
    return {f"%{number}": "v0" for number in range(len(problem.function.virtual_registers))}


def kinds(verdict: Verdict) -> Counter[FindingKind]:
    return Counter(finding.kind for finding in verdict.findings) + Counter(verdict.untold)


def test_all_pairs_of_one_register_are_counted() -> None:
    problem = live_together(100)
    every = FastVerifier(problem).verify(in_one(problem))
    assert len(every.findings) == 100 * 99 // 2
    first = FastVerifier(problem).verify(in_one(problem), 40)
    assert first.findings == every.findings[:40]
    assert first.untold == {FindingKind.OVERLAP: 100 * 99 // 2 - 40}
    assert not every.uncounted
    assert not first.uncounted
    assert "uncounted" not in first.to_json()
    opinion = Judges(problem, [FAST, INDEPENDENT], Effort(findings=40)).ask(in_one(problem))
    assert [len(told) for told in opinion.findings.values()] == [40, 40]


def test_a_count_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collisions, "STEPS", 10_000)
    problem = live_together(2000)
    verdict = FastVerifier(problem).verify(in_one(problem), 10)
    assert not verdict.valid
    assert len(verdict.findings) == 10
    assert [finding.instruction for finding in verdict.findings] == [1, 2, 2, 3, 3, 3, 4, 4, 4, 4]
    # Each definition looks at itself too.
    assert 9_000 < sum(verdict.untold.values()) + 10 <= 10_000
    assert verdict.uncounted
    assert verdict.to_json()["uncounted"] is True
    assert not FastVerifier(problem).verify({}, 10).uncounted


@pytest.mark.parametrize("verifier", [FastVerifier, IndependentVerifier])
def test_fewer_are_told_where_their_stories_are_long(
    verifier: type[FastVerifier | IndependentVerifier], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = far_apart(20, 500)
    every = verifier(problem).verify(in_one(problem))
    for module in (explain, checker):
        monkeypatch.setattr(module, "STEPS", 3_000)
    few = verifier(problem).verify(in_one(problem), 100)
    assert 1 <= len(few.findings) <= 10 < len(every.findings)
    assert few.findings == every.findings[: len(few.findings)]
    assert kinds(few) == kinds(every)
    monkeypatch.setattr(explain, "STEPS", 0)
    monkeypatch.setattr(checker, "STEPS", 0)
    assert len(verifier(problem).verify(in_one(problem), 100).findings) == 1
    assert len(verifier(problem).verify(in_one(problem)).findings) == len(every.findings)


def test_a_value_of_many_definitions_is_not_told_again_and_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """300 definitions, each told with each finding; guarded writers walk to all of them, too."""
    monkeypatch.setattr(explain, "STEPS", 10_000)
    count = 300
    fork = "bb0->" + ",".join(f"bb{n}" for n in range(1, count + 1)) + "\n"
    arms = [f"bb{n}->bb{count + 1}\n%0=A\n" for n in range(1, count + 1)]
    join = f"bb{count + 1}\n"
    kills = "".join(f"%{n}=C\n" for n in range(1, 200))
    problem = AllocationProblem(parse_function(f"{HEADER}{fork}{''.join(arms)}{join}{kills}B %0\n"))
    verdict = FastVerifier(problem).verify(in_one(problem), 1000)
    assert 20 < len(verdict.findings) < 40
    assert all(len(finding.lanes[1].defined) == count for finding in verdict.findings)
    assert kinds(verdict) == {FindingKind.OVERLAP: 199}
    arms[0] = arms[0].replace("%0", "%1:R")
    arms[1:] = [arm.replace("%0", "%1") for arm in arms[1:]]
    kills = "".join(f"@%0 %{n}:R=C\n" for n in range(2, 200))
    text = f"{NVIDIA}{fork}%0:P=P\n{''.join(arms)}{join}{kills}B %1\n"
    problem = AllocationProblem(parse_function(text, canonical=False))
    answer = {f"%{n}": "R0" for n in range(1, 200)} | {"%0": "P0"}
    verdict = FastVerifier(problem).verify(answer, 1000)
    assert 10_000 // 650 <= len(verdict.findings) <= 10_000 // 550
    assert kinds(verdict) == {FindingKind.OVERLAP: 198}


def test_long_ways_back_are_counted_for_each_answer_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """20 values from the first block, each destroyed in the last, through 500 others."""
    lines = [HEADER, "bb0->bb1\n", *(f"%{n}=V_A\n" for n in range(20))]
    lines += [f"bb{block}->bb{block + 1}\nV_NOP\n" for block in range(1, 500)]
    lines += ["bb500\n", *(f"%{n}=V_C\n" for n in range(20, 40))]
    lines += [f"V_B %{n}\n" for n in range(40)]
    problem = AllocationProblem(parse_function("".join(lines)))
    answer = {f"%{n}": f"v{n % 20}" for n in range(40)}
    every = FastVerifier(problem).verify(answer)
    assert len(every.findings) == 20
    monkeypatch.setattr(explain, "STEPS", 3_000)
    verifier = FastVerifier(problem)
    few = verifier.verify(answer, 100)
    # Each way leads through 500 blocks, to one block before each.
    assert 3 <= len(few.findings) <= 4
    assert few.findings == every.findings[: len(few.findings)]
    swapped = answer | {"%0": "v1", "%1": "v0"}
    again = AllocationProblem(problem.function)
    assert verifier.verify(swapped, 1).findings == FastVerifier(again).verify(swapped, 1).findings


def test_an_answer_does_not_pay_for_those_before(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = far_apart(20, 500)
    monkeypatch.setattr(explain, "STEPS", 3_000)
    verifier = FastVerifier(problem)
    first = verifier.verify(in_one(problem), 100)
    # The same walks again are known by now: others are walked for the first time.
    others = in_one(problem) | {f"%{n}": "v1" for n in range(3)}
    second = verifier.verify(others, 100)
    assert len(second.findings) >= len(FastVerifier(problem).verify(others, 100).findings)
    assert len(verifier.verify(in_one(problem), 100).findings) >= len(first.findings) > 1


def test_guarded_writers_of_one_block_are_counted_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each wrong read looks at 100 writers and 1 definition, and those before the block."""
    monkeypatch.setattr(checker, "STEPS", 1_000)
    lines = [NVIDIA, "bb0\n%0:P=P\n%1:R=A\n", *(f"@%0 %{n}:R=C\n" for n in range(2, 102))]
    lines += ["B %1\n"] * 40
    problem = AllocationProblem(parse_function("".join(lines), canonical=False))
    answer = {f"%{n}": "R0" for n in range(1, 102)} | {"%0": "P0"}
    verdict = IndependentVerifier(problem).verify(answer, 1000)
    assert 5 <= len(verdict.findings) <= 11
    assert kinds(verdict) == {FindingKind.WRONG_VALUE: 40}


@pytest.mark.parametrize("verifier", [FastVerifier, IndependentVerifier])
def test_what_is_missing_is_counted_and_nothing_else(
    verifier: type[FastVerifier | IndependentVerifier],
) -> None:
    problem = live_together(3)
    verdict = verifier(problem).verify({}, 1)
    assert verdict.id == problem.id
    assert verdict.valid is False
    assert [finding.registers for finding in verdict.findings] == [("%0",)]
    assert verdict.untold == {FindingKind.MISSING: 2}
    assert verifier(problem).verify({}).untold == {}


def test_wrong_values_of_one_instruction_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker, "OF_ONE_INSTRUCTION", 5)
    definitions = "".join(f"%{number}=V_A\n" for number in range(50))
    uses = "V_B " + ",".join(f"%{number}" for number in range(50)) + "\n"
    problem = AllocationProblem(parse_function(f"{HEADER}bb0\n{definitions}{uses}"))
    verdict = IndependentVerifier(problem).verify(in_one(problem), 3)
    assert len(verdict.findings) == 3
    assert verdict.untold == {FindingKind.WRONG_VALUE: 46}
