"""Why the independent checker allows no register, in its own words; and how it names units."""

from __future__ import annotations

import pytest

from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.ir import parse_function
from verilocc_bench.verification.symbolic import SymbolicChecker

HEADER = """verilocc-bench 1
target gfx942
registers v:64 a:1 s:102 vcc:2=vcc_lo,vcc_hi
reserved v40 s3 s32 s33
"""


def check(
    classes: str, body: str, *names: str, header: str = HEADER, more: dict[str, str] | None = None
) -> tuple[Finding, ...]:
    function = parse_function(f"{header}{classes}bb0\n{body}", canonical=False)
    answer = {f"%{number}": name for number, name in enumerate(names)}
    return SymbolicChecker(function).check({**answer, **(more or {})})


def reason(register_class: str, name: str, header: str = HEADER) -> tuple[FindingKind, str]:
    """Why a register of a class cannot be there."""
    (finding,) = check(f"class {register_class}\n", "%0=A\nB %0\n", name, header=header)
    said, _, because = finding.message.partition(": ")
    assert said == f"%0 of class {register_class.split(maxsplit=1)[0]} cannot be in {name}"
    assert (finding.registers, finding.unit) == (("%0", name), name)
    return finding.kind, because


@pytest.mark.parametrize(
    ("register_class", "name", "kind", "because"),
    [
        ("G 1 s", "vcc", FindingKind.WRONG_CLASS, "vcc is 2 registers; one is vcc_lo or vcc_hi"),
        ("V 1 v", "a0", FindingKind.WRONG_CLASS, "the class allows v"),
        ("S2 2 s/2 vcc/2", "v4", FindingKind.WRONG_CLASS, "the class allows s or vcc"),
        ("NONE 1", "v4", FindingKind.WRONG_CLASS, "the class allows no file at all"),
        ("V2 2 v/2", "v63", FindingKind.OVER_BUDGET, "it needs 2 from v63, the budget is 64"),
        ("G4 4 s/4", "s32", FindingKind.RESERVED, "s32, s33 is reserved"),
        ("S2 2 s/2 vcc/2", "s2", FindingKind.RESERVED, "s3 is reserved"),
        ("V2 2 v/2", "v5", FindingKind.MISALIGNED, "its bases are 2 apart"),
        (
            "V2.to4.by4.from9.to13.by4 2 v[0-4]/4 v[9-13]/4",
            "v6",
            FindingKind.MISALIGNED,
            "its bases are 4 or 4 apart",
        ),
        ("V2.from1.to5.by4 2 v[1-5]/4", "v3", FindingKind.MISALIGNED, "its bases are 4 apart"),
        ("V.from4.to9 1 v[4-9]", "v2", FindingKind.WRONG_CLASS, "the class allows v 4 to 9"),
        (
            "V.to2.from10.to20 1 v[0-2] v[10-20]",
            "v5",
            FindingKind.WRONG_CLASS,
            "the class allows v 0 to 2, v 10 to 20",
        ),
        ("V2.from5.to9.by4 2 v[5-9]/4", "v1", FindingKind.WRONG_CLASS, "the class allows v 5 to 9"),
    ],
)
def test_reasons(register_class: str, name: str, kind: FindingKind, because: str) -> None:
    assert reason(register_class, name) == (kind, because)


def test_a_file_that_the_function_does_not_have_has_no_budget() -> None:
    header = HEADER.replace(" a:1", "")
    expected = FindingKind.OVER_BUDGET, "it needs 1 from a0, the budget is 0"
    assert reason("V 1 v", "a0", header) == expected


def test_reserved_registers_below_and_above_do_no_harm() -> None:
    assert check("class V 1 v\n", "%0=A\nB %0\n", "v41") == ()
    assert check("class V 1 v\n", "%0=A\nB %0\n", "v39") == ()
    assert check("class G4 4 s/4\n", "%0=A\nB %0\n", "s36") == ()


def test_names_that_mean_nothing_are_cut_short() -> None:
    stranger, unknown = check(
        "class V 1 v\n", "%0=A\nB %0\n", "v" + "1" * 99, more={"%" + "7" * 99: "v3"}
    )
    assert unknown.message == f"%0: gfx942 has no register 'v{'1' * 39}'"
    assert unknown.registers == ("%0", "v" + "1" * 39)
    assert stranger.message == (
        f"%{'7' * 39} is not a virtual register: the function has 1 of them"
    )
    assert stranger.registers == ("%" + "7" * 39,)


def test_units_have_the_names_of_the_assembler() -> None:
    classes = "class S2 2 s/2 vcc/2\n"
    findings = check(classes, "%0=A\nvcc_hi=B\nC %0,vcc_hi\n", "vcc")
    assert [finding.unit for finding in findings] == ["vcc_hi"]
    assert findings[0].message.startswith(
        "bb0 instruction 2 (C) reads %0.1, defined at bb0 instruction 0, from vcc_hi, which holds "
        "vcc_hi there: vcc_hi was last written by bb0 instruction 1 (B)"
    )
    (beyond,) = check(classes, "%0=A\nB %0\n", "vcc_hi")
    assert beyond.kind is FindingKind.OVER_BUDGET


@pytest.mark.parametrize(("definitions", "early"), [("%0:V,%1:V&", "%1"), ("%0:V&,%1:V", "%0")])
def test_of_two_definitions_the_early_one_is_named(definitions: str, early: str) -> None:
    (finding,) = check("class V 1 v\n", f"{definitions}=A\n", "v0", "v0")
    assert finding.kind is FindingKind.EARLY_CLOBBER
    assert finding.message == (
        f"bb0 instruction 0 (A) writes both %0 and %1 to v0, {early} before it reads its uses"
    )
