"""Why a register is no legal place, in the words of the fast check and of the independent one."""

from __future__ import annotations

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits.findings import Finding, FindingKind
from verilocc_bench.ir import parse_function
from verilocc_bench.verification import FastVerifier, IndependentVerifier
from verilocc_bench.verification.symbolic import SymbolicChecker

HEADER = """verilocc-bench 1
target gfx942
registers v:64 a:1 s:102 vcc:2=vcc_lo,vcc_hi
reserved v40 s3 s32 s33
"""
CLASS, BUDGET, RESERVED, MISALIGNED = (
    FindingKind.WRONG_CLASS,
    FindingKind.OVER_BUDGET,
    FindingKind.RESERVED,
    FindingKind.MISALIGNED,
)
OF_VCC = "vcc is 2 registers; one is vcc_lo or vcc_hi"
APART = "its bases are 2 apart"
CHECKS = (FastVerifier, IndependentVerifier)
both = pytest.mark.parametrize("check", CHECKS)


def judge(
    check: type[FastVerifier | IndependentVerifier],
    classes: str,
    body: str,
    *names: str,
    header: str = HEADER,
    more: dict[str, str] | None = None,
) -> tuple[Finding, ...]:
    """All findings on the answer that gives %0, %1, … these names."""
    problem = AllocationProblem(parse_function(f"{header}{classes}bb0\n{body}", canonical=False))
    answer = {f"%{number}": name for number, name in enumerate(names)}
    return check(problem).verify({**answer, **(more or {})}).findings


@pytest.mark.parametrize(
    ("register_class", "name", "kind", "fast", "independent"),
    [
        # A register of another file; a file of one register, or of names, is one like others.
        ("V 1 v", "s4", CLASS, "the class allows v", None),
        ("V 1 v", "a0", CLASS, "the class allows v", None),
        ("S2 2 s/2 vcc/2", "v4", CLASS, "the class allows s or vcc", None),
        ("G 1 s", "vcc_lo", CLASS, "the class allows s", None),
        ("NONE 1", "v4", CLASS, "the class allows no file at all", None),
        # The name of a pair for one register, and for four.
        ("G 1 s", "vcc", CLASS, OF_VCC, None),
        ("S 1 s vcc", "vcc", CLASS, OF_VCC, None),
        ("G4 4 s/4", "vcc", CLASS, OF_VCC, None),
        # What the hardware has beyond the function's budget.
        ("V 1 v", "v64", BUDGET, "it needs v64, the budget is 64",
         "it needs 1 from v64, the budget is 64"),
        ("V 1 v", "v255", BUDGET, "it needs v255, the budget is 64",
         "it needs 1 from v255, the budget is 64"),
        ("V2 2 v/2", "v63", BUDGET, "it needs 2 registers from v63, the budget is 64",
         "it needs 2 from v63, the budget is 64"),
        ("S2 2 s/2 vcc/2", "vcc_hi", BUDGET, "it needs 2 registers from vcc_hi, the budget is 2",
         "it needs 2 from vcc_hi, the budget is 2"),
        # Reserved registers: those that it would cover, and no others.
        ("G 1 s", "s3", RESERVED, "s3 is reserved", None),
        ("G4 4 s/4", "s32", RESERVED, "s32, s33 is reserved", None),
        ("S2 2 s/2 vcc/2", "s2", RESERVED, "s3 is reserved", None),
        # Starts of a class, as many as it has.
        ("S2 2 s/2 vcc/2", "s5", MISALIGNED, "it must start at s0, s2, s4, …",
         APART),
        ("V2 2 v/2", "v5", MISALIGNED, "it must start at v0, v2, v4, …", APART),
        ("G4 4 s/4", "s42", MISALIGNED, "it must start at s0, s4, s8, …", "its bases are 4 apart"),
        ("V2.to6 2 v[0-6]/2", "v9", MISALIGNED, "it must start at v0, v2, v4, …", APART),
        ("V2.to4 2 v[0-4]/2", "v9", MISALIGNED, "it must start at v0, v2, v4", APART),
        ("V2.to0 2 v[0-0]/2", "v9", MISALIGNED, "it must start at v0", APART),
        ("V2.from1.to5.by4 2 v[1-5]/4", "v3", MISALIGNED, "it must start at v1, v5",
         "its bases are 4 apart"),
        ("V2.to2.from8.to10 2 v[0-2]/2 v[8-10]/2", "v5", MISALIGNED,
         "it must start at v0, v2, v8, …", "its bases are 2 or 2 apart"),
        ("V2.to4.by4.from9.to13.by4 2 v[0-4]/4 v[9-13]/4", "v6", MISALIGNED,
         "it must start at v0, v4, v9, …", "its bases are 4 or 4 apart"),
        # Aligned, and yet outside.
        ("V.to9 1 v[0-9]", "v10", CLASS, "the class allows v0 to v9", "the class allows v 0 to 9"),
        ("V.from4.to9 1 v[4-9]", "v63", CLASS, "the class allows v4 to v9",
         "the class allows v 4 to 9"),
        ("V.from4.to9 1 v[4-9]", "v2", CLASS, "the class allows v4 to v9",
         "the class allows v 4 to 9"),
        ("V.to2.from10.to20 1 v[0-2] v[10-20]", "v5", CLASS,
         "the class allows v0 to v2, v10 to v20", "the class allows v 0 to 2, v 10 to 20"),
        ("V2.from5.to9.by4 2 v[5-9]/4", "v1", CLASS, "the class allows v5 to v9",
         "the class allows v 5 to 9"),
        # Aligned to one of its ranges, though not to the other.
        ("V2.from5.to9.by4.from20.to22 2 v[5-9]/4 v[20-22]/2", "v13", CLASS,
         "the class allows v5 to v9, v20 to v22", "the class allows v 5 to 9, v 20 to 22"),
    ],
)  # fmt: skip
def test_reasons(
    register_class: str, name: str, kind: FindingKind, fast: str, independent: str | None
) -> None:
    class_name = register_class.split(maxsplit=1)[0]
    for check, reason in zip(CHECKS, (fast, independent or fast), strict=True):
        (finding,) = judge(check, f"class {register_class}\n", "%0=OP\nUSE %0\n", name)
        said, _, because = finding.message.partition(": ")
        assert said == f"%0 of class {class_name} cannot be in {name}"
        assert because == reason
        assert (finding.kind, finding.registers, finding.unit) == (kind, ("%0", name), name)


@pytest.mark.parametrize(
    ("register_class", "name"),
    [
        ("V 1 v", "v39"), ("V 1 v", "v41"), ("G4 4 s/4", "s36"), ("V.to9 1 v[0-9]", "v9"),
        ("S 1 s vcc", "vcc_hi"), ("S2 2 s/2 vcc/2", "vcc"), ("S2 2 s/2 vcc/2", "vcc_lo"),
    ],
)  # fmt: skip
@both
def test_legal_places(
    check: type[FastVerifier | IndependentVerifier], register_class: str, name: str
) -> None:
    assert judge(check, f"class {register_class}\n", "%0=OP\nUSE %0\n", name) == ()


def test_a_file_without_registers_has_a_budget_of_none() -> None:
    classes, body, message = (
        "class V 1 v\n",
        "%0=OP\nUSE %0\n",
        "%0 of class V cannot be in a0: it needs",
    )
    header = HEADER.replace("a:1", "a:0")
    for check, needed in ((FastVerifier, "a0"), (IndependentVerifier, "1 from a0")):
        (finding,) = judge(check, classes, body, "a0", header=header)
        assert finding.kind is BUDGET
        assert finding.message == f"{message} {needed}, the budget is 0"
    # A file that the function does not list.
    text = f"{HEADER.replace(' a:1', '')}{classes}bb0\n{body}"
    (finding,) = SymbolicChecker(parse_function(text, canonical=False)).check({"%0": "a0"})
    assert finding.message == f"{message} 1 from a0, the budget is 0"


@both
def test_names_that_mean_nothing_are_cut_short(
    check: type[FastVerifier | IndependentVerifier],
) -> None:
    found = judge(
        check, "class V 1 v\n", "%0=OP\nUSE %0\n", "v" + "1" * 99, more={"%" + "7" * 99: "v3"}
    )
    stranger, unknown = sorted(found, key=lambda finding: finding.registers, reverse=True)
    assert unknown.kind is FindingKind.UNKNOWN_PHYSICAL_REGISTER
    assert unknown.message == f"%0: gfx942 has no register 'v{'1' * 39}'"
    assert unknown.registers == ("%0", "v" + "1" * 39)
    assert stranger.kind is FindingKind.UNKNOWN_VIRTUAL_REGISTER
    assert stranger.message == (
        f"%{'7' * 39} is not a virtual register: the function has 1 of them"
    )
    assert stranger.registers == ("%" + "7" * 39,)


def kinds(findings: tuple[Finding, ...]) -> list[FindingKind]:
    return [finding.kind for finding in findings]


def test_registers_beyond_the_budget_can_collide_too() -> None:
    body = "%0=OP\n%1=OP\nUSE %0,%1\n"
    for other, expected in (
        ("v255", [BUDGET, BUDGET, FindingKind.OVERLAP]),
        ("v254", [BUDGET] * 2),
    ):
        assert kinds(judge(FastVerifier, "class V 1 v\n", body, "v255", other)) == expected


def test_a_tuple_does_not_go_on_in_the_next_file() -> None:
    """After v255 the units are numbered on with a0, which is another register."""
    body = "%0:V2=OP\n%1:A=OP\nUSE %0,%1\n"
    classes = "class A 1 a\nclass V2 2 v/2\n"
    assert kinds(judge(FastVerifier, classes, body, "v255", "a0")) == [BUDGET]


def test_units_have_the_names_of_the_assembler() -> None:
    body = "%0=A\nvcc_hi=B\nC %0,vcc_hi\n"
    (finding,) = judge(IndependentVerifier, "class S2 2 s/2 vcc/2\n", body, "vcc")
    assert finding.unit == "vcc_hi"
    assert finding.message.startswith(
        "bb0 instruction 2 (C) reads %0.1, defined at bb0 instruction 0, from vcc_hi, which holds "
        "vcc_hi there: vcc_hi was last written by bb0 instruction 1 (B)"
    )


@pytest.mark.parametrize(("definitions", "early"), [("%0:V,%1:V&", "%1"), ("%0:V&,%1:V", "%0")])
def test_of_two_definitions_the_early_one_is_named(definitions: str, early: str) -> None:
    (finding,) = judge(IndependentVerifier, "class V 1 v\n", f"{definitions}=A\n", "v0", "v0")
    assert finding.kind is FindingKind.EARLY_CLOBBER
    assert finding.message == (
        f"bb0 instruction 0 (A) writes both %0 and %1 to v0, {early} before it reads its uses"
    )
