"""The measurements of a kernel, and their form in files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Measured:
    """One allocator's answer to one kernel.

    `registers` are of the vector files. `conflicts` are weighted by loop
    depth, `copies` counts copies that became identities. Without a valid
    answer all of these are None, and `failure` says why.
    `seconds` of processor time are None for the compilers, whose answers are in
    the dataset. `optimal`: the allocator itself has proved its answer optimal.
    """

    registers: int | None
    occupancy: int | None
    conflicts: int | None
    copies: int | None
    seconds: float | None
    failure: str | None = None
    optimal: bool = False

    @property
    def valid(self) -> bool:
        """True if there is a valid answer."""
        return self.failure is None


@dataclass(frozen=True, slots=True)
class TightBudget:
    """A kernel asked again at a budget of `registers`.

    `seconds` has the time of each allocator, `solved` the names of those with a
    valid answer.
    """

    registers: int
    solved: tuple[str, ...]
    seconds: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Measurement:
    """A kernel with all answers to it.

    `pressure` and `bound` are lower bounds on vector registers; `bound_kind`
    names the proof of the second. `answers` are by allocator: the compiler's
    under `compiler`, and those of `best` under `best`, `best bank-conflicts`
    and `best copies`, by its objective. `budgets` are by the name of the
    choice; the budget of one more wave is missing if it is proved impossible.
    `lost` is the reason if there is no answer at all.
    """

    id: str
    split: str
    arch: str
    family: str
    kernel: str
    label_source: str
    n_instructions: int
    n_virtual_registers: int
    pressure: int = 0
    bound: int = 0
    bound_kind: str = ""
    prepare_seconds: float = 0.0
    answers: Mapping[str, Measured] = field(default_factory=dict)
    budgets: Mapping[str, TightBudget] = field(default_factory=dict)
    lost: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As a JSON object."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Measurement:
        """The measurement that to_json has written. Raises TypeError or KeyError for other data."""
        answers = {name: Measured(**each) for name, each in dict(document["answers"]).items()}
        budgets = {
            name: TightBudget(each["registers"], tuple(each["solved"]), each["seconds"])
            for name, each in dict(document["budgets"]).items()
        }
        return cls(**{**document, "answers": answers, "budgets": budgets})


Measurements = Sequence[Measurement]
