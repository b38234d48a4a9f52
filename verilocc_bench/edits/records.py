"""Edits as written in an answer, before they are read against a function.

docs/split-track.md has the form and its meaning.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

NamedAssignment = Mapping[str, str]
"""Names of virtual registers (`%12`) to names of base registers (`v4`)."""


class EditKind(StrEnum):
    """The kinds of insertions."""

    MOVE = "move"
    SPILL = "spill"
    RELOAD = "reload"
    REMATERIALIZE = "rematerialize"


@dataclass(frozen=True, slots=True)
class RegisterSpan:
    """Lanes of a virtual register, as `%900` (all of them), `%900.1` or `%900.0-1`."""

    register: int
    first: int | None = None
    last: int | None = None

    def __str__(self) -> str:
        text = f"%{self.register}"
        if self.first is None:
            return text
        return f"{text}.{self.first}" + ("" if self.last == self.first else f"-{self.last}")


@dataclass(frozen=True, slots=True)
class SlotSpan:
    """Spill slots, each of one unit: `slot3`, or `slot0-3` for a tuple."""

    first: int
    count: int

    def __str__(self) -> str:
        return f"slot{self.first}" + (f"-{self.first + self.count - 1}" if self.count > 1 else "")


@dataclass(frozen=True, slots=True)
class At:
    """The place before instruction `index` of a block, or at its end."""

    block: int
    index: int


@dataclass(frozen=True, slots=True)
class OnEdge:
    """The edge from one block to another."""

    source: int
    target: int


@dataclass(frozen=True, slots=True)
class Transfer:
    """Moves lanes of equal size. A source `At` is the constant that its instruction defines."""

    destination: RegisterSpan | SlotSpan
    source: RegisterSpan | SlotSpan | At


@dataclass(frozen=True, slots=True)
class Insertion:
    """Simultaneous transfers of one kind at one place. Only a move has more than one."""

    where: At | OnEdge
    kind: EditKind
    transfers: tuple[Transfer, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """An operand that reads or writes other lanes than its own.

    `operand` counts the instruction's definitions, then its uses; -1 is its guard.
    """

    block: int
    index: int
    operand: int
    span: RegisterSpan


@dataclass(frozen=True, slots=True)
class Edits:
    """All edits of an answer; `new` has the classes of new virtual registers, as written."""

    new: Mapping[int, str]
    insertions: tuple[Insertion, ...] = ()
    replacements: tuple[Replacement, ...] = ()

    @property
    def empty(self) -> bool:
        """True without edits."""
        return not (self.new or self.insertions or self.replacements)


NO_EDITS = Edits({})
"""The edits of an answer on the assign track."""


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """An answer: a register for each virtual register, and the edits of the function.

    `assignment` names registers for the function's virtual registers and for
    the ones that the edits make. Answers of the assign track have no edits.
    """

    assignment: NamedAssignment
    edits: Edits = NO_EDITS

    @classmethod
    def of(cls, answer: AnswerLike) -> Answer:
        """The answer itself; a mapping becomes an answer without edits."""
        return answer if isinstance(answer, Answer) else cls(answer)

    def __repr__(self) -> str:
        first = ", ".join(
            f"{name}={register}" for name, register in list(self.assignment.items())[:3]
        )
        more = ", …" * (len(self.assignment) > 3)
        edits = f", {len(self.edits.insertions)} insertions" if self.has_edits else ""
        return f"<Answer for {len(self.assignment)} virtual registers: {first}{more}{edits}>"

    @property
    def has_edits(self) -> bool:
        """True if the answer changes the function."""
        return not self.edits.empty


AnswerLike = Answer | NamedAssignment
"""The input of judges: an answer, or the mapping of an answer without edits."""


def assignment_alone(answer: AnswerLike) -> NamedAssignment:
    """The assignment of an answer without edits. Raises ValueError for one with edits."""
    answer = Answer.of(answer)
    if answer.has_edits:
        raise ValueError("expected an answer without edits")
    return answer.assignment
