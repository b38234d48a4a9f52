"""Calls of subroutines: a copy for each chain of calls, and proof of where each one returns."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.nvidia.assembly import assemble, body, encoded, normalize
from verilocc_bench.allocators import answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.errors import RejectedKernel
from verilocc_bench.ir import print_function
from verilocc_bench.verification import FastVerifier, IndependentVerifier

TWICE = """
    S2R R2, SR_TID.X
    MOV R6, R2
    MOV R4, 0x40
    CALL.REL.NOINC `(more)
    MOV R8, R6
    MOV R4, 0x70
    CALL.REL.NOINC `(more)
    IADD3 R8, R8, R6, R2
    STS [RZ], R8
    EXIT
more:
    IADD3 R6, R6, 0x1, RZ
    MOV R5, 0x0
    RET.REL.NODEC R4 `(f)
"""

STACK = "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]"
WITH_STACK = TWICE.partition("IADD3 R6")[0].replace("S2R R2, SR_TID.X", STACK)
"""The calls, and a stack; what is called follows."""


def test_a_subroutine_has_a_copy_for_each_call() -> None:
    # The pair %2 has the return address; %1 the argument, which is the result, too.
    copy = ["%1=IADD3 %1", "%2.1=MOV", "RET.REL.NODEC %2"]
    assert body(TWICE) == [
        "bb0->bb3", "%0=S2R", "%1=MOV %0", "%2:R2.0=MOV", "CALL.REL.NOINC",
        "bb1->bb4", "%3=MOV %1", "%2.0=MOV", "CALL.REL.NOINC",
        "bb2", "%4=IADD3 %3,%1,%0", "STS %4", "EXIT",
        "bb3->bb1", *copy,
        "bb4->bb2", *copy,
    ]  # fmt: skip


def test_what_lives_through_one_call_is_free_in_the_other() -> None:
    """%3 may lie where %0 … does not: only through the second call does it live."""
    text = TWICE.replace("R8, R8, R6, R2", "R8, R8, R6, RZ")
    normalized = normalize(text.replace("MOV R8, R6", "IADD3 R8, R6, R2, RZ"))
    problem = AllocationProblem(normalized.function, print_function(normalized.function))
    label = answer_from_assignment(problem, normalized.assignment)
    shared = {**label, "%3": label["%0"]}
    for verifier in (FastVerifier(problem), IndependentVerifier(problem)):
        assert verifier.verify(label).valid
        assert verifier.verify(shared).valid
        assert not verifier.verify({**label, "%3": label["%1"]}).valid


UNKNOWN = Path(__file__).with_name("unknown_returns.txt").read_text("utf-8").splitlines()


@pytest.mark.parametrize("case", UNKNOWN)
def test_what_is_not_known_is_refused(case: str) -> None:
    old, new, said = case.replace("\\n", "\n").split(" | ")
    text = TWICE.replace("S2R R2, SR_TID.X", "ISETP.NE.AND P0, PT, RZ, RZ, PT")
    with pytest.raises(RejectedKernel, match=f"^(?:call|control-flow|unknown-opcode): .*{said}"):
        normalize(text.replace(old, new))


@pytest.mark.parametrize(
    "code",
    [
        "IMAD.MOV.U32 R10, RZ, RZ, R4\nHFMA2 R5, -RZ, RZ, 0, 0\nMOV R4, R10\nRET.REL.NODEC R4 `(f)",
        "IADD3 R10, ~R4, 0x1, RZ\nIADD3 R4, -R10, RZ, RZ\nMOV R5, RZ\nRET.REL.NODEC R4 `(f)",
        "CS2R R10, SRZ\nMOV R11, R4\nMOV R4, 0x9\nIMAD.IADD R4, R11, 0x1, RZ\nMOV R5, R10\n"
        "RET.REL.NODEC R4 `(f)",
        "IADD3 R1, R1, -0x8, RZ\nSTL [R1+0x4], R4\nMOV R4, 0x9\nLDL R4, [R1+0x4]\n"
        "IADD3 R1, R1, 0x8, RZ\nMOV R5, RZ\nRET.REL.NODEC R4 `(f)",
        "MOV R5, RZ\nSTL.64 [R1+0x8], R4\nMOV R4, 0x9\nLDL.64 R4, [R1+0x8]\nRET.REL.NODEC R4 `(f)",
        "MOV R5, RZ\nSTL.128 [R1], R4\nMOV R4, 0x9\nLDL.128 R4, [R1]\nRET.REL.NODEC R4 `(f)",
        "STL [R1], RZ\nLDL R5, [R1]\nRET.REL.NODEC R4 `(f)",
        "@!PT MOV R4, R6\nMOV R5, RZ\n@P0 RET.REL.NODEC R4 `(f)\nRET.REL.NODEC R4 `(f)",
        "@P0 BRA L(1)\nMOV R6, RZ\nL1:\nMOV R5, 0x0\nRET.REL.NODEC R4 `(f)",
    ],
)
def test_a_return_address_is_followed(code: str) -> None:
    head = WITH_STACK.replace("MOV R6, R2", "ISETP.NE.AND P0, PT, RZ, RZ, PT")
    control_flow(assemble(head + code))
    with pytest.raises(RejectedKernel, match="not known where"):
        control_flow(assemble(head.replace("0x70", "0x80") + code))


def test_a_slot_of_the_stack_that_is_written_again_is_not_the_return_address() -> None:
    code = "STL [R1+0x4], R4\n{}\nLDL R4, [R1+0x4]\nMOV R5, RZ\nRET.REL.NODEC R4 `(f)"
    others = "STL.64 [R1+0x8], R6\nSTL [R1], R6\nSTL.64 [R1+-0x4], R6\nSTL.128 [R1+-0xc], R8\n"
    control_flow(assemble(WITH_STACK + code.format(f"{others}STL [R2], R6\nLDL RZ, [R1+0x4]")))
    for load in ("U8", "S8", "U16", "S16"):
        narrow = code.format("MOV R6, RZ").replace("LDL R4", f"LDL.{load} R4")
        with pytest.raises(RejectedKernel, match="not known where"):
            control_flow(assemble(WITH_STACK + narrow))
    kinds = ("64 [R1], R6", "128 [R1+-0x8], R8", "U8 [R1+0x7], R6")
    for store in (*(f"STL.{kind}" for kind in kinds), "@P0 STL [R1+0x4], R6"):
        text = f"ISETP.NE.AND P0, PT, RZ, RZ, PT\n{WITH_STACK.lstrip()}{code.format(store)}"
        text = text.replace("0x40", "0x50").replace("0x70", "0x80")
        with pytest.raises(RejectedKernel, match="not known where"):
            control_flow(assemble(text))


NESTED = """
    MOV R20, 0x30
    MOV R21, RZ
    CALL.REL.NOINC `(outer)
    EXIT
outer:
    MOV R4, 0x60
    CALL.REL.NOINC `(inner)
    MOV R4, 0x80
    CALL.REL.NOINC `(inner)
    RET.REL.NODEC R20 `(f)
inner:
    MOV R5, RZ
    RET.REL.NODEC R4 `(f)
"""


def test_nested_calls_have_chains() -> None:
    function = assemble(NESTED.replace("MOV R20, 0x30", "HFMA2.MMA R20, -RZ, RZ, 0, 2.9e-06"))
    blocks = control_flow(encoded(function, lambda n, _: 0x30 << 32 if n == 0 else 0))
    assert [(block.calls, block.instructions[0]) for block in blocks] == [
        ((), 0), ((), 3), ((2,), 4), ((2,), 6), ((2,), 8), ((2, 5), 9), ((2, 7), 9),
    ]  # fmt: skip
    assert [block.successors for block in blocks] == [(2,), (), (5,), (6,), (1,), (3,), (4,)]


def test_copies_are_bounded() -> None:
    calls = "".join(f"MOV R4, {32 * n + 32:#x}\nCALL.REL.NOINC `(inner)\n" for n in range(600))
    moves = "MOV R5, RZ\n" * 99
    with pytest.raises(RejectedKernel, match="copies of its subroutines have more than 50000"):
        control_flow(assemble(f"{calls}EXIT\ninner:\n{moves}RET.REL.NODEC R4 `(f)"))


BY_THE_ABI = """
    LDC.64 R2, c[0x4][0x8]
    S2R R16, SR_TID.X
    MOV R4, R16
    MOV R6, R16
    MOV R9, R16
    FSETP.GT.AND P0, PT, R9, R9, PT
    LEPC R20, `(.L_x_1)
    CALL.ABS.NOINC R2
L1:
    STS [R16], R4
    EXIT
"""


def test_a_call_by_the_abi() -> None:
    """Arguments and results are fixed; what the callee may write is destroyed; R16 is kept."""
    for limit, last in ((42, "R[32:35]"), (44, "R[32:35] R[40:41]")):
        normalized = normalize(BY_THE_ABI, limit)
        lines = print_function(normalized.function).splitlines()
        assert f"mask m0 R0 R3 R[20:21] {last} UR[4:35] UR[38:62]" in lines
    assert lines[lines.index("bb0->bb1") :] == [
        "bb0->bb1", "%0:R2=LDC.64", "%1:R=S2R", "R4=MOV %1", "R6=MOV %1", "R9=MOV %1",
        "%2=FSETP.GT.AND R9,R9", "R[20:21]=LEPC",
        "R[4:15],P[0:6],UP[0:6]=CALL.ABS.NOINC %0,R0,R[4:15],R[20:21] ^m0",
        "bb1", "STS %1,R4", "EXIT",
    ]  # fmt: skip
    problem = AllocationProblem(normalized.function, print_function(normalized.function))
    label = answer_from_assignment(problem, normalized.assignment)
    for verifier in (FastVerifier(problem), IndependentVerifier(problem)):
        assert verifier.verify(label).valid
        for destroyed in ("R3", "R33", "R5"):
            assert not verifier.verify({**label, "%1": destroyed}).valid
        assert verifier.verify({**label, "%1": "R22"}).valid


def test_an_unknown_callee_may_not_run_what_is_called_here() -> None:
    """Code that nothing else reaches keeps its registers; but it may call a function, too."""
    call = "MOV R24, 0xc0\nMOV R25, RZ\nCALL.REL.NOINC `({})\nEXIT"
    text = BY_THE_ABI.rstrip().replace("EXIT", call)
    code = "\n{}:\nIADD3 R16, R16, 0x1, RZ\nRET.REL.NODEC R24 `(f)"
    helper = "$__internal_0_$__half"
    control_flow(assemble(text.format(helper) + code.format(helper)))
    pointed = "\npointed:\nMOV R4, R5\n{}RET.REL.NODEC R20 `(f)"
    calls = pointed.format(f"CALL.REL.NOINC `({helper})\n")
    control_flow(assemble(text.format(helper) + code.format(helper) + pointed.format("")))
    for own, more in (("more", ""), (helper, calls)):
        with pytest.raises(RejectedKernel, match="a callee that is not known may run"):
            control_flow(assemble(text.format(own) + code.format(own) + more))


def test_the_sum_of_lepc_and_an_offset_is_a_return_address() -> None:
    text = """
    LEPC R10
    MOV R1, c[0x0][0x28]
    MOV R3, 0x90
    MOV R20, 0x0
    MOV R21, 0x0
    MOV R0, 0x0
    IADD3 R20, P0, P1, -R20, R3, R10
    IADD3.X R21, ~R0, R21, R11, P0, P1
    CALL.ABS.NOINC R8
    EXIT
    """
    control_flow(assemble(text))
    sums = ("-R20, R3, R20", "-R1, R3, R10", "R2, R3, R10", "R10, R3, R1")
    changes = [("-R20, R3, R10", new) for new in sums]
    changes += [("R3, 0x90", "R3, 0xa0"), ("R11, P0", "R10, P0"), ("~R0", "R2")]
    others = ["L0:\nCALL.ABS.NOINC R8\nL1:\nLEPC R20, `(.L_x_1)\nBRA L(0)"]
    for new in ("LEPC R20, `(.L_x_2)", "LEPC R20", "MOV R20, 0x80"):
        changed = BY_THE_ABI.replace("LEPC R20, `(.L_x_1)", new)
        others.append(changed.replace("EXIT", "L2:\nEXIT"))
    for other in (*others, *(text.replace(*change) for change in changes)):
        with pytest.raises(RejectedKernel, match=r"CALL\.ABS\.NOINC: it is not known where"):
            control_flow(assemble(other))
