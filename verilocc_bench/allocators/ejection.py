"""Decisions in a fixed order, with ejection of other registers at a dead end.

A virtual register that fits nowhere takes a base whose occupants are ejected.
The ejected registers are decided next. The weight of a virtual register is the
number of live points of its lanes, times one plus its own dead ends. So registers
that were hard to place stay, and two registers do not eject each other for ever.
Among the bases with the lightest occupants the register takes the one whose
occupants can best be placed elsewhere.

This is the move of tabu search on partial colourings (Blöchliger and Zufferey,
"A graph coloring heuristic using partial solutions and a reactive tabu scheme",
2008), with weights for a tabu list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

from verilocc_bench.allocators.register_state import RegisterState

LOOKED_AT = 8
"""The most bases for which the places of their occupants are looked up."""


class Ejection:
    """The state of the registers, and the next one. `steps` counts the dead ends so far."""

    def __init__(self, state: RegisterState, order: Sequence[int]) -> None:
        self.state = state
        self.steps = 0
        self._places = {register: place for place, register in enumerate(order)}
        self._points = [
            sum((live | defined).bit_count() for live, defined in state.lifetimes(register))
            for register in range(len(state.problem.function.virtual_registers))
        ]
        # Breaks ties between bases of equal weight; always taking the first runs in circles.
        self._generator = Random(0)  # noqa: S311  no secret depends on it
        self._waiting = list(reversed(order))
        self._dead_ends: Counter[int] = Counter()

    @property
    def register(self) -> int | None:
        """The virtual register to place next; None once all are placed."""
        return self._waiting[-1] if self._waiting else None

    def choices(self) -> dict[int, str]:
        """The bases that it may take, with their names."""
        return self.state.legal(self._waiting[-1])

    def take(self, base: int) -> None:
        """Decides for a base, legal or not."""
        self.state.place(self._waiting.pop(), base)

    def eject(self) -> bool:
        """Makes room for the next virtual register and places it. False if it cannot."""
        register = self._waiting[-1]
        blockers = self.state.blockers(register)
        if not blockers:
            return False
        self.steps += 1
        self._dead_ends[register] += 1
        base = self._best(register, blockers)
        for other in blockers[base]:
            self.state.evict(other)
        self.take(base)
        self._waiting += sorted(blockers[base], key=self._places.__getitem__, reverse=True)
        return True

    def _best(self, register: int, blockers: Mapping[int, set[int]]) -> int:
        """Among the bases with the lightest occupants, the one that leaves least homeless."""
        weights = {base: sum(map(self._weight, others)) for base, others in blockers.items()}
        ranked = sorted(weights, key=lambda base: (weights[base], self._generator.random()))
        best, least = ranked[0], None
        for base in ranked[:LOOKED_AT]:
            homeless = self._homeless(register, base, blockers[base])
            if least is None or homeless < least:
                best, least = base, homeless
            if homeless == 0:
                break
        return best

    def _homeless(self, register: int, base: int, others: set[int]) -> int:
        """The weight of the occupants that fit nowhere once a register takes their base.

        Each occupant takes its first legal base, in the order of decisions.
        """
        state = self.state
        before = {other: state.placed[other] for other in others}
        for other in others:
            state.evict(other)
        state.place(register, base)
        homeless = 0
        moved = [register]
        for other in sorted(others, key=self._places.__getitem__):
            place = next(iter(state.legal(other)), None)
            if place is None:
                homeless += self._weight(other)
            else:
                state.place(other, place)
                moved.append(other)
        for other in moved:
            state.evict(other)
        for other, its_base in before.items():
            state.place(other, its_base)
        return homeless

    def _weight(self, register: int) -> int:
        return self._points[register] * (1 + self._dead_ends[register])
