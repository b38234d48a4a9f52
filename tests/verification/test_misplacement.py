"""Why a register is no legal place: the kind and the words of each reason."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import FastVerifier

HEADER = """verilocc-bench 1
target gfx942
registers v:64 a:1 s:102 vcc:2=vcc_lo,vcc_hi
reserved s3 s32 s33
"""
FILES = "v:64 a:1 s:102 vcc:2"


def judge(classes: str, body: str, *names: str, files: str = FILES) -> tuple[Finding, ...]:
    """All findings on the answer that gives %0, %1, … these names."""
    header = HEADER.replace(FILES, files)
    problem = AllocationProblem(parse_function(f"{header}{classes}bb0\n{body}", canonical=False))
    answer = {f"%{number}": name for number, name in enumerate(names)}
    return FastVerifier(problem).verify(answer).findings


@pytest.mark.parametrize(
    ("register_class", "name", "kind", "reason"),
    [
        # A register of another file; a file of one register, or of names, is one like others.
        ("V 1 v", "s4", FindingKind.WRONG_CLASS, "the class allows v"),
        ("V 1 v", "a0", FindingKind.WRONG_CLASS, "the class allows v"),
        ("S2 2 s/2 vcc/2", "v4", FindingKind.WRONG_CLASS, "the class allows s or vcc"),
        ("G 1 s", "vcc_lo", FindingKind.WRONG_CLASS, "the class allows s"),
        ("NONE 1", "v4", FindingKind.WRONG_CLASS, "the class allows no file at all"),
        # The name of a pair for one register, and for four.
        ("G 1 s", "vcc", FindingKind.WRONG_CLASS, "vcc is 2 registers; one is vcc_lo or vcc_hi"),
        ("G4 4 s/4", "vcc", FindingKind.WRONG_CLASS, "vcc is 2 registers; one is vcc_lo or vcc_hi"),
        # What the hardware has beyond the function's budget.
        ("V 1 v", "v64", FindingKind.OVER_BUDGET, "it needs v64, the budget is 64"),
        ("V 1 v", "v255", FindingKind.OVER_BUDGET, "it needs v255, the budget is 64"),
        (
            "V2 2 v/2",
            "v63",
            FindingKind.OVER_BUDGET,
            "it needs 2 registers from v63, the budget is 64",
        ),
        (
            "S2 2 s/2 vcc/2",
            "vcc_hi",
            FindingKind.OVER_BUDGET,
            "it needs 2 registers from vcc_hi, the budget is 2",
        ),
        # Reserved registers: those that it would cover, and no others.
        ("G 1 s", "s3", FindingKind.RESERVED, "s3 is reserved"),
        ("G4 4 s/4", "s32", FindingKind.RESERVED, "s32, s33 is reserved"),
        ("S2 2 s/2 vcc/2", "s2", FindingKind.RESERVED, "s3 is reserved"),
        ("S2 2 s/2 vcc/2", "s5", FindingKind.MISALIGNED, "it must start at s0, s2, s4, …"),
        # Starts of a class, as many as it has.
        ("V2 2 v/2", "v5", FindingKind.MISALIGNED, "it must start at v0, v2, v4, …"),
        ("G4 4 s/4", "s42", FindingKind.MISALIGNED, "it must start at s0, s4, s8, …"),
        ("V2.to6 2 v[0-6]/2", "v9", FindingKind.MISALIGNED, "it must start at v0, v2, v4, …"),
        ("V2.to4 2 v[0-4]/2", "v9", FindingKind.MISALIGNED, "it must start at v0, v2, v4"),
        ("V2.to0 2 v[0-0]/2", "v9", FindingKind.MISALIGNED, "it must start at v0"),
        ("V2.from1.to5.by4 2 v[1-5]/4", "v3", FindingKind.MISALIGNED, "it must start at v1, v5"),
        (
            "V2.to2.from8.to10 2 v[0-2]/2 v[8-10]/2",
            "v5",
            FindingKind.MISALIGNED,
            "it must start at v0, v2, v8, …",
        ),
        # Aligned, and yet outside.
        ("V.from4.to9 1 v[4-9]", "v63", FindingKind.WRONG_CLASS, "the class allows v4 to v9"),
        ("V.from4.to9 1 v[4-9]", "v2", FindingKind.WRONG_CLASS, "the class allows v4 to v9"),
        (
            "V.to2.from10.to20 1 v[0-2] v[10-20]",
            "v5",
            FindingKind.WRONG_CLASS,
            "the class allows v0 to v2, v10 to v20",
        ),
        (
            "V2.from5.to9.by4 2 v[5-9]/4",
            "v1",
            FindingKind.WRONG_CLASS,
            "the class allows v5 to v9",
        ),
        # Aligned to one of its ranges, though not to the other.
        (
            "V2.from5.to9.by4.from20.to22 2 v[5-9]/4 v[20-22]/2",
            "v13",
            FindingKind.WRONG_CLASS,
            "the class allows v5 to v9, v20 to v22",
        ),
    ],
)
def test_reasons(register_class: str, name: str, kind: FindingKind, reason: str) -> None:
    class_name = register_class.split(maxsplit=1)[0]
    (finding,) = judge(f"class {register_class}\n", "%0=OP\nUSE %0\n", name)
    assert finding.kind is kind
    assert finding.message == f"%0 of class {class_name} cannot be in {name}: {reason}"
    assert (finding.registers, finding.unit) == (("%0", name), name)


def test_what_has_a_budget_of_none_is_beyond_it() -> None:
    files = FILES.replace("a:1", "a:0")
    (finding,) = judge("class V 1 v\n", "%0=OP\nUSE %0\n", "a0", files=files)
    assert finding.kind is FindingKind.OVER_BUDGET
    assert finding.message == "%0 of class V cannot be in a0: it needs a0, the budget is 0"


def test_a_name_that_is_no_register_is_cut_short() -> None:
    (finding,) = judge("class V 1 v\n", "%0=OP\nUSE %0\n", "v" + "1" * 99)
    assert finding.kind is FindingKind.UNKNOWN_PHYSICAL_REGISTER
    assert finding.registers == ("%0", "v" + "1" * 39)
    assert finding.message == f"%0: gfx942 has no register 'v{'1' * 39}'"


def kinds(findings: tuple[Finding, ...]) -> list[FindingKind]:
    return [finding.kind for finding in findings]


def test_registers_beyond_the_budget_can_collide_too() -> None:
    body = "%0=OP\n%1=OP\nUSE %0,%1\n"
    assert kinds(judge("class V 1 v\n", body, "v255", "v255")) == [
        FindingKind.OVER_BUDGET,
        FindingKind.OVER_BUDGET,
        FindingKind.OVERLAP,
    ]
    assert kinds(judge("class V 1 v\n", body, "v255", "v254")) == [FindingKind.OVER_BUDGET] * 2


def test_a_tuple_does_not_go_on_in_the_next_file() -> None:
    """After v255 the units are numbered on with a0, which is another register."""
    body = "%0:V2=OP\n%1:A=OP\nUSE %0,%1\n"
    classes = "class A 1 a\nclass V2 2 v/2\n"
    assert kinds(judge(classes, body, "v255", "a0")) == [FindingKind.OVER_BUDGET]
