"""Register files, register classes and the names of physical registers.

A *register unit* is one 32-bit physical register of a file (one bit for a
predicate file). A *register class* lists the bases that a virtual register of
`width` units may take.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RegisterFile:
    """A register file and the number of its units that a function may use.

    `unit_names` is empty for a numbered file, whose units are called `{name}{index}`.
    A file such as VCC names its units; `name` is then the name of all of them as one
    tuple.
    """

    name: str
    count: int
    unit_names: tuple[str, ...] = ()

    def unit_name(self, index: int) -> str:
        """The assembler's name of unit `index`, which may be beyond `count`."""
        return self.unit_names[index] if self.unit_names else f"{self.name}{index}"


@dataclass(frozen=True, slots=True)
class BaseRange:
    """The bases `first`, `first + step`, …, up to `last` of one file."""

    file: str
    first: int
    last: int
    step: int

    def __contains__(self, base: int) -> bool:
        return self.first <= base <= self.last and (base - self.first) % self.step == 0

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.first, self.last + 1, self.step))


@dataclass(frozen=True, slots=True)
class RegisterClass:
    """The base registers that a virtual register of `width` units may take.

    `ranges` has one range for each file, or several if the legal bases of a file do not
    form one progression. Budgets are already applied.
    """

    name: str
    width: int
    ranges: tuple[BaseRange, ...]

    def __hash__(self) -> int:
        # Classes of one function differ in these: the ranges would only cost time.
        return hash((self.name, self.width))

    @property
    def files(self) -> tuple[str, ...]:
        """The distinct names of the files that the class draws on, in order."""
        return tuple(dict.fromkeys(r.file for r in self.ranges))

    def allows(self, file: str, base: int) -> bool:
        """True if a virtual register of this class may start at unit `base` of `file`."""
        return any(r.file == file and base in r for r in self.ranges)


@dataclass(frozen=True, slots=True, order=True)
class PhysicalRegister:
    """A base register: unit `index` of `file`. The width is the virtual register's."""

    file: str
    index: int


def format_units(file: RegisterFile, first: int, count: int) -> str:
    """The assembler's name of `count` units from `first`: `v4`, `s[2:3]`, `vcc`."""
    if file.unit_names:
        if first == 0 and count == len(file.unit_names):
            return file.name
        if count == 1:
            return file.unit_names[first]
    elif count == 1:
        return f"{file.name}{first}"
    return f"{file.name}[{first}:{first + count - 1}]"
