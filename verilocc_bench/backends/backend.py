"""The protocol of back ends: reads problems from compiled code, and writes answers into it.

A back end is a package with the same modules in each: `read` (files to
functions), `normalize` (functions to the IR), `kernel` (a file or a raw row to a
Kernel, by these two), `write_back` (an assignment into the code), `lower` (an
answer to a file of code, by `write_back`), `compare` (two answers by their code),
and `tools` (the programs that it runs). `__init__` joins these modules to a Backend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.code_cost import CodeCost
from verilocc_bench.backends.kernel import (
    CodeComparison,
    ComparedAllocation,
    Kernel,
    LoweredCode,
    ReadOptions,
)
from verilocc_bench.edits import Answer, NamedAssignment

Code = TypeVar("Code")


class Backend(Protocol[Code]):
    """The code of one vendor.

    Every method raises InputError, with the place, for input that it cannot use,
    and MissingExtraError if a tool is not installed.
    """

    @property
    def vendor(self) -> str:
        """The `vendor` of its targets."""
        ...

    @property
    def raw_format(self) -> str:
        """The value of the column `format` in raw rows of its targets."""
        ...

    @property
    def raw_hash(self) -> str:
        """The key in a row's provenance that holds the SHA-256 of its raw code."""
        ...

    @property
    def own_allocation(self) -> str | None:
        """The name of the compiler's own allocation in `compare`; None if it is not available."""
        ...

    @property
    def inserts_waits(self) -> bool:
        """True if waits are inserted after allocation, so that every valid answer runs."""
        ...

    def holds(self, data: bytes, /) -> bool:
        """True if the first bytes show that a file is code of this back end."""
        ...

    def read(self, data: bytes, source: Path, options: ReadOptions) -> Kernel[Code]:
        """The kernel that the options name, or the only one of the file."""
        ...

    def read_all(
        self, data: bytes, source: Path, options: ReadOptions
    ) -> Iterator[tuple[str, Kernel[Code] | str]]:
        """Each kernel of the file by its name, or the reason why it cannot be read."""
        ...

    def read_raw(self, content: str, problem: AllocationProblem, source: str) -> Kernel[Code]:
        """The kernel in the column `content` of a raw row.

        Raises InputError if it is not the row's own `problem`.
        """
        ...

    def raw_bytes(self, content: str) -> bytes:
        """The bytes in the column `content` of a raw row. Raises ValueError for another form."""
        ...

    def remarks(self, kernel: Kernel[Code], /) -> tuple[str, ...]:
        """What a user has to know of the kernel's code, one line each."""
        ...

    def machine_problem(self, kernel: Kernel[Code], /) -> AllocationProblem:
        """The kernel's problem with live ranges as the machine sees them."""
        ...

    def code_costs(self, kernel: Kernel[Code], /) -> Callable[[NamedAssignment], CodeCost]:
        """What the machine code of valid answers to a kernel costs.

        Only for targets whose code the compiler still changes after allocation.
        """
        ...

    def check_output(self, output: Path) -> None:
        """Raises InputError for the name of a file that `lower` cannot write, before any work."""
        ...

    def check_answer(self, answer: Answer, source: str | Path) -> None:
        """Raises InputError for an answer of a kind that cannot be lowered on these targets."""
        ...

    def lower(self, kernel: Kernel[Code], answer: Answer, output: Path, /) -> LoweredCode:
        """The kernel's code with a verified answer in it, in the form that `output` asks for."""
        ...

    def compiler_answer(self, kernel: Kernel[Code]) -> tuple[NamedAssignment, str]:
        """The compiler's own assignment of a kernel, and its source.

        Raises InputError with the reason if it is unknown.
        """
        ...

    def check_comparison(self) -> Mapping[str, str]:
        """The versions of the tools for `compare`, by their names.

        Raises InputError if one is missing, before any work.
        """
        ...

    def compare(
        self, kernel: Kernel[Code], sides: Sequence[ComparedAllocation], *, with_files: bool
    ) -> CodeComparison:
        """The machine code of two verified answers, side by side; `files` only on demand."""
        ...
