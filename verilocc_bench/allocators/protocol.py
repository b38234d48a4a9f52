"""What an allocator is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer, AnyAnswer
from verilocc_bench.ir import Assignment

__all__ = ["Allocator", "Answer", "AnyAnswer", "Assistance", "Request", "answer_from_assignment"]


class Assistance(StrEnum):
    """What an allocator is shown; results of different kinds are never in one table."""

    TEXT = "text"
    STATE = "state"
    CANDIDATES = "candidates"


@dataclass(frozen=True, slots=True)
class Request:
    """One question: a problem, and which sample of how many is wanted.

    `seed` is different for each sample. `label` is the compiler's own answer
    and `alternatives` holds those of others by source: they are there for the
    allocators that replay them alone, every other is asked without.
    """

    problem: AllocationProblem
    sample: int = 0
    seed: int = 0
    label: Answer | None = None
    alternatives: Mapping[str, Answer] | None = None


class Allocator(Protocol):
    """Answers requests; `name` is what results call it.

    `allocate` raises AllocationFailed where it has no answer; what it
    returns is judged, never trusted. A deterministic allocator gives every
    sample the same answer, and is asked once.
    """

    @property
    def name(self) -> str:
        """What results call the allocator."""
        ...

    @property
    def assistance(self) -> Assistance:
        """What it is shown."""
        ...

    @property
    def deterministic(self) -> bool:
        """Whether it gives every sample the same answer."""
        ...

    def allocate(self, request: Request) -> AnyAnswer:
        """An answer for the request's function."""
        ...


def answer_from_assignment(problem: AllocationProblem, assignment: Assignment) -> dict[str, str]:
    """An assignment in the names that answers use."""
    placements = problem.placements
    classes = problem.function.virtual_registers
    answer: dict[str, str] = {}
    for number, register in sorted(assignment.items()):
        unit = placements.unit(register)
        name = placements.legal[classes[number]].get(unit)
        answer[f"%{number}"] = name if name is not None else f"{register.file}{register.index}"
    return answer
