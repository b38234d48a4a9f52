"""Boolean functions of predicates, and sets of lanes under such conditions.

A function is a node of a reduced ordered binary decision diagram (Bryant,
"Graph-Based Algorithms for Boolean Function Manipulation", IEEE Transactions
on Computers 1986): equal functions are equal numbers. The variables are the
lanes of the predicates that guard something. In real kernels few of them
matter at one point, and the diagrams stay tiny. A text can be built to make
them explode, so the work on one function is bounded, far above any kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from verilocc_bench.errors import InputError

FALSE = 0
TRUE = 1

Literal = tuple[int, bool]
"""A predicate's lane, and the value that it must have."""

ConditionalLanes = dict[int, int]
"""Disjoint sets of lanes (bit masks) by their condition; a lane in no set has FALSE."""

_TERMINAL = 1 << 60


WORK_LIMIT = 400_000
"""Steps that one analysis may take; the largest kernel seen (8,272 instructions) takes 12,370."""

DEPTH_LIMIT = 200
"""Predicates that one condition may depend on; kernels have 14."""


class Conditions:
    """The boolean functions of one analysis.

    All methods raise InputError if the function's guards need more than the
    bounds allow. The bounds count steps, so they are the same on every machine.
    """

    def __init__(self) -> None:
        self.work = 0
        self._depth = [0, 0]
        self._variable = [_TERMINAL, _TERMINAL]
        self._low = [FALSE, TRUE]
        self._high = [FALSE, TRUE]
        self._nodes: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}
        self._without: dict[tuple[int, int], int] = {}
        self._supports: dict[int, frozenset[int]] = {FALSE: frozenset(), TRUE: frozenset()}

    def literal(self, literal: Literal) -> int:
        """The function of one predicate, or its negation."""
        variable, value = literal
        return self._node(variable, int(not value), int(value))

    def both(self, a: int, b: int) -> int:
        """Conjunction."""
        if a == TRUE:
            return b
        if b == TRUE:
            return a
        found = self._choices.get((a, b, FALSE))
        return self._choice(a, b, FALSE) if found is None else found

    def either(self, a: int, b: int) -> int:
        """Disjunction."""
        return self._choice(a, TRUE, b)

    def negation(self, a: int) -> int:
        """Negation."""
        return self._choice(a, FALSE, TRUE)

    def without(self, a: int, variables: Iterable[int]) -> int:
        """`a` with these variables quantified existentially: true if some values make `a` true."""
        for variable in variables:
            a = self._exists(a, variable)
        return a

    def _node(self, variable: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (variable, low, high)
        found = self._nodes.get(key)
        if found is None:
            found = len(self._variable)
            depth = 1 + max(self._depth[low], self._depth[high])
            if depth > DEPTH_LIMIT:
                raise InputError(f"the guards depend on more than {DEPTH_LIMIT} predicates at once")
            self._depth.append(depth)
            self._nodes[key] = found
            self._variable.append(variable)
            self._low.append(low)
            self._high.append(high)
        return found

    def _choice(self, test: int, yes: int, no: int) -> int:
        """If `test` then `yes` else `no`."""
        if test == TRUE:
            return yes
        if test == FALSE:
            return no
        if yes == no:
            return yes
        if yes == TRUE and no == FALSE:
            return test
        key = (test, yes, no)
        found = self._choices.get(key)
        if found is None:
            self.spend(1)
            top = min(self._variable[test], self._variable[yes], self._variable[no])
            low = self._choice(*(self._branch(f, top, self._low) for f in key))
            high = self._choice(*(self._branch(f, top, self._high) for f in key))
            found = self._choices[key] = self._node(top, low, high)
        return found

    def spend(self, steps: int) -> None:
        """Counts steps. Raises InputError once they exceed the bound."""
        self.work += steps
        if self.work > WORK_LIMIT:
            raise InputError("the guards depend on each other in too many ways to analyse")

    def _branch(self, function: int, variable: int, side: list[int]) -> int:
        return side[function] if self._variable[function] == variable else function

    def _exists(self, function: int, variable: int) -> int:
        if self._variable[function] > variable:
            return function
        key = (function, variable)
        found = self._without.get(key)
        if found is None:
            low, high = self._low[function], self._high[function]
            if self._variable[function] == variable:
                found = self.either(low, high)
            else:
                found = self._node(
                    self._variable[function],
                    self._exists(low, variable),
                    self._exists(high, variable),
                )
            self._without[key] = found
        return found

    def union(self, a: ConditionalLanes, b: ConditionalLanes) -> ConditionalLanes:
        """Lane by lane, the disjunction of two conditions."""
        if a == b or not b:
            return a
        if not a:
            return b
        if len(a) == len(b) == 1 and TRUE in a and TRUE in b:
            return {TRUE: a[TRUE] | b[TRUE]}
        self.spend(len(a) * len(b))
        result: ConditionalLanes = {}
        everything_b = 0
        for mask in b.values():
            everything_b |= mask
        everything_a = 0
        for condition, mask in a.items():
            everything_a |= mask
            add_lanes(result, condition, mask & ~everything_b)
            for other, other_mask in b.items():
                if common := mask & other_mask:
                    add_lanes(result, self.either(condition, other), common)
        for other, other_mask in b.items():
            add_lanes(result, other, other_mask & ~everything_a)
        return result

    def restrict(self, lanes: ConditionalLanes, condition: int) -> ConditionalLanes:
        """Lane by lane, the conjunction with one condition."""
        if condition == TRUE:
            return lanes
        self.spend(len(lanes))
        result: ConditionalLanes = {}
        for own, mask in lanes.items():
            add_lanes(result, self.both(own, condition), mask)
        return result

    def forget(self, lanes: ConditionalLanes, keep: int) -> ConditionalLanes:
        """Lane by lane, the condition without the variables that are not in the mask `keep`."""
        if lanes.keys() <= {TRUE}:
            return lanes
        result: ConditionalLanes = {}
        for own, mask in lanes.items():
            forgotten = [v for v in self.support(own) if not keep >> v & 1]
            add_lanes(result, self.without(own, forgotten), mask)
        return result

    def meeting(self, a: ConditionalLanes, b: ConditionalLanes) -> int:
        """The lanes whose two conditions can hold at once."""
        self.spend(len(a) * len(b))
        found = 0
        for condition, mask in a.items():
            for other, other_mask in b.items():
                if TRUE in (condition, other) or self.both(condition, other) != FALSE:
                    found |= mask & other_mask
        return found

    def support(self, function: int) -> frozenset[int]:
        """The variables that a function depends on."""
        found = self._supports.get(function)
        if found is None:
            found = self.support(self._low[function]) | self.support(self._high[function])
            found |= {self._variable[function]}
            self._supports[function] = found
        return found


def add_lanes(lanes: ConditionalLanes, condition: int, mask: int) -> None:
    """Adds lanes under a condition. The lanes must not be in `lanes` yet."""
    if mask and condition != FALSE:
        lanes[condition] = lanes.get(condition, 0) | mask
