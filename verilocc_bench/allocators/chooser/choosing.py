"""The allocator `chooser`: one first-fit order where that is enough, else tabu search.

The tree was trained on kernels of the dataset's training split, to name the
cheapest allocator that needs no more registers than tabu search.
"""

from __future__ import annotations

from verilocc_bench.allocators.chooser.features import features_of
from verilocc_bench.allocators.chooser.tree import load_tree
from verilocc_bench.allocators.search.options import Means, SearchOptions
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment

__all__ = ["TABU", "choose_and_allocate"]

TABU = "tabu-search"


def choose_and_allocate(problem: AllocationProblem) -> Assignment:
    """The assignment of the allocator that the tree names.

    Where that finds no place, of tabu search. Raises AllocationFailed where
    that finds none either.
    """
    from verilocc_bench.allocators.search.orders import ORDERS
    from verilocc_bench.allocators.search.portfolio import Search

    search = Search(problem, SearchOptions(), Means.TABU)
    choice = load_tree().choose(features_of(problem))
    if choice == TABU:
        return search.run().assignment
    try:
        options = SearchOptions(order=ORDERS.index(choice))
        return Search(problem, options, Means.ORDERS).run().assignment
    except AllocationFailed:
        return search.run().assignment
