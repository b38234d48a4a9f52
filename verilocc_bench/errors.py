"""Every error that this package raises on purpose.

VerilocError
├── InputError            bad input or usage: one clear line, exit status 2
│   └── MissingExtraError an optional dependency is not installed
├── AllocationFailed      an allocator has no answer for a function
├── ContradictionError    a proof and a valid answer contradict each other
├── InfrastructureError   what an allocator runs on failed, not the allocator
└── RejectedKernel        a kernel cannot become a dataset row; says why
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any


class VerilocError(Exception):
    """Base of all errors that this package raises on purpose."""


class InputError(VerilocError):
    """The user's input cannot be used; the message is one line for people.

    `source` names the file (or `<stdin>`, or a dataset), `line` is 1-based,
    `column` is 1-based and only given together with a line.
    """

    def __init__(
        self,
        message: str,
        *,
        source: str | Path | None = None,
        line: int | None = None,
        column: int | None = None,
    ) -> None:
        self.message = message
        self.source = None if source is None else str(source)
        self.line = line
        self.column = column
        super().__init__(message)

    def __str__(self) -> str:
        place = self.source or ""
        if self.line is not None:
            place = f"{place or '<input>'}:{self.line}"
            if self.column is not None:
                place += f":{self.column}"
        text = " ".join(self.message.split())
        return f"{place}: {text}" if place else text

    def located(self, source: str | Path) -> InputError:
        """The same error with the file filled in where it is not known yet."""
        place = self.source or source
        return InputError(self.message, source=place, line=self.line, column=self.column)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments are lost by the default reduction, and errors
        # travel between worker processes.
        return (_rebuild_input_error, (self.message, self.source, self.line, self.column))


def _rebuild_input_error(
    message: str, source: str | None, line: int | None, column: int | None
) -> InputError:
    return InputError(message, source=source, line=line, column=column)


class MissingExtraError(InputError):
    """An optional dependency is needed that is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package {package!r}; "
            f"install it with: pip install 'verilocc-bench[{extra}]', "
            f"or in a clone: pip install -e '.[{extra}]'"
        )
        self.package, self.extra, self.purpose = package, extra, purpose

    def __reduce__(self) -> tuple[object, ...]:
        return (MissingExtraError, (self.package, self.extra, self.purpose))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'best'?` if a known name is close to a misspelt one, else nothing."""
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


class AllocationFailed(VerilocError):
    """An allocator has no answer; `kind` is what the failure is counted as.

    `details` are what a Response has of it, such as tokens.
    """

    def __init__(self, message: str, kind: str = "no_answer") -> None:
        super().__init__(message, kind)
        self.message, self.kind = message, kind
        self.details: Mapping[str, Any] = {}

    def __str__(self) -> str:
        return self.message


class ContradictionError(VerilocError):
    """A proof and a valid answer contradict each other, so one of them is wrong.

    That is an error of this program, or of data that it took for checked. It
    is not a failure of an allocator: nothing catches it but the command line,
    which ends with a status of its own.
    """


class InfrastructureError(VerilocError):
    """A server, a network or a machine failed: no fault of the allocator that stands on it."""


class RejectedKernel(VerilocError):
    """A compiled kernel that cannot become a row; `kind` groups the reasons."""

    def __init__(self, kind: str, reason: str) -> None:
        self.kind = kind
        self.reason = reason
        super().__init__(kind, reason)

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"
