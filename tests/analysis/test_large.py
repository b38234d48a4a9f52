"""Functions far larger than any kernel: analysed in about linear time, or refused in one line."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest

from verilocc_bench.analysis import AllocationProblem, block_order, liveness, loops
from verilocc_bench.errors import InputError
from verilocc_bench.ir import text_parser

COUNT = 1000

HEADER = """verilocc-bench 1
target gfx942
registers v:256 a:256 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
"""

GUARDED = """verilocc-bench 1
target sm_80
registers R:253 UR:63 P:7 UP:7
reserved R1 UR[0:3]
class P 1 P
class R 1 R
"""

Edges = Sequence[Sequence[int]]


def _nested(count: int) -> Edges:
    half = count // 2
    heads = [[block + 1] for block in range(half)]
    tails = [[block + 1, count - 1 - block] for block in range(half, count - 1)]
    return [*heads, *tails, [0]]


def _random(count: int) -> Edges:
    generator = random.Random(count)
    return [sorted(set(generator.choices(range(count), k=3))) for _ in range(count - 1)] + [[]]


def _near(*steps: int) -> Callable[[int], Edges]:
    def edges(count: int) -> Edges:
        return [
            [block + step for step in steps if 0 <= block + step < count] for block in range(count)
        ]

    return edges


GRAPHS: dict[str, Callable[[int], Edges]] = {
    "chain": _near(1),
    "there and back": _near(1, -1),
    "irreducible": _near(1, 2, -1, -2),
    "nested loops": _nested,
    "loops of one head": lambda count: [[n + 1, 0] if n + 1 < count else [0] for n in range(count)],
    "an interpreter": lambda count: [list(range(1, count)), *([[0]] * (count - 1))],
    "one end": lambda count: [*([n + 1, count] for n in range(count - 1)), [count], []],
    "random": _random,
}


def function(edges: Edges) -> AllocationProblem:
    """Every block defines a register and reads its own and the entry's."""
    lines = [HEADER]
    for block, successors in enumerate(edges):
        names = ",".join(f"bb{each}" for each in successors)
        lines.append(f"bb{block}->{names}\n" if names else f"bb{block}\n")
        lines.append(f"%{block}=V_A\nV_B %{block},%0\n")
    return AllocationProblem.from_text("".join(lines))


@pytest.mark.parametrize("name", GRAPHS)
def test_blocks_are_visited_a_few_times_each(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    visits = 0
    plain = block_order.PendingBlocks.pop

    def pop(self: block_order.PendingBlocks) -> int | None:
        nonlocal visits
        visits += 1
        return plain(self)

    monkeypatch.setattr(block_order.PendingBlocks, "pop", pop)
    problem = function(GRAPHS[name](COUNT))
    assert all(problem.liveness.live)
    # Two facts forwards and one backwards, of which each takes one visit at least.
    assert 3 * COUNT <= visits <= 10 * COUNT


def test_guards_of_one_block_do_not_add_up() -> None:
    lines = [GUARDED]
    for block in range(COUNT):
        lines.append(f"bb{block}->bb{block + 2},bb{block + 1}\n")
        lines.append(f"%{2 * block}=ISETP\n%{2 * block + 1}:R=MOV\nST %{2 * block + 1}\n")
        lines.append(f"@%{2 * block} BRA\n")
    lines.append(f"bb{COUNT}->bb{COUNT + 1}\nbb{COUNT + 1}\nEXIT\n")
    problem = AllocationProblem.from_text("".join(lines))
    assert problem.pressure.maximum["vector"] == 1


def test_what_is_too_tangled_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_order, "VISITS", 0)
    monkeypatch.setattr(block_order, "VISITS_OF_A_BLOCK", 1)
    with pytest.raises(InputError, match="edges between the 50 blocks are too tangled"):
        _ = function(GRAPHS["there and back"](50)).liveness
    monkeypatch.setattr(loops, "BLOCKS", 100)
    with pytest.raises(InputError, match="all have more than 100 blocks"):
        loops.natural_loops(_nested(50))


def test_more_registers_and_instructions_than_sets_can_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = function(GRAPHS["chain"](100))
    monkeypatch.setattr(liveness, "PAIRS", 30_000)
    assert len(problem.liveness.live) == 100
    monkeypatch.setattr(liveness, "PAIRS", 29_999)
    problem = function(GRAPHS["chain"](100))
    with pytest.raises(InputError, match="300 instructions and blocks with 100 lanes"):
        _ = problem.liveness


def test_texts_that_are_too_long() -> None:
    head = HEADER + "bb0\n%0=V_A\n"
    uses = "V_B " + ",".join(["%0"] * 5)
    assert AllocationProblem.from_text(f"{head}{uses}\n").pressure.maximum["vector"] == 1
    for text in (
        head + "V_B %0\n" * text_parser.MAXIMUM_LINES,
        head + "V_B " + "%0," * (text_parser.MAXIMUM_CHARACTERS // 3) + "%0\n",
    ):
        with pytest.raises(InputError, match=r"a normalized text may have 500,000 and 33,554,432"):
            AllocationProblem.from_text(text)
