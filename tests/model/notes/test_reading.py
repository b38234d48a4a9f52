"""What is read of a text, and that nothing else decides the prompts."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tests.generated import random_function
from tests.model.notes.speaker import conversation
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.ir import Function, parse_function, print_function
from verilocc_bench.model.prompts.notes.episode import empty_ledger
from verilocc_bench.model.prompts.notes.reading import (
    Mention,
    Role,
    read_backwards,
    read_budget,
)
from verilocc_bench.training.notes.teacher import OutOfRegisters

EXAMPLE = """\
verilocc-bench 1
target gfx942
registers v:16 a:0 s:16 vcc:2=vcc_lo,vcc_hi
reserved s15
class V 1 v
class S2 2 s/2 vcc/2
class V2 2 v/2
bb0(v0,s[2:3])->bb1
%0=COPY v0
%1:S2=COPY s[2:3]
%2:V2=GLOBAL_LOAD_DWORDX2_SADDR %0,%1
bb1->bb1,bb2
%3=V_ADD_U32 %2.0,%2.1
%2.0=V_ADD_U32 %3,%0
S_CBRANCH_SCC1
bb2
GLOBAL_STORE_DWORD_SADDR %0,%3,%1
"""

PIPELINED = """\
verilocc-bench 1
target gfx942
registers v:16 a:0 s:16 vcc:2=vcc_lo,vcc_hi
class V 1 v
bb0->bb1
%0=V_MOV_B32
bb1->bb1,bb2
{uses}%1=V_ADD_U32 %0
{more}%0=V_MOV_B32
S_CBRANCH_SCC1
bb2
S_ENDPGM
"""


def example() -> Function:
    return parse_function(EXAMPLE, "example")


def spoken(function: Function) -> list[str]:
    try:
        return list(conversation(function))
    except OutOfRegisters:
        return ["out of registers"]


def test_the_example_is_read_backwards_and_its_loop_dry_first() -> None:
    parts = [part for part in read_backwards(example()) if part.mentions or part.arguments_return]
    below, dry, loop_and_above, returned, arguments = parts
    assert [m.register for m in below.mentions] == [0, 3, 1]
    assert dry.dry
    assert [(m.register, m.role) for m in dry.mentions] == [
        (2, Role.PLAIN),
        (3, Role.PLAIN),
        (0, Role.PLAIN),
        (3, Role.BEGINS),
        (2, Role.PLAIN),
    ]
    assert [(m.register, m.role) for m in loop_and_above.mentions][-3:] == [
        (2, Role.BEGINS),
        (0, Role.PLAIN),
        (1, Role.PLAIN),
    ]
    assert returned.arguments_return
    assert arguments.mentions == (Mention(1, Role.BEGINS), Mention(0, Role.BEGINS))


def test_the_budget_is_what_is_neither_reserved_nor_named() -> None:
    budget = read_budget(example())
    assert budget.registers["v"] == 0xFFFE
    assert budget.registers["s"] == 0x7FF3
    assert budget.arguments == 0b1100


def test_the_windows_of_the_example() -> None:
    said = list(conversation(example()))
    names = {word for line in said for word in line.split() if word.startswith("N")}
    assert len(names) > 4  # drawn anew in each window
    assert said[0].startswith("W L_v1 v1 - L_v2 v2 - L_v4 v4 - L_v8 v8 - L_v16 - ")
    # %1 begins where an argument is read for the last time: it may not borrow.
    assert re.search(r" C_s2 N\d+ => s0 U_s2 s12$", said[0])


def test_a_register_that_is_written_anew_is_lent_until_it_is_mentioned_again() -> None:
    far = parse_function(PIPELINED.format(uses="", more="S_NOP\n" * 12), "far")
    roles = [(m.register, m.role, m.returns) for part in read_backwards(far) for m in part.mentions]
    assert (0, Role.ANEW, False) in roles
    assert (0, Role.PLAIN, True) in roles
    near = parse_function(PIPELINED.format(uses="", more="S_NOP\n" * 2), "near")
    assert all(m.role is not Role.ANEW for part in read_backwards(near) for m in part.mentions)


def test_what_begins_within_a_loan_may_borrow() -> None:
    inside = "S_NOP\n%2=V_MOV_B32\nS_NOP %2\n" + "S_NOP\n" * 12
    function = parse_function(PIPELINED.format(uses="", more=inside), "borrowing")
    parts = [part for part in read_backwards(function) if not part.dry]
    borrowing = {m.register for part in parts for m in part.mentions if m.borrows}
    assert borrowing == {2}
    said = " ".join(conversation(function))
    assert "F_hv1 hv" in said


def test_every_loan_is_returned_before_what_lent_is_read() -> None:
    for seed in range(60):
        for target in ("gfx942", "sm_80"):
            function = random_function(seed, registers=14, blocks=8, target=target)
            lent: set[int] = set()
            for part in read_backwards(function):
                for mention in () if part.dry else part.mentions:
                    assert mention.returns or mention.register not in lent
                    lent.discard(mention.register)
                    if mention.role is Role.ANEW:
                        lent.add(mention.register)


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "sm_80"])
def test_prompts_need_no_analysis(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = [random_function(seed, target=target) for seed in range(12)]
    before = [spoken(function) for function in functions]

    def refuse(*_: object) -> None:
        raise AssertionError("an analysis was asked for")

    import verilocc_bench.analysis.lane_flow
    import verilocc_bench.analysis.liveness
    import verilocc_bench.analysis.loops
    import verilocc_bench.analysis.pressure

    monkeypatch.setattr(verilocc_bench.analysis.liveness, "analyse_liveness", refuse)
    monkeypatch.setattr(verilocc_bench.analysis.loops, "loop_depths", refuse)
    monkeypatch.setattr(verilocc_bench.analysis.pressure, "measure_pressure", refuse)
    monkeypatch.setattr(verilocc_bench.analysis.lane_flow, "LaneFlow", refuse)
    for name in ("liveness", "pressure", "loop_depths", "placements"):
        monkeypatch.setattr(AllocationProblem, name, property(refuse))
    assert [spoken(function) for function in functions] == before


def test_prompts_follow_from_the_text() -> None:
    for seed in range(20):
        function = random_function(seed, target="gfx942")
        again = parse_function(print_function(function), "again")
        assert spoken(again) == spoken(function)


def test_neither_opcodes_nor_the_upper_limit_of_waves_are_read() -> None:
    function = example()
    blocks = tuple(
        replace(b, instructions=tuple(replace(i, opcode="OP") for i in b.instructions))
        for b in function.blocks
    )
    other = replace(function, blocks=blocks, maximum_occupancy=3)
    assert spoken(other) == spoken(function)


def test_a_class_without_a_word_is_refused() -> None:
    text = EXAMPLE.replace("S2 2 s/2 vcc/2", "C2 2 vcc/2").replace(":S2", ":C2")
    with pytest.raises(InputError, match="no word for class C2"):
        list(conversation(parse_function(text, "vcc alone")))


def test_an_empty_function_has_no_windows() -> None:
    text = "verilocc-bench 1\ntarget gfx942\nregisters v:16 a:0 s:16 vcc:2=vcc_lo,vcc_hi\nbb0\n"
    function = parse_function(text, "empty")
    assert list(conversation(function)) == []
    assert empty_ledger(function).given == {}
