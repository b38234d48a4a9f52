"""What is read of a text, and that nothing else decides the prompts."""

from __future__ import annotations

from tests.generated import random_function
from tests.model.notes.speaker import read, speak
from verilocc_bench.ir import Function, parse_function
from verilocc_bench.model.notes.lane_lives import lane_lives, read_at, written_at
from verilocc_bench.model.notes.mentions import (
    Deed,
    Role,
    read_backwards,
    read_budget,
)

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


HEADER = "".join(PIPELINED.splitlines(keepends=True)[:3])


def example() -> Function:
    return parse_function(EXAMPLE, "example")


def deeds_of(function: Function) -> list[Deed]:
    parts = [part for part in read_backwards(function) if not part.dry]
    return [deed for part in parts for mention in part.mentions for deed in mention.before]


def test_the_example_is_read_backwards_and_its_loop_dry_first() -> None:
    below, dry, above = [part for part in read_backwards(example()) if part.mentions]
    assert [m.register for m in below.mentions] == [0, 3, 1]
    assert dry.dry
    assert [(m.register, m.role) for m in dry.mentions] == [
        (2, Role.PLAIN),
        (3, Role.PLAIN),
        (0, Role.PLAIN),
        (3, Role.BEGINS),
        (2, Role.PLAIN),
    ]
    assert [(m.register, m.role) for m in above.mentions][-5:] == [
        (2, Role.BEGINS),
        (0, Role.PLAIN),
        (1, Role.PLAIN),
        (1, Role.BEGINS),
        (0, Role.BEGINS),
    ]


def test_the_budget_is_what_is_neither_reserved_nor_named() -> None:
    budget = read_budget(example())
    assert budget.registers["v"] == 0xFFFE
    assert budget.registers["s"] == 0x7FF3
    assert budget.named["v"] == {0: read_at(0)}
    assert budget.named["s"] == {2: read_at(1), 3: read_at(1)}


def test_a_register_that_is_written_anew_is_lent_until_it_is_mentioned_again() -> None:
    function = parse_function(PIPELINED.format(uses="", more="S_NOP\n" * 2), "lent")
    # Written again in instruction 4, and read in instruction 1 for the last time.
    assert Deed(0, 1, until=read_at(1), place=written_at(4)) in deeds_of(function)
    assert Deed(0, 1, returns=True, place=read_at(1)) in deeds_of(function)
    read = function.blocks[1].instructions[-2]
    assert read.definitions
    guarded = PIPELINED.format(uses="", more="").replace("%0=V_MOV_B32\nS_C", "%0=V_X %0\nS_C")
    assert not [d for d in deeds_of(parse_function(guarded, "read as well")) if d.until]


def test_what_begins_within_a_loan_may_borrow() -> None:
    inside = "S_NOP\n%2=V_MOV_B32\nS_NOP %2\n" + "S_NOP\n" * 2
    text = PIPELINED.format(uses="", more=inside).replace("v:16", "v:2")
    function = parse_function(text, "borrowing")
    reading = read(function)
    for window in reading:
        speak(window)
    assert reading.ledger.given[2] == reading.ledger.given[0]


def test_lanes_begin_and_end_by_themselves() -> None:
    text = HEADER + (
        "class V2 2 v/2\nbb0\n%0.0=V_MOV_B32\nS_NOP\n%0.1=V_MOV_B32\nV_USE %0.1\nV_USE %0.0\n"
    )
    function = parse_function(text, "lanes")
    found = lane_lives(function, [], [])
    assert (found[0, 0].begin, found[0, 0].end) == (0, read_at(4))
    assert (found[0, 1].begin, found[0, 1].end) == (2, read_at(3))
    # Lane 1 leaves below the instruction between.
    assert Deed(0, 0b10, place=written_at(2)) in deeds_of(function)
    first = next(m for part in read_backwards(function) for m in part.mentions)
    assert first.later == ((0b10, read_at(3)),)


def test_a_loop_keeps_what_begins_above_it_and_not_what_is_written_below() -> None:
    loop, inner = (1, 6), (2, 3)
    text = HEADER + (
        "class V 1 v\nbb0\n%0=V_MOV_B32\nS_NOP\nV_USE %0\nS_NOP\nS_NOP\n%0=V_MOV_B32\nS_NOP\n"
    )
    function = parse_function(text, "loops")
    assert lane_lives(function, [], [])[0, 0].holes == ((read_at(2), 5),)
    around = lane_lives(function, [loop], [])[0, 0]
    assert around.end == written_at(6)
    assert around.holes == ((read_at(2), 5),)
    assert lane_lives(function, [loop, inner], [])[0, 0].holes == ((written_at(3), 5),)
    # A jump from instruction 4 to 6 goes past the write.
    assert lane_lives(function, [], [(4, 6)])[0, 0].holes == ((written_at(4), 5),)


def test_every_loan_is_returned_before_what_lent_is_read() -> None:
    for seed in range(60):
        for target in ("gfx942", "sm_80"):
            function = random_function(seed, registers=14, blocks=8, target=target)
            lent: dict[int, int] = {}
            for part in read_backwards(function):
                for mention in () if part.dry else part.mentions:
                    for deed in mention.before:
                        lanes = lent.get(deed.register, 0)
                        if deed.until is not None:
                            lent[deed.register] = lanes | deed.lanes
                        elif deed.returns:
                            lent[deed.register] = lanes & ~deed.lanes
                    if mention.role is Role.BEGINS:
                        assert not lent.get(mention.register, 0)


def test_an_empty_function_has_no_windows() -> None:
    text = "verilocc-bench 1\ntarget gfx942\nregisters v:16 a:0 s:16 vcc:2=vcc_lo,vcc_hi\nbb0\n"
    function = parse_function(text, "empty")
    reading = read(function)
    assert list(reading) == []
    assert reading.ledger.given == {}
