"""The records that back ends and their users exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer, NamedAssignment

__all__ = ["CodeComparison", "ComparedAllocation", "Kernel", "LoweredCode", "ReadOptions"]

Code = TypeVar("Code")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the user says about a file of compiled code.

    `arch` is the target's name, for code that does not name it. `function`
    chooses one of several. `max_threads` replaces the size of the work-group
    or block in the code, from which the register budget follows.
    """

    arch: str | None = None
    function: str | None = None
    max_threads: int | None = None


@dataclass(frozen=True, slots=True)
class Kernel(Generic[Code]):
    """One kernel of compiled code, and the allocation problem that it poses.

    `name` is the kernel's own. `original_names[n]` is what the code calls
    virtual register n. `label` is the compiler's own answer, None where the
    code was taken before allocation. `source` names the file or row in
    errors. `code` is the back end's own form, for it alone.
    """

    name: str
    problem: AllocationProblem
    original_names: tuple[str, ...]
    label: NamedAssignment | None
    source: str
    code: Code


@dataclass(frozen=True, slots=True)
class LoweredCode:
    """Machine code with an answer in it: the file, and what to say of it.

    `document` is for programs (JSON), `lines` for people.
    """

    data: str | bytes
    document: Mapping[str, Any]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ComparedAllocation:
    """One side of a comparison. Without an answer it is the compiler's own allocation."""

    name: str
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class CodeComparison:
    """The document, and the files (by name in the folder) that it takes to repeat it."""

    document: dict[str, Any]
    files: Mapping[str, str | bytes]
