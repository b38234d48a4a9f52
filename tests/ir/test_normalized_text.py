"""The normalized text: an exact round trip, and one spelling of each function."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generated import random_function
from verilocc_bench.errors import InputError
from verilocc_bench.ir import RegisterFile, parse_function, print_function

HEAD = "verilocc-bench 1\ntarget gfx942\nregisters v:256 a:256 s:102 vcc:2=vcc_lo,vcc_hi\n"
TEXT = HEAD + (
    "reserved s32\nclass S1 1 s[0-9]\nclass V2 2 v/2\n"
    "bb0(v0,s[2:3])->bb1\n%0:V2=COPY v0,%1\n%0.1!=A %0.0,+vcc\nbb1->bb1\nB %0,v3~0\n"
).replace("B %0,v3~0", "%0&=B %0~0")


@given(st.integers(0, 10**6))
@settings(max_examples=25, deadline=None)
def test_round_trip(seed: int) -> None:
    text = print_function(random_function(seed))
    function = parse_function(text)
    assert print_function(function) == text
    assert parse_function(print_function(function)) == function


@given(
    st.integers(0, len(TEXT)),
    st.integers(0, 4),
    st.text("0179 ,%:.-~!&+vsb²\n\r[]()/=>", max_size=3),
)
@settings(max_examples=250, deadline=None)
def test_what_is_accepted_prints_as_it_was(start: int, length: int, junk: str) -> None:
    text = TEXT[:start] + junk + TEXT[start + length :]
    try:
        function = parse_function(text)
    except InputError as error:
        assert error.line is not None  # noqa: PT017
    else:
        assert print_function(function) == text


def test_the_example_is_accepted() -> None:
    assert print_function(parse_function(TEXT)) == TEXT


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("v0,s[2:3]", "", 7),  # an empty list of live-in registers
        ("v0,s[2:3]", "v0,s[02:3]", 7),
        ("v0,s[2:3]", "v0,s[2:2]", 7),
        ("COPY v0", "COPY v007", 8),
        ("COPY v0", "COPY  v0", 8),
        ("COPY v0", "COPY v0 ", 8),
        ("COPY v0", "COPY v0\r", 8),
        ("A %0.0", "A %00.0", 9),
        ("A %0.0", "A %0.0-0", 9),
        ("A %0.0", "A %0.0-1", 9),
        ("A %0.0", "A %0.2", 9),
        ("A %0.0", "A %0.0&", 9),
        ("A %0.0", "A %0.0~1", 9),
        ("%0.1!", "%0.1!~0", 9),
        ("A %0.0", "A %3", 9),
        ("A %0.0", "A %3:V2", 9),
        ("v/2", "v[0-254]/2", 6),
        ("v/2", "v/0", 6),
        ("v/2", "v[9-3]", 6),
        ("v/2", "v[0-3]/2", 6),
        ("class V2 2 v/2", "class V2 2 v/2\nclass V9 1 v", 7),  # unused
        ("class V2 2", "class V2 ²", 6),
        ("class V2 2 v/2", "class V2 129 v/2", 6),
        ("class V2 2 v/2", "class V2 2 v/2 v/2", 6),
        ("s[0-9]", "s[0-4] s[4-9]", 5),
        ("class V2 2 v/2", "class S1 2 v/2", 6),
        ("v:256", "v:0256", 3),
        ("v:256", "v:256 v:256", 3),
        ("vcc_lo,vcc_hi", "vcc_lo", 3),
        ("->bb1\n%0:", "->bb1,bb1\n%0:", 7),
        ("bb1->bb1", "bb1->bb2", 10),
        ("bb1->bb1", "bb1->bb" + "9" * 5000, 10),
        ("bb1->bb1", "bb1(v0)->bb1", 10),
        ("bb1->bb1", "bb01->bb1", 10),
        ("reserved s32", "reserved s32 ", 4),
        ("class S1", "occupancy 0\nclass S1", 5),
        ("class S1", "occupancy 03\nclass S1", 5),
        ("class S1", "occupancy 3 waves\nclass S1", 5),
        ("class S1", "occupancy 1000\nclass S1", 5),
        ("class S1", "occupancy 3\noccupancy 3\nclass S1", 6),
        ("reserved s32\n", "occupancy 3\nreserved s32\n", 5),
        ("verilocc-bench 1", "verilocc-bench 2", 1),
    ],
)
def test_other_spellings_are_refused(old: str, new: str, line: int) -> None:
    assert TEXT.count(old) >= 1
    with pytest.raises(InputError) as caught:
        parse_function(TEXT.replace(old, new, 1), "x")
    assert (caught.value.source, caught.value.line) == ("x", line)


def test_a_class_may_be_as_wide_as_the_widest_accumulator() -> None:
    text = HEAD + "class V 128 v\nbb0\n%0=OP\n"
    assert print_function(parse_function(text)) == text


@pytest.mark.parametrize("count", [0, 1, 2])
def test_a_budget_may_be_less_than_the_named_units(count: int) -> None:
    text = HEAD.replace("vcc:2", f"vcc:{count}") + "class V 1 v\nbb0(vcc)\n%0=COPY vcc_hi\n"
    function = parse_function(text)
    assert function.file("vcc") == RegisterFile("vcc", count, ("vcc_lo", "vcc_hi"))
    assert print_function(function) == text


def test_a_budget_beyond_the_named_units_is_refused() -> None:
    text = HEAD.replace("vcc:2", "vcc:3") + "class V 1 v\nbb0\n%0=OP\n"
    with pytest.raises(InputError, match="vcc has 3 units, but 2 names"):
        parse_function(text)


def test_the_upper_limit_of_occupancy_is_read_and_printed() -> None:
    text = TEXT.replace("class S1", "occupancy 3\nclass S1")
    function = parse_function(text)
    assert function.maximum_occupancy == 3
    assert print_function(function) == text
    assert parse_function(TEXT).maximum_occupancy is None


@pytest.mark.parametrize("text", ["", "\0", TEXT[:-1], HEAD, TEXT + "\n"])
def test_cut_texts(text: str) -> None:
    with pytest.raises(InputError):
        parse_function(text)
