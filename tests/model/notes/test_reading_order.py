"""The order in which blocks are read."""

from __future__ import annotations

from tests.generated import random_function
from verilocc_bench.ir import Block, Function, Instruction
from verilocc_bench.model.notes.reading_order import in_reading_order


def made(*successors: tuple[int, ...]) -> Function:
    """A function of blocks that jump so; each has one instruction, called by its number."""
    blocks = tuple(
        Block((Instruction(str(number)),), targets) for number, targets in enumerate(successors)
    )
    return Function("gfx942", (), (), (), (), blocks)


def order_of(function: Function) -> str:
    blocks = in_reading_order(function).blocks
    return " ".join(block.instructions[0].opcode for block in blocks)


def test_the_order_of_the_text_stays_where_it_can() -> None:
    assert order_of(made((1, 2), (3,), (3,), ())) == "0 1 2 3"
    assert order_of(made((1,), (1, 2), ())) == "0 1 2"


def test_a_way_out_that_stands_above_comes_last() -> None:
    assert order_of(made((2, 1), (), (3,), (3, 4), (1,))) == "0 2 3 4 1"


def test_a_loop_stays_together() -> None:
    # 1 is left to 2 or 4; 3 jumps back to 1 and stands behind what follows the loop.
    assert order_of(made((1,), (2, 3), (), (1,))) == "0 1 3 2"


def test_loops_within_loops() -> None:
    function = made((1,), (2,), (2, 3), (1, 4), ())
    assert order_of(function) == "0 1 2 3 4"
    assert [b.successors for b in in_reading_order(function).blocks] == [
        (1,),
        (2,),
        (2, 3),
        (1, 4),
        (),
    ]


def test_a_loop_back_to_the_entry() -> None:
    assert order_of(made((1,), (0, 2), ())) == "0 1 2"


def test_jumps_back_are_loops_and_nothing_is_lost() -> None:
    for seed in range(200):
        function = random_function(seed, blocks=10)
        read = in_reading_order(function)
        assert len(read.blocks) == len(function.blocks)
        before = sorted(repr(block.instructions) for block in function.blocks)
        assert sorted(repr(block.instructions) for block in read.blocks) == before
        assert repr(read.blocks[0].instructions) == repr(function.blocks[0].instructions)
        for source, block in enumerate(read.blocks):
            for target in block.successors:
                if target <= source and target:  # the entry is first in any case
                    assert reaches(read, target, source)


def reaches(function: Function, start: int, end: int) -> bool:
    seen, waiting = {start}, [start]
    while waiting:
        for target in function.blocks[waiting.pop()].successors:
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return end in seen
