"""The fast check's arrays: what one tie, one tuple or one unit alone must decide."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits.findings import FindingKind
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import FastVerifier, bulk

HEADER = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
class S2 2 s/2 vcc/2
class G4 4 s/4
"""
TIES = HEADER + "bb0\n%0:V=A\n%1=A\n%2=B %0~0\n%3=B %1~0\nUSE %2,%3\n"


def verifier(text: str) -> FastVerifier:
    return FastVerifier(AllocationProblem(parse_function(text, canonical=False)))


@pytest.mark.parametrize(
    ("second", "fourth", "broken"),
    [("v0", "v1", 0), ("v2", "v1", 1), ("v0", "v3", 1), ("v2", "v3", 2)],
)
def test_each_tie_alone_makes_an_answer_wrong(second: str, fourth: str, broken: int) -> None:
    answer = {"%0": "v0", "%1": "v1", "%2": second, "%3": fourth}
    verdict = verifier(TIES).verify(answer)
    assert verdict.valid == (broken == 0)
    assert [f.kind for f in verdict.findings] == [FindingKind.TIED_MISMATCH] * broken


@pytest.mark.parametrize("register_class", ["S2", "G4"])
@pytest.mark.parametrize("base", [0, 4, 8, 12])
@pytest.mark.parametrize("reserved", range(12))
def test_no_unit_of_a_tuple_may_be_reserved(register_class: str, base: int, reserved: int) -> None:
    header = HEADER.replace("class V", f"reserved s{reserved}\nclass V", 1)
    verdict = verifier(f"{header}bb0\n%0:{register_class}=A\nB %0\n").verify({"%0": f"s{base}"})
    width = int(register_class[1])
    assert verdict.valid == (reserved not in range(base, base + width))
    assert [f.kind for f in verdict.findings] == [FindingKind.RESERVED] * (not verdict.valid)


def test_either_half_of_vcc_may_be_reserved() -> None:
    for half in ("vcc_lo", "vcc_hi"):
        header = HEADER.replace("class V", f"reserved {half}\nclass V", 1)
        verdict = verifier(f"{header}bb0\n%0:S2=A\nB %0\n").verify({"%0": "vcc"})
        assert [f.kind for f in verdict.findings] == [FindingKind.RESERVED]


def test_a_register_is_free_for_others_while_it_holds_nothing() -> None:
    """%1 has two values, with a gap between; the second begins where the first of %0 ends."""
    own = verifier(HEADER + "bb0\n%0:V=A\n%1:V=A\nUSE %1\n%2:V=A\nUSE %0,%2\n%1=B\nUSE %1\n")
    assert own.verify({"%0": "v1", "%1": "v0", "%2": "v0"}).valid
    assert not own.verify({"%0": "v0", "%1": "v1", "%2": "v0"}).valid
    at_once = verifier(HEADER + "bb0\n%0:V=A\n%1:V=A\nUSE %1\n%2:V=A\n%1=B %0,%2\nUSE %1\n")
    assert at_once.verify({"%0": "v1", "%1": "v0", "%2": "v0"}).valid


def test_functions_of_too_many_points_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The entry is a point, and each of the two instructions."""
    text = HEADER + "bb0\n%0:V=A\nUSE %0\n"
    monkeypatch.setattr(bulk, "POINTS_LIMIT", 4)
    assert verifier(text).verify({"%0": "v0"}).valid
    monkeypatch.setattr(bulk, "POINTS_LIMIT", 3)
    with pytest.raises(
        InputError, match=r"^the function has 3 points: expected less than 2\*\*25$"
    ):
        verifier(text).verify({"%0": "v0"})
