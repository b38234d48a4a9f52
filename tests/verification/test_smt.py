"""The SMT check: every kind of finding, and the fast check's verdicts and pairs."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.verification.test_findings import SIMPLE, problem
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError, MissingExtraError
from verilocc_bench.verification import FastVerifier, Finding, FindingKind
from verilocc_bench.verification.smt import SMTVerifier
from verilocc_bench.verification.smt_constraints import all_constraints

pytestmark = pytest.mark.slow

if importlib.util.find_spec("z3") is None:
    REASON = "needs z3-solver (the extra exact)"
    if os.environ.get("CI") == "true":
        pytest.fail(REASON, pytrace=False)
    pytest.skip(REASON, allow_module_level=True)

ALL = 10_000


def only(function: AllocationProblem, answer: dict[str, str]) -> Finding:
    verdict = SMTVerifier(function).verify(answer)
    assert not verdict.valid
    assert len(verdict.findings) == 1
    expected = FastVerifier(function).verify(answer)
    assert (verdict.registers_used, verdict.occupancy) == (
        expected.registers_used,
        expected.occupancy,
    )
    return verdict.findings[0]


def test_ties_to_lanes_and_to_fixed_registers() -> None:
    lane = problem(
        "class V 1 v\nclass V2 2 v/2\n", "bb0\n%0:V2=OP\n%1:V=TIED %0.1~0\nUSE %1,%0.0\n"
    )
    assert SMTVerifier(lane).verify({"%0": "v2", "%1": "v3"}).valid
    assert only(lane, {"%0": "v2", "%1": "v4"}).kind is FindingKind.TIED_MISMATCH
    fixed = problem("class V 1 v\n", "bb0\n%0:V=OP\nv5=TIED %0~0\nUSE v5\n")
    assert SMTVerifier(fixed).verify({"%0": "v5"}).valid
    assert only(fixed, {"%0": "v4"}).registers == ("%0",)
    never = problem("class V2 2 v/2\n", "bb0\n%0:V2=OP\n%0.0=TIED %0.1~0\nUSE %0\n")
    assert only(never, {"%0": "v4"}).kind is FindingKind.TIED_MISMATCH


def test_a_core_blames_no_register_that_is_legal() -> None:
    # %0 has one legal base: %1 in it and "apart" contradict each other without %0's entry.
    function = problem(
        "class C2 2 vcc/2\nclass S2 2 s/2 vcc/2\n", "bb0\n%0:C2,%1:S2=OP\nUSE %0,%1\n"
    )
    finding = only(function, {"%0": "vcc", "%1": "vcc"})
    assert finding.kind is FindingKind.OVERLAP
    assert set(finding.registers) == {"%0", "%1"}


def test_what_has_no_value_is_no_part_of_a_core() -> None:
    function = problem("class V 1 v\n", "bb0\n%0:V,%1:V,%2:V=OP\nUSE %0,%1,%2\n")
    findings = SMTVerifier(function, cores=ALL).verify({"%0": "v1", "%1": "v1"}).findings
    assert [(f.kind, f.registers) for f in findings] == [
        (FindingKind.MISSING, ("%2",)),
        (FindingKind.OVERLAP, ("%0", "%1")),
    ]


def test_cores_are_as_many_as_asked_for() -> None:
    function = problem("class V 1 v\n", "bb0\n%0:V,%1:V,%2:V=OP\nUSE %0,%1,%2\n")
    answer = {"%0": "v1", "%1": "v1", "%2": "v1"}
    for cores, found in ((1, 1), (2, 2), (3, 3), (ALL, 3)):
        assert len(SMTVerifier(function, cores=cores).verify(answer).findings) == found


def test_one_core_is_looked_for_unless_more_are_asked_for() -> None:
    function = problem("class V 1 v\n", "bb0\n%0:V,%1:V,%2:V=OP\nUSE %0,%1,%2\n")
    answer = {"%0": "v1", "%1": "v1", "%2": "v1"}
    assert len(SMTVerifier(function).verify(answer).findings) == 1


def test_a_tuple_beyond_its_file_is_in_no_register_of_the_next() -> None:
    """After v255 the units are numbered on with a0, which is another register."""
    function = problem("class AV 1 v a\nclass V2 2 v/2\n", "bb0\n%0:V2=OP\n%1:AV=OP\nUSE %0,%1\n")
    findings = SMTVerifier(function, cores=ALL).verify({"%0": "v255", "%1": "a0"}).findings
    assert [f.kind for f in findings] == [FindingKind.OVER_BUDGET]


def test_the_name_of_a_pair_is_no_single_register() -> None:
    function = problem("class S 1 s vcc\nclass S2 2 s/2 vcc/2\n", "bb0\n%0:S=OP\nUSE %0\n")
    assert SMTVerifier(function).verify({"%0": "vcc_lo"}).valid
    assert SMTVerifier(function).verify({"%0": "vcc_hi"}).valid
    assert only(function, {"%0": "vcc"}).kind is FindingKind.WRONG_CLASS
    pair = problem("class S2 2 s/2 vcc/2\n", "bb0\n%0:S2=OP\nUSE %0\n")
    assert SMTVerifier(pair).verify({"%0": "vcc"}).valid


@pytest.mark.parametrize(("name", "valid"), [("v3", False), ("v4", True), ("v9", True)])
def test_classes_that_begin_behind_the_first_register(name: str, valid: bool) -> None:
    function = problem("class V.from4.to9 1 v[4-9]\n", "bb0\n%0=OP\nUSE %0\n")
    assert SMTVerifier(function).verify({"%0": name}).valid == valid
    assert not SMTVerifier(function).verify({"%0": "v10"}).valid


def test_a_tie_speaks_of_both_registers() -> None:
    function = problem("class V 1 v\n", "bb0\n%0:V=OP\n%1:V=TIED %0~0\nUSE %1\n")
    (tied,) = (c for c in all_constraints(function, ALL) if c.tie is not None)
    assert tied.registers == (1, 0)


def test_a_function_that_is_too_large_is_refused() -> None:
    function = problem("class V 1 v\n", "bb0\n%0:V,%1:V,%2:V=OP\nUSE %0,%1,%2\n")
    SMTVerifier(function, maximum_pairs=3)
    with pytest.raises(InputError, match="too large for the SMT check: more than 2 pairs"):
        SMTVerifier(function, maximum_pairs=2)


def test_a_solver_that_gives_up_says_so_and_can_be_asked_again() -> None:
    row = load_rows("mini").rows[0]
    verifier = SMTVerifier(AllocationProblem.from_text(row.normalized), resource_limit=10)
    for _ in range(2):
        with pytest.raises(InputError, match=r"gave up without a verdict \((?!None)\w"):
            verifier.verify(row.label)
    ample = SMTVerifier(AllocationProblem.from_text(row.normalized), resource_limit=10**9)
    assert ample.verify(row.label).valid


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(MissingExtraError, match=r"'z3-solver'.*'verilocc-bench\[exact\]'"):
        SMTVerifier(SIMPLE)


def test_the_module_imports_no_solver() -> None:
    script = "import sys, verilocc_bench.verification.smt\nassert 'z3' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_function_without_virtual_registers() -> None:
    function = problem("", "bb0(v0)\nUSE v0\n")
    assert SMTVerifier(function).verify({}) == FastVerifier(function).verify({})
