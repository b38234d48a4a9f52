"""Problems that are none of the target, other budgets, places of registers, bank conflicts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.generated import random_function
from tests.verification.test_small_functions import KINDS
from verilocc_bench.analysis import AllocationProblem, Placements, conditions, parse_register_name
from verilocc_bench.analysis.bank_conflicts import (
    BankConflicts,
    count_bank_conflicts,
    count_identity_copies,
)
from verilocc_bench.analysis.placement import base_name
from verilocc_bench.analysis.problem import with_budgets
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.metrics import mean, shares
from verilocc_bench.ir import (
    FixedUnits,
    Guard,
    Instruction,
    Operand,
    PhysicalRegister,
    RegisterFile,
    parse_function,
    print_function,
)
from verilocc_bench.targets import get_target
from verilocc_bench.verification.fast import FastVerifier

AMD = "verilocc-bench 1\ntarget gfx942\nregisters v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi\n"
NVIDIA = "verilocc-bench 1\ntarget sm_80\nregisters R:16 UR:8 P:7 UP:7\n"


def problem(text: str) -> AllocationProblem:
    return AllocationProblem(parse_function(text, canonical=False))


REFUSED = {
    AMD + "reserved v64\nbb0\nA\n": "the reserved v64 is beyond the budget",
    AMD + "reserved v[63:64]\nbb0\nA\n": "the reserved v63 is beyond the budget",
    AMD + "reserved s1 s0\nbb0\nA\n": "reserved registers must be in order, each once",
    AMD + "reserved s0 v0\nbb0\nA\n": "reserved registers must be in order, each once",
    AMD + "bb0(s0,s0)\nA\n": "live-in registers must be in order, each once",
    AMD + "bb0(s1,s0)\nA\n": "live-in registers must be in order, each once",
    AMD + "bb0(v256)\nA\n": "gfx942 has no register v256",
    AMD + "bb0\nv[255:256]=A\n": "gfx942 has no register v255",
    AMD + "bb0\nA v256\n": "gfx942 has no register v256",
    AMD + "class V2 2 v/2\nclass V 1 v\nbb0\n%0:V2=A\nA\n%1:V=A %0~0\n": (
        "bb0 instruction 2 ties 2 lanes to 1"
    ),
    AMD + "class V2 2 v/2\nclass V 1 v\nbb0\n%0:V2=A\n%1:V=A %1,%0~0\n": (
        "bb0 instruction 1 ties 2 lanes to 1"
    ),
    AMD + "bb0(v1)\nv2=A v1~0\n": "bb0 instruction 0 ties two physical registers",
    AMD + "class W 1 v\nbb0\n%0=A\n": (
        "class 'W' goes beyond its budget, or is another spelling of 'V'"
    ),
    NVIDIA + "bb0\n@P0 A\n@UP7 A\n": "sm_80 has no register UP7",
    NVIDIA + "class R 1 R\nbb0\nA\nbb1\nA\n@%0:R B\n": (
        "bb1 instruction 1 is guarded by no single register of P or UP of sm_80"
    ),
    NVIDIA + "class P2 2 P\nbb0\n@%0:P2.0 A\n": (
        "bb0 instruction 0 is guarded by no single register of P or UP of sm_80"
    ),
    AMD + "class S 1 s vcc\nbb0\n@%0:S A\n": (
        "bb0 instruction 0 is guarded by no single register of any file of gfx942"
    ),
    NVIDIA + "bb0\n@R0 A\n": (
        "bb0 instruction 0 is guarded by no single register of P or UP of sm_80"
    ),
    NVIDIA + "class P 1 P\nbb0->bb1,bb2\n@%0 %0=A\nbb1\nA\nbb2\nA\n": (
        "bb0 instruction 0, a branch, defines its own guard"
    ),
    NVIDIA + "bb0->bb1,bb2\nA\n@P3 P3=A\nbb1\nA\nbb2\nA\n": (
        "bb0 instruction 1, a branch, defines its own guard"
    ),
    NVIDIA + "bb0->bb1,bb2\n@P3 P[2:3]=A\nbb1\nA\nbb2\nA\n": (
        "bb0 instruction 0, a branch, defines its own guard"
    ),
    AMD.replace("v:64", "v:257") + "bb0\nA\n": (
        "gfx942 has 256 registers in 'v', the function's budget is 257"
    ),
    AMD.replace("a:8", "b:8") + "bb0\nA\n": "gfx942 has no register file 'b' of that form",
    AMD.replace("=vcc_lo,vcc_hi", "=vcc_a,vcc_b") + "bb0\nA\n": (
        "gfx942 has no register file 'vcc' of that form"
    ),
    AMD.replace("a:8 ", "") + "bb0\nA\n": "expected the register files v, a, s, vcc of gfx942",
    AMD.replace("v:64 a:8", "a:8 v:64") + "bb0\nA\n": (
        "expected the register files v, a, s, vcc of gfx942"
    ),
    AMD + "occupancy 8\nbb0\nA\n": (
        "expected an occupancy below 8, the most waves of gfx942, not 8"
    ),
}


@pytest.mark.parametrize("text", REFUSED, ids=range(len(REFUSED)))
def test_functions_that_are_none_of_the_target_are_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        problem(text)
    assert caught.value.message == REFUSED[text]


@pytest.mark.parametrize(
    "text",
    [
        AMD + "reserved v[62:63] s0 s[0:1]\nbb0(v0,s0)\nA v255\n",
        AMD + "occupancy 7\nbb0\nA\n",
        AMD.replace("v:64", "v:256") + "bb0\nA\n",
        # Only a guard that decides where a block of two successors goes must be left alone.
        NVIDIA + "class P 1 P\nbb0->bb1\n@%0 %0=A\nbb1\nA\n",
        NVIDIA + "class P 1 P\nbb0->bb1,bb2\n@%0 %0=A\n@%0 B\nbb1\nA\nbb2\nA\n",
        NVIDIA + "class P 1 P\nclass R 1 R\nbb0->bb1,bb2\n@%0 %1:P,%2:R=A\nbb1\nA\nbb2\nA\n",
        NVIDIA + "bb0->bb1,bb2\n@P3 P[1:2],P4,R3=A\nbb1\nA\nbb2\nA\n",
        NVIDIA + "class P 1 P\nbb0->bb1,bb2\n@%0 P0=A\nbb1\nA\nbb2\nA\n",
        NVIDIA + "class P 1 P\nbb0->bb1,bb2\n@P0 %0=A\nbb1\nA\nbb2\nA\n",
    ],
)
def test_functions_of_the_target_are_taken(text: str) -> None:
    assert problem(text).target.name in text


def test_a_branch_may_define_a_register_that_has_the_number_of_its_guard() -> None:
    function = parse_function(NVIDIA + "bb0->bb1,bb2\nA\nbb1\nA\nbb2\nA\n")
    branch = Instruction(
        "BRA", (Operand(FixedUnits("R", 3, 1)),), (), Guard(FixedUnits("P", 3, 1), False)
    )
    blocks = (replace(function.blocks[0], instructions=(branch,)), *function.blocks[1:])
    AllocationProblem(replace(function, blocks=blocks))


def test_a_problem_knows_its_text_and_its_limits() -> None:
    text = AMD + "occupancy 3\nclass V 1 v\nbb0\n%0=A\nUSE %0\n"
    found = AllocationProblem.from_text(text)
    assert found.normalized == text
    assert AllocationProblem(found.function).normalized == print_function(found.function)
    assert AllocationProblem(found.function).id == found.id
    assert found.occupancy({"v": 1}) == 3
    assert found.occupancy({"v": 255, "s": 1}) == 2
    assert AllocationProblem.from_text(text.replace("occupancy 3\n", "")).occupancy({"v": 1}) == 8
    with pytest.raises(InputError, match=r"^x\.txt:"):
        AllocationProblem.from_text(text + "?\n", "x.txt")
    with pytest.raises(InputError, match=r"^<text>:"):
        AllocationProblem.from_text(text + "?\n")


def test_what_cannot_be_analysed_is_told_with_the_function(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conditions, "WORK_LIMIT", 1)
    found = problem(NVIDIA + "class P 1 P\nclass R 1 R\nbb0\n@%0:P %1:R=A\n@%2:P B %1\n")
    with pytest.raises(InputError) as caught:
        _ = found.liveness
    assert str(caught.value).startswith(f"function {found.id}: the guards depend")


def test_a_live_in_that_nothing_reads_holds_nothing() -> None:
    liveness = problem(AMD + "bb0(v0,v1)\nA v1\n").liveness
    assert liveness.fixed_lanes == (("v", 0), ("v", 1))
    assert liveness.defined == (0, 1)
    assert liveness.segments == ((1, 0, 0, True),)


def test_what_cannot_happen_defines_nothing() -> None:
    """bb3 is where the predicate is both true and false."""
    found = problem(
        NVIDIA + "class P 1 P\nclass R 1 R\nbb0->bb1,bb2\n%0:P=A\n@%0 BRA\nbb1->bb3,bb2\n"
        "@!%0 BRA\nbb2\nA\nbb3\n%1:R=A\n%2:R=A\nB %1,%2\n"
    )
    liveness = found.liveness
    assert liveness.live[1:] == liveness.defined[1:]
    assert [m.bit_count() for m in liveness.defined] == [1, 1, 1]


# Other budgets.


BUDGETS = (
    AMD
    + "reserved v3 v[30:33] s32\nclass AV2 2 v/2 a/2\nclass S 1 s vcc\nclass V 1 v\n"
    + "class V.to9 1 v[0-9]\n"
    + "class V.to9.from20.to30 1 v[0-9] v[20-30]\n"
    + "bb0\n%0:AV2=A\n%1:S=A\n%2:V=A\n%3:V.to9=A\n%4:V.to9.from20.to30=A\n"
)


@pytest.mark.parametrize(
    ("budgets", "files", "reserved", "classes"),
    [
        ({}, "v:64 a:8 s:102", "v3 v[30:33] s32", "AV2 S V V.to9 V.to9.from20.to30"),
        (
            {"v": 64, "s": 200},
            "v:64 a:8 s:102",
            "v3 v[30:33] s32",
            "AV2 S V V.to9 V.to9.from20.to30",
        ),
        ({"v": 34}, "v:34 a:8 s:102", "v3 v[30:33] s32", "AV2 S V V.to9 V.to9.from20.to30"),
        ({"v": 32}, "v:32 a:8 s:102", "v3 v[30:31] s32", "AV2 S V V.to9 V.to9.from20.to30"),
        ({"v": 31, "s": 33}, "v:31 a:8 s:33", "v3 v30 s32", "AV2 S V V.to9 V.to9.from20"),
        ({"v": 30, "s": 32}, "v:30 a:8 s:32", "v3", "AV2 S V V.to9 V.to9.from20"),
        ({"v": 10}, "v:10 a:8 s:102", "v3 s32", "AV2 S V V V"),
        ({"v": 3, "a": 1}, "v:3 a:1 s:102", "s32", "V2 S V V V"),
        ({"v": 0, "a": 0}, "v:0 a:0 s:102", "s32", "NONE2 S NONE NONE NONE"),
        ({"v": 8, "vcc": 1}, "v:8 a:8 s:102", "v3 s32", "AV2 S V V V"),
    ],
)
def test_budgets_cut_files_classes_and_reserved_units(
    budgets: dict[str, int], files: str, reserved: str, classes: str
) -> None:
    before = problem(BUDGETS)
    after = with_budgets(before, budgets)
    lines = print_function(after.function).splitlines()
    assert lines[2].startswith(f"registers {files} vcc:{budgets.get('vcc', 2)}")
    assert lines[3] == f"reserved {reserved}"
    assert [c.name for c in after.function.virtual_registers] == classes.split()
    assert after.function.blocks == before.function.blocks
    for old, new in zip(
        before.function.virtual_registers, after.function.virtual_registers, strict=True
    ):
        assert new.width == old.width
        counts = {file.name: file.count for file in after.function.files}
        assert {(r.file, base) for r in new.ranges for base in r} == {
            (r.file, base) for r in old.ranges for base in r if base + old.width <= counts[r.file]
        }


# Where registers may be placed.


@pytest.mark.parametrize("kind", KINDS)
def test_legal_bases_are_those_within_the_class_and_not_reserved(kind: str) -> None:
    for seed in range(20):
        function = random_function(seed, registers=8, **KINDS[kind])
        each = AllocationProblem(function)
        placements = each.placements
        assert placements.unit_count == sum(file.count for file in each.target.files)
        for file in each.target.files:
            for index in range(file.count):
                register = PhysicalRegister(file.name, index)
                unit = placements.unit(register)
                assert placements.register(unit) == register
                name = file.unit_names[index] if file.unit_names else f"{file.name}{index}"
                assert placements.unit_name(unit) == name
        reserved = {
            placements.unit(PhysicalRegister(units.file, index))
            for units in function.reserved
            for index in range(units.first, units.first + units.count)
        }
        assert placements.reserved == reserved
        for register_class in set(function.virtual_registers):
            bases = [
                placements.unit(PhysicalRegister(r.file, base))
                for r in register_class.ranges
                for base in range(r.first, r.last + 1, r.step)
            ]
            legal = [
                unit
                for unit in bases
                if not reserved & set(range(unit, unit + register_class.width))
            ]
            assert list(placements.legal[register_class]) == legal
            for unit, name in placements.legal[register_class].items():
                base = parse_register_name(each.target, name)
                assert base is not None
                assert placements.unit(base) == unit
                assert placements.by_name[register_class][name] == unit
            assert set(placements.by_name[register_class].values()) == set(legal)


def test_names_of_bases() -> None:
    text = AMD + "class S 1 s vcc\nclass S2 2 s/2 vcc/2\nbb0\n%0:S=A\n%1:S2=A\n"
    each = problem(text)
    single, pair = each.function.virtual_registers
    first = each.placements.first_unit["vcc"]
    assert each.placements.first_unit == {"v": 0, "a": 256, "s": 512, "vcc": 614}
    assert each.placements.legal[single][first] == "vcc_lo"
    assert each.placements.legal[single][first + 1] == "vcc_hi"
    assert each.placements.legal[pair][first] == "vcc"
    by_name = each.placements.by_name
    assert (by_name[pair]["vcc"], by_name[pair]["vcc_lo"]) == (first, first)
    assert "vcc_hi" not in by_name[pair]
    assert "vcc" not in by_name[single]
    assert by_name[single]["vcc_hi"] == first + 1
    file = get_target("gfx942").file("vcc")
    assert [base_name(file, 0, 1), base_name(file, 1, 1), base_name(file, 0, 2)] == [
        "vcc_lo", "vcc_hi", "vcc",
    ]  # fmt: skip
    with pytest.raises(AssertionError, match="-1"):
        each.placements.register(-1)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("v0", ("v", 0)), ("v255", ("v", 255)), ("v256", None), ("a7", ("a", 7)),
        ("s101", ("s", 101)), ("s102", None), ("vcc", ("vcc", 0)), ("vcc_lo", ("vcc", 0)),
        ("vcc_hi", ("vcc", 1)), ("vcc0", None), ("vcc_mid", None), ("v", None), ("", None),
        ("v00", None), ("v01", None), ("V0", None), ("v0 ", None), (" v0", None), ("v-1", None),
        ("v1x", None), ("b1", None), ("v1000000", None), ("v٣", None), ("R1", None), ("vv1", None),
    ],
)  # fmt: skip
def test_names_of_registers(name: str, base: tuple[str, int] | None) -> None:
    expected = None if base is None else PhysicalRegister(*base)
    assert parse_register_name(get_target("gfx942"), name) == expected


def test_reserved_units_are_numbered_in_their_files() -> None:
    each = problem(AMD + "reserved v[2:3] a1 vcc_hi\nclass V 1 v\nbb0\n%0=A\n")
    assert each.placements.reserved == {2, 3, 257, 615}
    assert isinstance(each.placements, Placements)
    assert RegisterFile("v", 64) in each.function.files


# Bank conflicts and copies.


def conflicts(body: str, answer: str, header: str = AMD + "class V 1 v\n") -> BankConflicts:
    names = {f"%{n}": name for n, name in enumerate(answer.split())}
    return count_bank_conflicts(problem(header + body), names)


SM_80 = NVIDIA + "class P 1 P\nclass R 1 R\nclass R2 2 R/2\n"


@pytest.mark.parametrize(
    ("body", "answer", "found"),
    [
        # v0 and v4 are in one bank of four.
        ("bb0\n%0=A\n%1=A\n%2=A\nB %0,%1,%2\n", "v0 v4 v1", (1, 0)),
        ("bb0\n%0=A\n%1=A\n%2=A\nB %0,%1,%2\n", "v0 v4 v8", (1, 1)),
        ("bb0\n%0=A\n%1=A\n%2=A\nB %0,%1,%2\n", "v0 v1 v2", (0, 0)),
        ("bb0\n%0=A\n%1=A\n%2=A\nB %0,%1,%2\n", "v3 v2 v7", (1, 0)),
        # Banks are those of one file.
        ("bb0\n%0=A\n%1=A\nB %0,%1,a0\n", "v0 v1", (0, 0)),
        ("bb0\n%0=A\nB %0,a0,a4\n", "v1", (1, 0)),
        # Three different explicit vector sources of one unit, no fewer and no more.
        ("bb0\n%0=A\n%1=A\nB %0,%1\n", "v0 v4", (0, 0)),
        ("bb0\n%0=A\n%1=A\nB %0,%1,%0\n", "v0 v4", (0, 0)),
        ("bb0\n%0=A\n%1=A\n%2=A\n%3=A\nB %0,%1,%2,%3\n", "v0 v4 v8 v12", (0, 0)),
        ("bb0\n%0=A\n%1=A\n%2=A\nB %0,%1,%2,%2\n", "v0 v4 v8", (1, 1)),
        ("bb0\n%0=A\n%1=A\n%2=A\nB %0,%1,+%2\n", "v0 v4 v8", (0, 0)),
        ("bb0\n%0=A\n%1=A\nB %0,%1,s0\n", "v0 v4", (0, 0)),
        ("bb0\n%0=A\n%1=A\nB %0,%1,v[8:9]\n", "v0 v4", (0, 0)),
        ("bb0\n%0=A\n%1=A\nB %0,%1,s[8:9],v8\n", "v0 v4", (1, 1)),
        # Ten times more for each loop.
        ("bb0\n%0=A\n%1=A\n%2=A\nB %0,%1,%2\nbb1->bb1\nB %0,%1,%2\n", "v0 v4 v8", (2, 2)),
        ("bb0->bb1\n%0=A\n%1=A\n%2=A\nB %0,%1,%2\nbb1->bb1\nB %0,%1,%2\nC %2,%1,%0\n",
         "v0 v4 v8", (21, 21)),
        ("bb0->bb1\n%0=A\n%1=A\n%2=A\nbb1->bb2\nC\nbb2->bb2,bb1\nB %0,%1,%2\n",
         "v0 v4 v8", (100, 100)),
    ],
)  # fmt: skip
def test_conflicts_of_amd(body: str, answer: str, found: tuple[int, int]) -> None:
    assert conflicts(body, answer) == BankConflicts(*found)


MOVES = "bb0\n%0:R=A\n%1:R=A\n%2:R=A\n%3:R=A\n%4:R=A\n"


@pytest.mark.parametrize(
    ("body", "answer", "found"),
    [
        # Two banks by parity, each of which delivers two.
        ("F %0,%1,%2\n", "R0 R2 R4 R1 R3", (1, 1)),
        ("F %0,%1,%3\n", "R0 R2 R4 R1 R3", (0, 0)),
        # What the instruction before read at the same place is kept.
        ("F %0,%1,%2\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (1, 1)),
        ("F %0,%1,%2\nF %2,%0,%1\n", "R0 R2 R4 R1 R3", (2, 2)),
        ("F %0,%1,%2\nF %2,%1,%0\n", "R0 R2 R4 R1 R3", (1, 1)),
        ("F %0,%1,%2\nG\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (2, 2)),
        ("F %0,%1,%2\nG %0\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (2, 2)),
        ("F %0,%1,%2\nbb1\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (2, 2)),
        # Not what it wrote itself.
        ("%3=F %0,%1,%2\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (1, 1)),
        ("%0=F %0,%1,%2\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (2, 2)),
        ("%3,%2=F %0,%1,%2\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (2, 2)),
        ("R[4:5]=F %0,%1,%2\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (2, 2)),
        ("R[3:4]=F %0,%1,%2\nF %0,%1,%2\n", "R0 R2 R4 R1 R7", (2, 2)),
        ("R[5:6]=F %0,%1,%2\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (1, 1)),
        ("P0,UR0,UR2=F %0,%1,%2\nF %0,%1,%2\n", "R0 R2 R4 R1 R3", (1, 1)),
    ],
)
def test_conflicts_of_sm_80(body: str, answer: str, found: tuple[int, int]) -> None:
    body = (MOVES + body).replace("bb0\n", "bb0->bb1\n") if "bb1" in body else MOVES + body
    assert conflicts(body, answer, SM_80) == BankConflicts(*found)


@pytest.mark.parametrize(
    ("body", "answer", "found"),
    [
        ("bb0\n%0:V=COPY v1\n", "v1", 1),
        ("bb0\n%0:V=COPY v1\n", "v0", 0),
        ("bb0\n%0:V=MOVE v1\n", "v1", 0),
        ("bb0\n%0:V=A\n%1:V=COPY %0\n%2:V=COPY %1\n", "v1 v1 v1", 2),
        ("bb0\n%0:V2=A\n%1:V=COPY %0.1\n", "v2 v3", 1),
        ("bb0\n%0:V2=A\n%1:V=COPY %0.1\n", "v2 v2", 0),
        ("bb0\n%0:V=A\n%1:V2.1=COPY %0\n", "v3 v2", 1),
        ("bb0\nv[4:5]=COPY v[4:5]\n", "", 1),
        ("bb0\nv0=COPY a0\n", "", 0),
        ("bb0\nCOPY v0\nv0=COPY\n", "", 0),
        ("bb0\nv0,v1=COPY v0,v1\nv1=COPY v0,v1\n", "", 1),
    ],
)
def test_copies_that_copy_nothing(body: str, answer: str, found: int) -> None:
    classes = "class V 1 v\nclass V2 2 v/2\n"
    names = {f"%{n}": name for n, name in enumerate(answer.split())}
    assert count_identity_copies(problem(AMD + classes + body), names) == found


def test_shares_are_of_all_functions_and_means_are_exact() -> None:
    nothing = {"share_better": None, "share_equal": None, "share_worse": None}
    assert shares({}) == nothing
    ratios = {"a": (1, 2), "b": (2, 2), "c": (3, 2), "d": (4, 2), "e": (1, 9)}
    assert shares(ratios) == {"share_better": 0.4, "share_equal": 0.2, "share_worse": 0.4}
    assert mean([0.1] * 10) == 0.1


@pytest.mark.parametrize("count", [0, 1])
def test_a_named_file_without_its_whole_budget_is_read_again(count: int) -> None:
    row = next(row for row in load_rows("mini").rows if row.arch == "gfx942" and row.label)
    before = AllocationProblem.from_text(row.normalized)
    after = with_budgets(before, {"vcc": count})
    again = AllocationProblem.from_text(after.normalized)
    assert again.function == after.function
    held = set((row.label or {}).values())
    assert not held.isdisjoint({"vcc", "vcc_hi"})
    assert FastVerifier(before).verify(row.label or {}).valid
    assert not FastVerifier(again).verify(row.label or {}).valid
