"""The fast check on right answers near wrong ones, and the order of its findings."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest

from tests.mutation import mutate
from tests.sampling import few_rows
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import FastVerifier, FindingKind, bulk

HEADER = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
class V2 2 v/2
class S2 2 s/2 vcc/2
class G4 4 s/4
"""
ROWS = few_rows(load_rows("mini").rows)


def problem(body: str, header: str = HEADER) -> AllocationProblem:
    return AllocationProblem(parse_function(header + body, canonical=False))


def everything_first(problem: AllocationProblem) -> dict[str, str]:
    """The answer that puts every virtual register into the first place of its class."""
    return {
        f"%{number}": next(iter(problem.placements.legal[register_class].values()))
        for number, register_class in enumerate(problem.function.virtual_registers)
    }


def test_lanes_live_together_without_harm_pass() -> None:
    """Of each only one way here defines it: neither definition destroys the other's value."""
    body = "bb0->bb1,bb2\nbb1->bb3\n%0:V=OP\nbb2->bb3\n%1:V=OP\nbb3\nNOP\nUSE %0,%1\n"
    own = problem(body)
    assert own.liveness.live[0] & own.liveness.live[1]
    assert FastVerifier(own).verify({"%0": "v0", "%1": "v0"}).valid
    wrong = problem(body.replace("NOP\n", "%1=OP\n"))
    assert not FastVerifier(wrong).verify({"%0": "v0", "%1": "v0"}).valid


def test_harm_between_lanes_that_are_no_neighbours_is_found() -> None:
    """A long range holds the unit across short ones, which do not touch each other."""
    short = "".join(f"%{n}:V=OP\nUSE %{n}\n" for n in range(1, 6))
    own = problem(f"bb0\n%0:V=OP\n{short}USE %0\n")
    verifier = FastVerifier(own)
    apart = {"%0": "v0", **{f"%{n}": "v1" for n in range(1, 6)}}
    assert verifier.verify(apart).valid
    verdict = verifier.verify(apart | {"%3": "v0", "%5": "v0"})
    assert [finding.registers for finding in verdict.findings] == [("%3", "%0"), ("%5", "%0")]


@pytest.mark.parametrize(
    ("body", "together", "apart"),
    [
        ("bb0\n%0:V=OP\n%1:V=TIED %0~0\nUSE %1\n", ("v0", "v0"), ("v0", "v1")),
        ("bb0\n%0:V2=OP\n%1:V=TIED %0.1~0\nUSE %1\n", ("v2", "v3"), ("v2", "v2")),
        ("bb0\n%0:V=OP\nv4=TIED %0~0\nUSE v4\n", ("v4",), ("v5",)),
        ("bb0(v4)\n%0:V=TIED v4~0\nUSE %0\n", ("v4",), ("v5",)),
    ],
)
def test_ties(body: str, together: tuple[str, ...], apart: tuple[str, ...]) -> None:
    verifier = FastVerifier(problem(body))
    assert verifier.verify({f"%{n}": base for n, base in enumerate(together)}).valid
    verdict = verifier.verify({f"%{n}": base for n, base in enumerate(apart)})
    assert [finding.kind for finding in verdict.findings] == [FindingKind.TIED_MISMATCH]


def test_functions_of_no_virtual_register_are_judged() -> None:
    verifier = FastVerifier(problem("bb0(v3)\nUSE v3\n"))
    verdict = verifier.verify({})
    assert verdict.valid
    assert verdict.registers_used == {"vector": 4, "v": 4, "a": 0, "s": 0, "vcc": 0}
    assert not verifier.verify({"%0": "v0"}).valid
    assert FastVerifier(problem("bb0\n")).verify({}).valid


def test_what_is_used_is_counted_where_every_place_is_legal() -> None:
    verifier = FastVerifier(problem("bb0\n%0:V2=OP\n%1:V=OP\nUSE %0,%1\n"))
    wrong = verifier.verify({"%0": "v2", "%1": "v3"})
    assert wrong.registers_used == {"vector": 4, "v": 4, "a": 0, "s": 0, "vcc": 0}
    assert verifier.verify({"%0": "v2", "%1": "v0", "%7": "v0"}).registers_used is not None
    assert verifier.verify({"%0": "v1", "%1": "v0"}).registers_used is None
    assert verifier.verify({"%0": "v2"}).registers_used is None


@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.arch}-{row.kernel}-{row.id}")
def test_findings_come_in_one_order_whoever_asks_and_when(row: Row) -> None:
    own = AllocationProblem.from_text(row.normalized)
    generator = random.Random(row.id)
    answers = [everything_first(own)] if row.n_instructions < 600 else []
    for _ in range(10):
        answer = dict(row.label)
        for _ in range(3):
            _, answer = mutate(own, answer, generator)
        answers.append(answer)
    found = [FastVerifier(own).verify(answer).findings for answer in answers]
    asked = FastVerifier(own)
    for answer, findings in reversed(list(zip(answers, found, strict=True))):
        keys = [finding.sort_key() for finding in findings]
        assert all(left < right for left, right in pairwise(keys))
        assert asked.verify(dict(reversed(answer.items()))).findings == findings
        for count in (0, 1, 3, 20):
            limited = FastVerifier(own).verify(answer, count)
            assert limited.findings == findings[:count]
            assert limited.untold == Counter(finding.kind for finding in findings[count:])


TIES = "bb0\n%0:V=A\n%1=A\n%2=B %0~0\n%3=B %1~0\nUSE %2,%3\n"


@pytest.mark.parametrize(
    ("second", "fourth", "broken"),
    [("v0", "v1", 0), ("v2", "v1", 1), ("v0", "v3", 1), ("v2", "v3", 2)],
)
def test_each_tie_alone_makes_an_answer_wrong(second: str, fourth: str, broken: int) -> None:
    answer = {"%0": "v0", "%1": "v1", "%2": second, "%3": fourth}
    verdict = FastVerifier(problem(TIES)).verify(answer)
    assert verdict.valid == (broken == 0)
    assert [f.kind for f in verdict.findings] == [FindingKind.TIED_MISMATCH] * broken


@pytest.mark.parametrize("register_class", ["S2", "G4"])
@pytest.mark.parametrize("base", [0, 4, 8, 12])
@pytest.mark.parametrize("reserved", range(12))
def test_no_unit_of_a_tuple_may_be_reserved(register_class: str, base: int, reserved: int) -> None:
    header = HEADER.replace("class V", f"reserved s{reserved}\nclass V", 1)
    own = problem(f"bb0\n%0:{register_class}=A\nB %0\n", header)
    verdict = FastVerifier(own).verify({"%0": f"s{base}"})
    width = int(register_class[1])
    assert verdict.valid == (reserved not in range(base, base + width))
    assert [f.kind for f in verdict.findings] == [FindingKind.RESERVED] * (not verdict.valid)


def test_either_half_of_vcc_may_be_reserved() -> None:
    for half in ("vcc_lo", "vcc_hi"):
        header = HEADER.replace("class V", f"reserved {half}\nclass V", 1)
        verdict = FastVerifier(problem("bb0\n%0:S2=A\nB %0\n", header)).verify({"%0": "vcc"})
        assert [f.kind for f in verdict.findings] == [FindingKind.RESERVED]


def test_a_register_is_free_for_others_while_it_holds_nothing() -> None:
    """%1 has two values, with a gap between; the second begins where the first of %0 ends."""
    own = FastVerifier(problem("bb0\n%0:V=A\n%1:V=A\nUSE %1\n%2:V=A\nUSE %0,%2\n%1=B\nUSE %1\n"))
    assert own.verify({"%0": "v1", "%1": "v0", "%2": "v0"}).valid
    assert not own.verify({"%0": "v0", "%1": "v1", "%2": "v0"}).valid
    at_once = FastVerifier(problem("bb0\n%0:V=A\n%1:V=A\nUSE %1\n%2:V=A\n%1=B %0,%2\nUSE %1\n"))
    assert at_once.verify({"%0": "v1", "%1": "v0", "%2": "v0"}).valid


def test_functions_of_too_many_points_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry is a point, and each of the two instructions."""
    own = problem("bb0\n%0:V=A\nUSE %0\n")
    monkeypatch.setattr(bulk, "POINTS_LIMIT", 4)
    assert FastVerifier(own).verify({"%0": "v0"}).valid
    monkeypatch.setattr(bulk, "POINTS_LIMIT", 3)
    with pytest.raises(
        InputError, match=r"^the function has 3 points: expected less than 2\*\*25$"
    ):
        FastVerifier(own).verify({"%0": "v0"})
