"""The same function with its blocks in another order: augmentation of labels.

The text names the successors of every block, and nothing falls through. So
the entry stands first, and any order of the others is the same function: who
is live with whom, pressure, loops, and which answers are valid do not depend
on it, nor do registers used, bank conflicts and copies, as instructions stay
in their blocks. (Only the count of pressure at a point with guards, a lower
bound, may be another: in case of doubt lane numbers decide.) Blocks are
numbered by place, and virtual registers by first mention, as a normalized text
must have them; an answer is renamed along.

Of all orders those are drawn in which every block comes after one of its
predecessors, as in most texts of compilers: so all blocks that control surely
comes through before a block stand before it, and with them the definitions
that its values surely have. Blocks that nothing leads to stand last.

Only for formats that show the text (`whole`, `window`). `state` and
`candidates` show none of it; what they take from it is the order of decisions
and for how long a register lies idle, which count points in the order of the
text. Another order of blocks would show them an order and idle times that no
compiler's text has, and nothing of the function that is new.

Linear in the function, for each order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import Function
from verilocc_bench.selftest.renumber import renumber

__all__ = ["Reordered", "draw_order", "reorder", "reordered"]

DRAWS = 8
"""So many orders are drawn for each that is wanted: small functions have few."""


class Reordered(NamedTuple):
    """A function in some order of its blocks, with an answer to it and a seed of its own."""

    problem: AllocationProblem
    answer: Mapping[str, str]
    seed: int


def reordered(
    problem: AllocationProblem, answer: Mapping[str, str], times: int, seed: int
) -> Iterator[Reordered]:
    """The function as it is, with this seed, then in so many other orders, no two the same.

    Fewer where not so many are found: a function may have one order alone.
    """
    yield Reordered(problem, answer, seed)
    generator = Random(f"{seed} order")  # noqa: S311  no secret depends on it
    seen = {tuple(range(len(problem.function.blocks)))}
    for _ in range(DRAWS * times):
        order = draw_order(problem.function, generator)
        if order not in seen:
            seen.add(order)
            other, renamed = reorder(problem, answer, order)
            yield Reordered(other, renamed, generator.getrandbits(32))
        if len(seen) > times:
            return


def draw_order(function: Function, generator: Random) -> tuple[int, ...]:
    """The blocks in an order drawn at random: the entry, then each after one of its predecessors.

    Each time any of the blocks that may come next is as likely as the
    others. Blocks that nothing leads to come last, in their order.
    """
    order: list[int] = []
    waiting, seen = [0], {0}
    while waiting:
        place = generator.randrange(len(waiting))
        waiting[place], waiting[-1] = waiting[-1], waiting[place]
        order.append(waiting.pop())
        fresh = [each for each in function.blocks[order[-1]].successors if each not in seen]
        seen.update(fresh)
        waiting += fresh
    return (*order, *(block for block in range(len(function.blocks)) if block not in seen))


def reorder(
    problem: AllocationProblem, answer: Mapping[str, str], order: Sequence[int]
) -> tuple[AllocationProblem, dict[str, str]]:
    """The problem with its blocks in this order, and the answer under the names that it has there.

    `order` has the present number of every block once, the entry's first;
    raises ValueError for another. Of the answer all is kept, what it says of
    unknown registers too, so that it is as valid as before.
    """
    function = problem.function
    if order[0] != 0 or sorted(order) != list(range(len(function.blocks))):
        raise ValueError(f"no order of {len(function.blocks)} blocks with the entry first: {order}")
    places = {old: new for new, old in enumerate(order)}
    moved = (function.blocks[old] for old in order)
    blocks = tuple(
        replace(block, successors=tuple(places[each] for each in block.successors))
        for block in moved
    )
    other, numbers = renumber(replace(function, blocks=blocks))
    names = {f"%{old}": f"%{new}" for old, new in numbers.items()}
    # By the new numbers, and what is no register of the function last.
    keys = [*(key for key in names if key in answer), *(key for key in answer if key not in names)]
    return AllocationProblem(other), {names.get(key, key): answer[key] for key in keys}
