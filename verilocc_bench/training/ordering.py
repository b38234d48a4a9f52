"""The same function with its blocks in another order: augmentation of labels.

The text names the successors of every block, and no block falls through. So
any order with the entry first is the same function. Interference, pressure,
loops and the set of valid answers do not depend on the order. Instructions
stay in their blocks, so registers used, bank conflicts and copies do not
depend on it either. (One thing may change: the count of pressure at a point
with guards, a lower bound, breaks ties by lane numbers.) A normalized text
numbers blocks by place and virtual registers by first mention; the function is
renumbered so, and the answer is renamed with it.

An order is drawn from those in which each block comes after one of its
predecessors, as in most compilers' texts. Then the dominators of a block, and
the definitions in them, stand before it. Unreachable blocks stand last.

This is only for formats that show the text in its order (`whole`, `window`).

Each order costs time linear in the function.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import NamedTuple

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import Function
from verilocc_bench.selftest.renumber import renumber

DRAWS = 8
"""Draws for each order that is wanted; small functions have few different orders."""


class Reordered(NamedTuple):
    """A function in some order of its blocks, with an answer to it and a seed of its own."""

    problem: AllocationProblem
    answer: Mapping[str, str]
    seed: int


def reordered(
    problem: AllocationProblem, answer: Mapping[str, str], times: int, seed: int
) -> Iterator[Reordered]:
    """Yields the function unchanged with `seed`, then up to `times` different other orders.

    Fewer come if fewer are found: a function may have only one order.
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
    """Draws an order of blocks: the entry, then each block after one of its predecessors.

    All blocks that may come next are equally likely. Unreachable blocks come
    last, in their present order.
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
    """The problem with its blocks in this order, and the answer with the new names.

    `order` holds the present number of each block once, 0 (the entry) first;
    otherwise raises ValueError. The answer keeps all its entries, even those
    of unknown registers, so that it is as valid as before.
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
    # Sorted by the new numbers; names of unknown registers come last.
    keys = [*(key for key in names if key in answer), *(key for key in answer if key not in names)]
    return AllocationProblem(other), {names.get(key, key): answer[key] for key in keys}
