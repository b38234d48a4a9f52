"""Scalars and keys in the head of a machine function."""

from __future__ import annotations

import pytest

from verilocc_bench.backends.amdgpu.mir_yaml import read_scalar, read_settings
from verilocc_bench.errors import InputError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (" f ", "f"),
        ("f # said", "f"),
        ("# said", ""),
        ("a#b", "a#b"),
        ("'it''s' # a name", "it's"),
        ("'a # b'", "a # b"),
        ("''", ""),
        (r'"a\nb\x41\u00e9\U0001F600\\"', "a\nbAé😀\\"),
        (r'"\U0011FFFF \"', r'"\U0011FFFF \"'),
        (r'"\ud800"', "?"),
        ('"é"', "é"),
    ],
)
def test_scalars(text: str, value: str) -> None:
    assert read_scalar(text) == value


def test_settings() -> None:
    rows = """\
    # said
    isEntryFunction: true   # yes
    scratchRSrcReg:  '$sgpr0_sgpr1_sgpr2_sgpr3'
    argumentInfo:
      workItemIDX:     { reg: '$vgpr0', mask: 1023 }
        deeper
    wwmReservedRegs:
      - '$vgpr1'
      - '$vgpr2'
    spillPhysVGPRs:
    - '$vgpr3'
    none: []
    two: [ 'a', b ] # said
""".splitlines()
    assert read_settings("  # said", rows) == {
        "isEntryFunction": "true",
        "scratchRSrcReg": "$sgpr0_sgpr1_sgpr2_sgpr3",
        "argumentInfo": "",
        "wwmReservedRegs": "$vgpr1, $vgpr2",
        "spillPhysVGPRs": "$vgpr3",
        "none": "",
        "two": "a, b",
    }


def test_settings_in_one_line() -> None:
    assert read_settings("{ isEntryFunction: true, frameOffsetReg: '$sgpr33' }", []) == {
        "isEntryFunction": "true",
        "frameOffsetReg": "$sgpr33",
    }
    assert read_settings("{}", []) == {}


@pytest.mark.parametrize(
    ("value", "rows", "line"),
    [
        ("true", [], 0),
        ("{ a: { b: c } }", [], 0),
        ("{ a }", [], 0),
        ("", ["  a: 1", "  what"], 2),
        ("", ["    a: 1", "  b: 2"], 2),
        ("", ["  a: [ 1,", "  2 ]"], 1),
    ],
)
def test_what_is_not_known(value: str, rows: list[str], line: int) -> None:
    with pytest.raises(InputError) as caught:
        read_settings(value, rows)
    assert caught.value.line == line
