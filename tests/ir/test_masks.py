"""What instructions destroy, in the normalized text."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits, parse_function, print_function

HEAD = """verilocc-bench 1
target gfx942
registers v:16 a:0 s:16 vcc:2=vcc_lo,vcc_hi
reserved s9
occupancy 4
"""
MASKS = """mask m0 v[0:3] v[8:20] s[0:7] vcc
mask m1 v5
"""
BODY = """class V 1 v
bb0(v0)
%0=COPY v0
v0=CALL +v0 ^m0
OTHER ^m1
s[2:3]=CALL ^m0
STORE %0
"""
TEXT = HEAD + MASKS + BODY


def test_masks_stand_once_in_the_header() -> None:
    function = parse_function(TEXT)
    assert print_function(function) == TEXT
    assert AllocationProblem(function).normalized == TEXT
    first = (
        FixedUnits("v", 0, 4),
        FixedUnits("v", 8, 13),
        FixedUnits("s", 0, 8),
        FixedUnits("vcc", 0, 2),
    )
    second = (FixedUnits("v", 5, 1),)
    assert function.masks() == (first, second)
    destroyed = [instruction.destroys for _, _, instruction in function.instructions()]
    assert destroyed == [(), first, second, first, ()]


def test_a_text_without_calls_has_no_masks() -> None:
    text = HEAD + BODY.replace(" ^m0", "").replace(" ^m1", "")
    assert print_function(parse_function(text)) == text
    assert parse_function(text).masks() == ()


@pytest.mark.parametrize(
    ("old", "new", "line", "message"),
    [
        ("mask m0 v[0:3]", "mask m1 v[0:3]", 6, "expected a line 'mask m0 …'"),
        ("mask m1 v5", "mask m1", 7, "expected a line 'mask m1 …'"),
        ("mask m1 v5", "mask m1 q5", 7, "there is no physical register 'q5'"),
        ("mask m1 v5", "mask m1 v[5:4]", 7, "there is no physical register"),
        ("mask m1 v5", "mask m1  v5", 7, "expected a physical register"),
        ("OTHER ^m1", "OTHER ^m2", 12, "expected a mask of the header, not 'm2'"),
        ("OTHER ^m1", "OTHER ^", 12, "expected a mask of the header, not ''"),
        ("OTHER ^m1", "OTHER ^m1 ", 12, "expected a mask of the header"),
        ("OTHER ^m1", "OTHER^m1", 12, "expected a mask of the header"),
        ("OTHER ^m1", "OTHER ^m1 ^m1", 12, "expected a physical register|expected a register"),
        ("OTHER ^m1", "OTHER", 7, "expected 'class V 1 v', not 'mask m1 v5'"),
        ("=CALL +v0 ^m0", "=CALL +v0 ^m1", 6, "expected 'mask m0 v5'"),
        ("v5", "v[5:5]", 7, "expected 'mask m1 v5'"),
    ],
)
def test_masks_that_the_printer_could_not_print(
    old: str, new: str, line: int, message: str
) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(InputError, match=message) as caught:
        parse_function(TEXT.replace(old, new))
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("units", "message"),
    [
        ("v[4:5] v[2:3]", "in order, each once"),
        ("v[4:5] v[5:6]", "in order, each once"),
        ("s1 v1", "in order, each once"),
        ("v[250:256]", "gfx942 has no register v250"),
    ],
)
def test_masks_that_the_target_does_not_have(units: str, message: str) -> None:
    text = TEXT.replace("mask m1 v5", f"mask m1 {units}")
    with pytest.raises(InputError, match=message):
        AllocationProblem.from_text(text)


def test_a_mask_destroys_no_predicate() -> None:
    text = """verilocc-bench 1
target sm_80
registers R:4 UR:0 P:2 UP:0
mask m0 R0 P1
bb0
CALL ^m0
"""
    with pytest.raises(InputError, match="may guard"):
        AllocationProblem.from_text(text)
    AllocationProblem.from_text(text.replace("R0 P1", "R0"))
