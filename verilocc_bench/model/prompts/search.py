"""Decisions in a fixed order, and what gives way where one comes to a dead end.

Where a virtual register fits nowhere, it takes the base whose occupants weigh
least, and these are asked about again, next of all. A virtual register weighs
its width, times one more for each dead end of its own: so what was hard to
place stays, and the same two do not push each other out for ever. This is the
move of tabu search on partial colourings (Blöchliger and Zufferey, "A graph
coloring heuristic using partial solutions and a reactive tabu scheme", 2008),
with weights for a tabu list.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from verilocc_bench.allocators.register_state import RegisterState

__all__ = ["Search"]


class Search:
    """The state of the registers, and which is next. `steps` counts the dead ends so far."""

    def __init__(self, state: RegisterState, order: Sequence[int]) -> None:
        self.state = state
        self.steps = 0
        self._places = {register: place for place, register in enumerate(order)}
        self._widths = [c.width for c in state.problem.function.virtual_registers]
        self._waiting = list(reversed(order))
        self._dead_ends: Counter[int] = Counter()

    @property
    def register(self) -> int | None:
        """The virtual register to be placed next; None where all are."""
        return self._waiting[-1] if self._waiting else None

    @property
    def decided(self) -> int:
        """How many are decided at present."""
        return len(self._places) - len(self._waiting)

    def choices(self) -> dict[int, str]:
        """The bases, with names, that may be taken for it."""
        return self.state.legal(self._waiting[-1])

    def take(self, base: int | None) -> None:
        """Decides for a base, legal or not; None leaves the virtual register without any."""
        register = self._waiting.pop()
        if base is not None:
            self.state.place(register, base)

    def eject(self) -> bool:
        """Makes room for the next virtual register, and places it; whether there is any to make."""
        register = self._waiting[-1]
        blockers = self.state.blockers(register)
        if not blockers:
            return False
        self.steps += 1
        self._dead_ends[register] += 1
        base = min(blockers, key=lambda base: (self._weight(blockers[base]), base))
        for other in blockers[base]:
            self.state.evict(other)
        self.take(base)
        self._waiting += sorted(blockers[base], key=self._places.__getitem__, reverse=True)
        return True

    def _weight(self, registers: set[int]) -> int:
        return sum(self._widths[r] * (1 + self._dead_ends[r]) for r in registers)
