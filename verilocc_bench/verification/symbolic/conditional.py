"""Sets of places that depend on predicates: decision diagrams with sets as leaves.

A *diagram* is a function from the values of all predicates to a set of places.
It is an integer (a bit mask) if no predicate matters, else a node that asks one
predicate. Nodes are ordered by predicate, reduced, and made once each, so equal
functions are the same object (Fujita, McGeer and Yang, "Multi-Terminal Binary
Decision Diagrams", Formal Methods in System Design 1997). The leaf EVERYTHING,
with all bits set, is the top of the lattice of sets under intersection. A
diagram with the leaves FALSE and TRUE is a condition.

Cost: an operation visits each pair (or triple) of nodes once. The diagrams of
kernels are tiny. A text can be built to make them explode, so the number of
visited nodes is bounded, far above any kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from verilocc_bench.errors import InputError

EVERYTHING = -1
FALSE = 0
TRUE = -1

WORK_LIMIT = 200_000
"""Nodes that one check may visit; the largest kernel of `mini` visits 307."""

SUPPORT_LIMIT = 200
"""Predicates that one diagram may depend on."""


@dataclass(frozen=True, slots=True, eq=False)
class DecisionNode:
    """`low` where predicate number `variable` is false, `high` where it is true.

    `support`: the predicates asked, as a bit mask. `floor`: the intersection
    of all leaves. `places`: the union of all leaves but EVERYTHING.
    """

    variable: int
    low: Diagram
    high: Diagram
    support: int
    floor: int
    places: int


Diagram: TypeAlias = int | DecisionNode


def floor_of(diagram: Diagram) -> int:
    """The places in every leaf."""
    return diagram if isinstance(diagram, int) else diagram.floor


def places_of(diagram: Diagram) -> int:
    """The places in some leaf other than EVERYTHING."""
    if isinstance(diagram, int):
        return diagram if diagram > 0 else 0
    return diagram.places


def support_of(diagram: Diagram) -> int:
    """The predicates that a diagram depends on, as a bit mask."""
    return 0 if isinstance(diagram, int) else diagram.support


class Diagrams:
    """The diagrams of one check. All methods raise InputError beyond the bounds."""

    def __init__(self) -> None:
        self.work = 0
        self._nodes: dict[tuple[int, Diagram, Diagram], DecisionNode] = {}
        self._meets: dict[tuple[Diagram, Diagram], Diagram] = {}
        self._choices: dict[tuple[Diagram, Diagram, Diagram], Diagram] = {}

    def node(self, variable: int, low: Diagram, high: Diagram) -> Diagram:
        """`high` if a predicate is true, else `low`. Both ask only later predicates."""
        if low is high or (isinstance(low, int) and low == high):
            return low
        key = (variable, low, high)
        found = self._nodes.get(key)
        if found is None:
            support = 1 << variable | support_of(low) | support_of(high)
            if support.bit_count() > SUPPORT_LIMIT:
                raise InputError(
                    f"the guards depend on more than {SUPPORT_LIMIT} predicates at once"
                )
            floor = floor_of(low) & floor_of(high)
            places = places_of(low) | places_of(high)
            found = self._nodes[key] = DecisionNode(variable, low, high, support, floor, places)
        return found

    def literal(self, variable: int, value: bool) -> Diagram:
        """The condition that a predicate has this value."""
        return self.node(variable, FALSE if value else TRUE, TRUE if value else FALSE)

    def meet(self, a: Diagram, b: Diagram) -> Diagram:
        """The intersection of two diagrams; of two conditions, the conjunction."""
        if isinstance(a, int):
            if isinstance(b, int):
                return a & b
            if a == EVERYTHING:
                return b
        if a is b or b == EVERYTHING:
            return a
        # Nodes are made once, so a pair of objects is a key.
        key = (a, b)
        found = self._meets.get(key)
        if found is None:
            self._count()
            top = min(_variable(a), _variable(b))
            found = self._meets[key] = self.node(
                top,
                self.meet(_cofactor(a, top, False), _cofactor(b, top, False)),
                self.meet(_cofactor(a, top, True), _cofactor(b, top, True)),
            )
        return found

    def choose(self, condition: Diagram, yes: Diagram, no: Diagram) -> Diagram:
        """`yes` where a condition is true, else `no`."""
        if isinstance(condition, int):
            return yes if condition == TRUE else no
        if yes is no or (isinstance(yes, int) and yes == no):
            return yes
        key = (condition, yes, no)
        found = self._choices.get(key)
        if found is None:
            self._count()
            top = min(condition.variable, _variable(yes), _variable(no))
            low = [_cofactor(diagram, top, False) for diagram in key]
            high = [_cofactor(diagram, top, True) for diagram in key]
            found = self._choices[key] = self.node(top, self.choose(*low), self.choose(*high))
        return found

    def negation(self, condition: Diagram) -> Diagram:
        """The negation of a condition."""
        return self.choose(condition, FALSE, TRUE)

    def either(self, a: Diagram, b: Diagram) -> Diagram:
        """The disjunction of two conditions."""
        return self.choose(a, TRUE, b)

    def within(self, condition: Diagram, diagram: Diagram) -> Diagram:
        """A diagram that is EVERYTHING wherever a condition is false."""
        return self.choose(condition, diagram, EVERYTHING)

    def merge(self, here: Diagram, a: Diagram, there: Diagram, b: Diagram) -> Diagram:
        """`a` under `here` meets `b` under `there`; EVERYTHING where neither is true."""
        if a is b or (isinstance(a, int) and a == b):
            return a
        if here is there or (isinstance(here, int) and here == there):
            return self.meet(a, b)
        return self.meet(self.within(here, a), self.within(there, b))

    def forget(self, diagram: Diagram, variable: int) -> Diagram:
        """The intersection of a diagram over both values of a predicate."""
        if isinstance(diagram, int) or not diagram.support >> variable & 1:
            return diagram
        self._count()
        if diagram.variable == variable:
            return self.meet(diagram.low, diagram.high)
        return self.node(
            diagram.variable,
            self.forget(diagram.low, variable),
            self.forget(diagram.high, variable),
        )

    def exists(self, condition: Diagram, variable: int) -> Diagram:
        """A condition, quantified existentially over a predicate."""
        if not support_of(condition) >> variable & 1:
            return condition
        return self.negation(self.forget(self.negation(condition), variable))

    def transform(self, diagram: Diagram, change: Callable[[int], int]) -> Diagram:
        """Changes every leaf but EVERYTHING."""
        done: dict[DecisionNode, Diagram] = {}

        def visit(each: Diagram) -> Diagram:
            if isinstance(each, int):
                return each if each == EVERYTHING else change(each)
            found = done.get(each)
            if found is None:
                self._count()
                found = done[each] = self.node(each.variable, visit(each.low), visit(each.high))
            return found

        return visit(diagram)

    def _count(self) -> None:
        self.work += 1
        if self.work > WORK_LIMIT:
            raise InputError(
                "the guards depend on each other in too many ways to analyse: "
                f"the limit is {WORK_LIMIT} steps"
            )


_BEYOND = 1 << 60


def _variable(diagram: Diagram) -> int:
    return _BEYOND if isinstance(diagram, int) else diagram.variable


def _cofactor(diagram: Diagram, variable: int, value: bool) -> Diagram:
    """A diagram under one value of a predicate. The diagram must ask no earlier predicate."""
    if isinstance(diagram, int) or diagram.variable != variable:
        return diagram
    return diagram.high if value else diagram.low
