"""The records that back ends and their users exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import Answer, NamedAssignment

Code = TypeVar("Code")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The user's options for a file of compiled code.

    `arch` is the name of the target, for code that does not name it. `function`
    chooses one of several. `max_threads` replaces the size of the work-group or
    block in the code, which decides the register budget.
    """

    arch: str | None = None
    function: str | None = None
    max_threads: int | None = None


@dataclass(frozen=True, slots=True, repr=False)
class Kernel(Generic[Code]):
    """One kernel of compiled code, and its allocation problem.

    `name` is the kernel's name in the code. `original_names[n]` is the code's name
    of virtual register n. `label` is the compiler's own answer; None for code from
    before allocation. `source` names the file or row in errors. `code` is the back
    end's own form of the kernel, for that back end alone.
    """

    name: str
    problem: AllocationProblem
    original_names: tuple[str, ...]
    label: NamedAssignment | None
    source: str
    code: Code

    def __repr__(self) -> str:
        return f"<Kernel {self.name!r} of {self.source}>"


@dataclass(frozen=True, slots=True, repr=False)
class LoweredCode:
    """Machine code with an answer in it: the file, and its description.

    `document` is the description as JSON, `lines` as text.
    """

    data: str | bytes
    document: Mapping[str, Any]
    lines: tuple[str, ...]

    def __repr__(self) -> str:
        unit = "bytes" if isinstance(self.data, bytes) else "characters"
        return f"<LoweredCode of {len(self.data):,} {unit}: {'; '.join(self.lines)}>"


@dataclass(frozen=True, slots=True)
class ComparedAllocation:
    """One side of a comparison; `answer` is None for the compiler's own allocation."""

    name: str
    answer: Answer | None


@dataclass(frozen=True, slots=True)
class CodeComparison:
    """The comparison as JSON, and by name the files that are needed to repeat it."""

    document: dict[str, Any]
    files: Mapping[str, str | bytes]
