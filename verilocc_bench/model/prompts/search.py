"""Decisions in a fixed order, taken back where they lead to a dead end.

Conflict-directed backjumping (Prosser, "Hybrid Algorithms for the Constraint
Satisfaction Problem", 1993): where a virtual register fits nowhere, the latest
decision that has to do with it is made again, all later ones are forgotten.
Choices that would leave that virtual register without a place are not offered
again. Nothing is excluded that could be part of an assignment with the earlier
decisions as they are: a search that is exhausted proves that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from verilocc_bench.allocators.register_state import RegisterState

__all__ = ["Search"]


@dataclass(slots=True)
class _Decision:
    """Bases that are known to lead nowhere, and the earlier registers that make it so."""

    register: int
    excluded: set[int] = field(default_factory=set)
    because: set[int] = field(default_factory=set)


class Search:
    """The state of the registers, and how it was come to. `steps` counts what was taken back."""

    def __init__(self, state: RegisterState, order: Sequence[int]) -> None:
        self.state, self.order = state, order
        self.steps = 0
        self._decisions: list[_Decision] = []

    @property
    def register(self) -> int | None:
        """The virtual register to be placed next; None where all are."""
        depth = len(self.state.placed)
        return self.order[depth] if depth < len(self.order) else None

    def choices(self) -> dict[int, str]:
        """The bases, with names, that may be taken for it."""
        decision = self._current()
        legal = self.state.legal(decision.register)
        return {base: name for base, name in legal.items() if base not in decision.excluded}

    def take(self, base: int) -> None:
        """Decides for one of the choices."""
        self.state.place(self._current().register, base)

    def retreat(self) -> bool:
        """Takes back decisions until another choice may help; whether there is one to take back."""
        dead = self._current()
        blame = dead.because | set(self.state.conflicts(dead.register))
        if not blame:
            return False
        self.steps += 1
        self._decisions.pop()
        taken = dict(self.state.placed)
        while self.state.undo() not in blame:
            self._decisions.pop()
        culprit = self._current()
        culprit.excluded.add(taken[culprit.register])
        culprit.because |= blame - {culprit.register}
        culprit.excluded.update(self._hopeless(culprit, dead.register))
        return True

    def _current(self) -> _Decision:
        depth = len(self.state.placed)
        if depth == len(self._decisions):
            self._decisions.append(_Decision(self.order[depth]))
        return self._decisions[depth]

    def _hopeless(self, culprit: _Decision, stuck: int) -> list[int]:
        """The bases of a decision after which another register fits nowhere."""
        found: list[int] = []
        for base in self.state.legal(culprit.register).keys() - culprit.excluded:
            self.state.place(culprit.register, base)
            if not self.state.legal(stuck):
                found.append(base)
            self.state.undo()
        return found
