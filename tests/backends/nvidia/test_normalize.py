"""From SASS to the IR: control flow, webs, tuples, what is fixed and what is dropped."""

from __future__ import annotations

import random

import pytest

from tests.backends.nvidia.assembly import assemble, body, normalize, permuted
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.backends.nvidia.normalize import normalize_sass
from verilocc_bench.backends.nvidia.records import SassBlock
from verilocc_bench.backends.nvidia.webs import GUARD
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.ir import VirtualLanes, print_function
from verilocc_bench.verification import FastVerifier

LOOP = """
    MOV R1, c[0x0][0x28]
    S2R R2, SR_TID.X
    MOV R3, RZ
L1:
    IADD3 R3, R3, R2, RZ
    ISETP.GE.AND P0, PT, R3, 0x40, PT
    @!P0 BRA L(1)
    IMAD.WIDE R4, R3, 0x4, R6
    EXIT
L2:
    BRA L(2)
    NOP
"""


def target(line: str) -> str:
    """The virtual register that a guarded line defines."""
    return line.split()[1].partition("=")[0].partition(":")[0]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        # Values that follow each other in a register are separate.
        ("MOV R2, 0x1\nMOV R3, R2\nMOV R2, 0x2\nFADD R2, R2, R3\nEXIT",
         ["bb0", "%0=MOV", "%1=MOV %0", "%2=MOV", "%3=FADD %2,%1", "EXIT"]),
        # Definitions that reach one use are one value.
        ("ISETP.NE.AND P0, PT, R9, RZ, PT\nMOV R2, 0x1\n@P0 MOV R2, 0x2\nMOV R3, R2\nEXIT",
         ["bb0", "%0:P=ISETP.NE.AND %1", "%2=MOV", "@%0 %2=MOV", "%3=MOV %2", "EXIT"]),
        # A use that nothing reaches is a value of its own.
        ("FADD R2, R3, R3\nFADD R4, R3, R2\nEXIT",
         ["bb0", "%0=FADD %1,%2", "%3=FADD %4,%0", "EXIT"]),
        # The stack pointer and masked predicates stay where they are.
        ("MOV R1, c[0x0][0x28]\nISETP.NE.AND P2, PT, R9, RZ, PT\nP2R R2, PR, RZ, 0x4\nEXIT",
         ["bb0", "R1=MOV", "P2=ISETP.NE.AND %0", "%1=P2R P2", "EXIT"]),
        # What is dropped.
        ("NOP\n@!PT MOV R2, 0x1\n@PT MOV R3, 0x1\nEXIT\nMOV R4, 0x1\nEXIT",
         ["bb0", "%0=MOV", "EXIT"]),
        # A guarded exit leads to an empty block.
        ("ISETP.NE.AND P0, PT, RZ, RZ, PT\n@P0 EXIT\nMOV R2, R3\nEXIT",
         ["bb0->bb2,bb1", "%0:P=ISETP.NE.AND", "@%0 EXIT", "bb1", "%1=MOV %2", "EXIT", "bb2"]),
    ],
)  # fmt: skip
def test_short_functions(text: str, lines: list[str]) -> None:
    assert body(text) == lines


def test_a_guarded_definition_does_not_reach_past_its_complement() -> None:
    # Under @P0 and @!P0 together R2 is defined on all paths: the MOV before is another value.
    text = """
    ISETP.NE.AND P0, PT, R9, RZ, PT
    MOV R2, 0x1
    STS [RZ], R2
    @P0 MOV R2, 0x2
    @!P0 MOV R2, 0x3
    STS [RZ], R2
    EXIT
    """
    stores = [line for line in body(text) if "STS" in line]
    assert len({line.split()[1] for line in stores}) == 2


def test_what_two_guards_separate_is_two_values() -> None:
    text = """
    ISETP.NE.AND P0, PT, R9, RZ, PT
    @P0 MOV R2, 0x2
    @!P0 MOV R2, 0x3
    @P0 STS [RZ], R2
    @!P0 STS [RZ], R2
    EXIT
    """
    normalized = normalize(text)
    stores = [line for line in body(text) if "STS" in line]
    assert len({line.split()[2] for line in stores}) == 2
    # Both may be in one register: no path needs the two at once.
    problem = AllocationProblem(normalized.function)
    answer = answer_from_assignment(problem, normalized.assignment)
    assert FastVerifier(problem).verify(answer).valid


def test_a_predicate_that_is_defined_anew_decides_anew() -> None:
    text = """
    ISETP.NE.AND P0, P1, R9, RZ, PT
    @P0 MOV R2, 0x2
    ISETP.NE.AND P0, PT, R8, RZ, PT
    @!P0 MOV R2, 0x3
    @P0 STS [RZ], R2
    EXIT
    """
    moves = [target(line) for line in body(text) if "=MOV" in line]
    assert moves[0] != moves[1]
    # Under another predicate the second definition may reach the store, as the first does.
    lines = body(text.replace("@!P0 MOV", "@P1 MOV"))
    moves = [target(line) for line in lines if "=MOV" in line]
    assert moves[0] == moves[1]


def test_operands_of_several_registers_make_tuples() -> None:
    normalized = normalize("MOV R4, 0x1\nMOV R5, 0x2\nDADD R6, R4, R4\nSTS.128 [RZ], R4\nEXIT")
    classes = [c.name for c in normalized.function.virtual_registers]
    assert classes == ["R4"]
    assert normalized.assignment[0].index == 4
    assert "%0=DADD" not in print_function(normalized.function)


def test_blocks_and_edges() -> None:
    function = assemble(LOOP)
    assert control_flow(function) == (
        SassBlock((0, 1, 2), (1,)),
        SassBlock((3, 4, 5), (1, 2)),
        SassBlock((6, 7), ()),
    )


def test_a_call_that_never_returns_is_a_jump() -> None:
    text = "L1:\nMOV R2, R2\n@P0 CALL.REL.NOINC L(2)\nBRA L(1)\nL2:\nEXIT"
    assert [block.successors for block in control_flow(assemble(text))] == [(2, 1), (0,), ()]


TABLE = '(*"BRANCH_TARGETS .L_x_1,.L_x_2"*)'


def test_a_jump_through_a_table_leads_to_each_of_its_targets() -> None:
    text = f"MOV R2, 0x1\nMOV R3, 0x2\nBRX R2 -0x10 {TABLE}\nL1:\nSTS [RZ], R5\nL2:\nEXIT"
    for code in (text, text.replace("BRX R2", "BRXU UR4")):
        assert [block.successors for block in control_flow(assemble(code))] == [(1, 2), (2,), ()]
    assert body(text)[:4] == ["bb0->bb1,bb2", "%0:R2.0=MOV", "%0.1=MOV", "BRX %0"]


def test_a_branch_on_an_operand_reads_both_predicates_and_may_fall_through() -> None:
    text = """
    ISETP.NE.AND P0, P1, R9, RZ, PT
    @!P1 BRA P0, L(1)
    @P1 STS [RZ], R4
L1:
    EXIT
    """
    assert [block.successors for block in control_flow(assemble(text))] == [(2, 1), (2,), ()]
    assert "BRA %1,%0" in body(text)
    # The guard alone is true on neither way: a value that is read under it may come from both.
    assert [line for line in body(text) if line.startswith("@")] == ["@%1 STS %3:R"]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("CALL.REL.NOINC L(1)\nEXIT\nL1:\nRET.REL.NODEC R2 0x0", "call", "nothing has called"),
        ("BRX R2 -0x10\nEXIT", "control-flow", "BRX"),
        ("MOV R2, R3", "control-flow", "without an EXIT"),
        (f"@P0 BRX R2 -0x10 {TABLE}\nL1:\nEXIT\nL2:\nEXIT", "control-flow", "under a guard"),
        ("@P0 MOV R2, 0x1\nEXIT", "undefined-predicate", "nothing has written the guard P0"),
        ("MOV R0, 0x1\nDADD R4, R0, R0\nEXIT", "tuple-groups", "the stack pointer"),
    ],
)
def test_control_flow_beyond_analysis(text: str, kind: str, said: str) -> None:
    with pytest.raises(RejectedKernel, match=said) as caught:
        normalize(text)
    assert caught.value.kind == kind


def test_what_no_path_can_do_ties_nothing_together() -> None:
    """Behind the exit P0 holds: the second store of R6 reads what nothing has written."""
    text = """
    ISETP.NE.AND P0, PT, RZ, RZ, PT
    @!P0 EXIT
    MOV R4, 0x1
    STS [RZ], R4
    MOV R5, 0x2
    @P0 MOV OTHER, 0x3
    @!P0 STS [RZ], OTHER
    STS [RZ], OTHER
    STS [RZ], R5
    EXIT
    """
    assert body(text.replace("OTHER", "R6")) == body(text.replace("OTHER", "R4"))


def test_a_guarded_nop_ties_nothing_together() -> None:
    text = """
    ISETP.NE.AND P0, PT, R9, RZ, PT
    @P0 BRA L(1)
    ISETP.NE.AND P0, PT, R8, RZ, PT
L1:
    @P0 NOP
    EXIT
    """
    defined = [line.partition("=")[0] for line in body(text) if "ISETP" in line]
    assert len({name.partition(":")[0] for name in defined}) == 2


def test_where_the_registers_of_the_code_are() -> None:
    text = """
    ISETP.NE.AND P1, PT, R9, RZ, PT
    @P1 MOV R2, 0x1
    IMAD.WIDE R4, R2, R2, R6
    STS [R4], R5
    EXIT
    """
    normalized = normalize(text)
    assert normalized.name == "f"
    assert normalized.original_names == ("P1", "R9", "R2", "R4", "R6")
    assert normalized.places == {
        (0, 0): VirtualLanes(0, 0, 1),
        (0, 1): VirtualLanes(1, 0, 1),
        (1, GUARD): VirtualLanes(0, 0, 1),
        (1, 0): VirtualLanes(2, 0, 1),
        (2, 0): VirtualLanes(3, 0, 2),
        (2, 1): VirtualLanes(2, 0, 1),
        (2, 2): VirtualLanes(2, 0, 1),
        (2, 3): VirtualLanes(4, 0, 2),
        (3, 0): VirtualLanes(3, 0, 1),
        (3, 1): VirtualLanes(3, 1, 1),
    }


def test_the_budget_is_in_the_header() -> None:
    text = print_function(normalize("MOV R2, 0x1\nEXIT", 64).function)
    assert "registers R:62 UR:63 P:7 UP:7" in text
    assert "reserved R1 UR[0:3]" in text


@pytest.mark.parametrize("seed", range(5))
def test_the_registers_leave_no_trace_in_a_small_function(seed: int) -> None:
    function = assemble(LOOP)
    other = permuted(function, random.Random(seed))
    expected = print_function(normalize_sass(function, 255).function)
    assert print_function(normalize_sass(other, 255).function) == expected
    assert other != function
