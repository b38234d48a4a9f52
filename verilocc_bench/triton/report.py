"""What the plug-in did, kernel by kernel."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from tabulate import tabulate

from verilocc_bench.api.code_figures import CodeFigures


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel that Triton compiled.

    `replaced` is true if its code has our registers; else `reason` says why it is the
    compiler's own. `own` and `ours` are the figures of the two codes, as far as both
    were made. `compiler_seconds` is the time of Triton's own stage, `seconds` the time
    that the plug-in took in addition. `cached` is true if Triton's cache had the kernel,
    and nothing was compiled; the times are older, too.
    """

    kernel: str
    arch: str
    hash: str
    replaced: bool
    reason: str | None
    own: CodeFigures | None
    ours: CodeFigures | None
    compiler_seconds: float
    seconds: float
    cached: bool = False

    def to_json(self) -> dict[str, Any]:
        """The report as JSON."""
        return asdict(self)

    @classmethod
    def from_json(cls, document: Mapping[str, Any], *, cached: bool) -> KernelReport:
        """The report in a kernel's metadata. Raises TypeError or KeyError for another form."""
        values = {each.name: document[each.name] for each in fields(cls)}
        for side in ("own", "ours"):
            if values[side] is not None:
                values[side] = CodeFigures(**values[side])
        return cls(**values | {"cached": cached})


_COLUMNS = ("registers", "waves", "waits", "bank_conflicts", "instructions")


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """All kernels, in the order in which their compiles ended. Prints as a table."""

    kernels: tuple[KernelReport, ...]
    objective: str

    @property
    def replaced(self) -> tuple[KernelReport, ...]:
        """The kernels that have our registers."""
        return tuple(each for each in self.kernels if each.replaced)

    def to_json(self) -> list[dict[str, Any]]:
        """The reports as JSON."""
        return [each.to_json() for each in self.kernels]

    def _table(self, form: str) -> str:
        head = ("kernel", "arch", *(name.replace("_", " ") for name in _COLUMNS))
        rows = [
            (
                f"{each.kernel} {each.hash[:8]}",
                each.arch,
                *(_both(each, name) for name in _COLUMNS),
                f"{each.compiler_seconds:.2f} + {each.seconds:.2f}",
                "cached" if each.cached and each.replaced else each.reason or "ours",
            )
            for each in self.kernels
        ]
        return tabulate(rows, (*head, "seconds", "code"), tablefmt=form, disable_numparse=True)

    def __repr__(self) -> str:
        if not self.kernels:
            return "no kernel was compiled"
        return f"{self._table('simple')}\nours where it is better by the objective {self.objective}"

    def _repr_html_(self) -> str:
        return self._table("html")


def _both(kernel: KernelReport, name: str) -> str:
    """A figure of the compiler's own code, and of ours."""
    shown = []
    for side in (kernel.own, kernel.ours):
        value = None if side is None else getattr(side, name)
        shown.append("–" if value is None else str(value))
    return " → ".join(shown) if set(shown) != {"–"} else "–"
