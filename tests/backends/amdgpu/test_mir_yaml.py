"""The keys of a machine function: the YAML that llc reads, and refusals with their line."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from verilocc_bench.backends.amdgpu.mir_yaml import Frame, read_frame
from verilocc_bench.backends.amdgpu.normalize import normalize_machine_function
from verilocc_bench.backends.amdgpu.read import parse_mir
from verilocc_bench.backends.amdgpu.tools import run_llc
from verilocc_bench.backends.amdgpu.write_back import write_assignment
from verilocc_bench.errors import InputError
from verilocc_bench.ir import PhysicalRegister, print_function
from verilocc_bench.targets import get_target


def frame(text: str) -> Frame:
    lines = text.split("\n")
    return read_frame(lines, 0, len(lines))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f", "f"),
        ("f # said", "f"),
        ("# said", ""),
        ("a#b", "a#b"),
        ("'it''s' # a name", "it's"),
        ("'a # b'", "a # b"),
        ("''", ""),
        (r'"a\nb\x41\u00e9\U0001F600\\"', "a\nbAé😀\\"),
        ('"é"', "é"),
        ("123", "123"),
        ("yes", "yes"),
        ("&a f", "f"),
    ],
)
def test_scalars(text: str, value: str) -> None:
    assert frame(f"name: {text}").scalar("name") == value


def test_settings() -> None:
    text = """\
machineFunctionInfo: &all # said
    # said
    isEntryFunction: &yes true   # yes
    "scratchRSrcReg" :  '$sgpr0_sgpr1_sgpr2_sgpr3'
    argumentInfo:
      workItemIDX:     { reg: '$vgpr0', mask: 1023 }
    wwmReservedRegs:
      - '$vgpr1'
      - '$vgpr2'
    spillPhysVGPRs:
    - '$vgpr3'
    none: []
    two: [ 'a',
        b ] # said
    same: *yes
again: *all
line: { isEntryFunction: true, frameOffsetReg: '$sgpr33' }
empty:
"""
    found = frame(text)
    settings = found.settings("machineFunctionInfo")
    assert settings == {
        "isEntryFunction": "true",
        "scratchRSrcReg": "$sgpr0_sgpr1_sgpr2_sgpr3",
        "argumentInfo": "",
        "wwmReservedRegs": "$vgpr1, $vgpr2",
        "spillPhysVGPRs": "$vgpr3",
        "none": "",
        "two": "a, b",
        "same": "true",
    }
    assert found.settings("again") == settings
    assert found.settings("line") == {"isEntryFunction": "true", "frameOffsetReg": "$sgpr33"}
    assert found.settings("empty") == found.settings("missing") == {}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("name: f\nname: g", 2, "'name' stands twice"),
        ("info: true", 1, "expected keys below 'info:', not 'true'"),
        ("info:\n  a: 1\n  a: 2", 3, "'a' stands twice"),
        ("info:\n  a: 1\n  what", 4, "expected YAML"),
        ("info:\n    a: 1\n  b: 2", 3, "expected YAML"),
        ("info: *no", 1, "undefined alias"),
        ("- f", 1, "expected keys"),
        ('name: "\\ud800"', 1, "expected YAML"),
        ("name: \x01", 1, "expected YAML"),
        ("? [a]\n: f", 1, "expected a word as a key"),
        ("stack: " + "[" * 100_000, 1, "nested more than 50 deep"),
        ("stack:\n" + "- " * 50_000 + "a", 1, "nested more than 50 deep"),
    ],
)
def test_what_is_not_known(text: str, line: int, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        frame(text).settings("info")
    assert caught.value.line == line


def test_a_list_that_holds_itself_has_an_end() -> None:
    assert frame("info: { a: &a [ *a ] }").settings("info") == {"a": ""}


PRINTED = """\
---
name: k
tracksRegLiveness: true
noVRegs: false
registers:
  - { id: 0, class: vgpr_32, preferred-register: '', flags: [  ] }
  - { id: 1, class: vreg_64_align2, preferred-register: '', flags: [  ] }
liveins:
  - { reg: '$vgpr0', virtual-reg: '%0' }
machineFunctionInfo:
  isEntryFunction: true
body: |
  bb.0:
    liveins: $vgpr0
    %0 = COPY $vgpr0
    undef %1.sub0 = COPY %0
    %1.sub1 = V_MOV_B32_e32 7, implicit $exec
    S_ENDPGM 0, implicit %1
...
"""
ROWS = PRINTED.partition("registers:\n")[2].partition("liveins:")[0]
IN_BLOCKS = """\
- id: 0
  class: vgpr_32
- id: 1
  class: "vreg_64_align2"
"""
SPELLINGS = {
    "anchors": PRINTED.replace("Info:", "Info: &info").replace("tion: true", "tion: &t true"),
    "anchors in rows": PRINTED.replace("name: k", "name: &vgpr_32 k").replace(
        "class: vgpr_32", "class: &c vgpr_32"
    ),
    "quoted keys": re.sub(r"^(\w+):", r"'\1':", PRINTED, flags=re.M),
    "double quotes": re.sub(r"^( *)(\w+):", r'\1"\2":', PRINTED.partition("body")[0], flags=re.M)
    + "".join(PRINTED.partition("body")[1:]),
    "flow": PRINTED.replace("Info:\n  isEntryFunction: true", "Info: { isEntryFunction: true }"),
    "flow over lines": PRINTED.replace("id: 0, class", "id: 0,\n      class"),
    "rows in blocks": PRINTED.replace(ROWS, IN_BLOCKS),
    "rows in one list": PRINTED.replace("registers:\n", "registers: [").replace(
        ROWS, "{ id: 0, class: vgpr_32 }, { id: 1, class: vreg_64_align2 } ]\n"
    ),
    "live-ins in blocks": PRINTED.replace(
        "  - { reg: '$vgpr0', virtual-reg: '%0' }", "- virtual-reg: '%0'\n  reg: $vgpr0"
    ),
    "spaces": PRINTED.replace("name: k", "name :    k").replace("body: |", "body :   |  # said"),
    "no end mark": PRINTED.removesuffix("...\n"),
    "no last line break": PRINTED.removesuffix("\n...\n"),
    "registers below the body": PRINTED.replace("registers:\n" + ROWS, "").replace(
        "...\n", "registers:\n" + ROWS + "...\n"
    ),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.usefixtures("llc")
def test_spellings_that_llc_reads(spelling: str, llc: Callable[..., str]) -> None:
    text = SPELLINGS[spelling]
    assert text != PRINTED
    options = ("-x", "mir", "-start-before=greedy")
    assert "s_endpgm" in llc(text, "gfx942", *options)
    found, expected = (parse_mir(each, "x.mir") for each in (text, PRINTED))
    target = get_target("gfx942")
    normalized, plain = (
        normalize_machine_function(module.functions[0], module, target)
        for module in (found, expected)
    )
    assert print_function(normalized.function) == print_function(plain.function)
    machine = found.functions[0]
    assert machine.info == {"isEntryFunction": "true"}
    assignment = {0: PhysicalRegister("v", 0), 1: PhysicalRegister("v", 2)}
    lowered = write_assignment(text, machine, normalized, assignment)
    assert "s_endpgm" in run_llc(lowered.text, "gfx942", "asm").decode()
    (again,) = parse_mir(lowered.text).functions
    assert again.no_virtual_registers
    assert not again.classes


def test_registers_and_their_lines() -> None:
    for text in (PRINTED, SPELLINGS["rows in blocks"]):
        lines = text.split("\n")[1:]
        rows = read_frame(lines, 0, len(lines) - 2).registers(lines)
        assert rows.classes == {"0": "vgpr_32", "1": "vreg_64_align2"}
        assert rows.lines["0"] == lines.index("registers:") + 2
    flagged = "registers:\n- id: 0\n  class: vgpr_32\n  flags: [ WWM_REG ]\n"
    assert frame(flagged).registers(flagged.split("\n")).whole_wave == {"0": 2}


@pytest.mark.parametrize(
    ("rows", "line", "words"),
    [
        ("  - { id: x, class: a }", 2, "expected a number after 'id:', not 'x'"),
        ("  - { id: 1 }", 2, "expected '- { id: …, class: … }'"),
        ("  - a", 2, "not 'a'"),
        ("  a: b", 2, "expected a list"),
        ("  - { id: 1, class: a }\n  - { id: 1, class: b }", 3, "%1 is described twice"),
        ("  - { id: 1, class: a }\n  - { id: 1,\n class: b }", 3, "%1 is described twice"),
        ("  - { id: 1, class: a", 3, "expected YAML"),
    ],
)
def test_rows_that_are_no_registers(rows: str, line: int, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)) as caught:
        frame(f"registers:\n{rows}\n").registers(["registers:", *rows.split("\n"), ""])
    assert caught.value.line == line
