"""Reads NVIDIA's own life ranges from `nvdisasm -c -lrm narrow`.

Each instruction has a row with one character for each register in up to four
panes: `^` definition, `v` use, `x` both, `:` in use, blank not in use.

    /*0070*/  IMAD.WIDE R6, R8, R9, c[0x0][0x168] ;  // |  8 :: :: ^^vv |        | 2 ::  |

The header of a function gives the fixed columns of its panes. The number before
the marks counts the registers in use. A pane is absent if the function uses no
register of that file. Trailing NOPs have no row.

Source: CUDA Binary Utilities, "nvdisasm", option `--life-range-mode`, and the
legend that nvdisasm prints below each function. Cost: linear in the text; a
pane becomes bit masks by translation into a binary number.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

from verilocc_bench.errors import InputError

FILES = ("R", "P", "UR", "UP")
"""The register files in the order of the panes."""

FileMasks = tuple[int, int, int, int]
"""The registers of each of `FILES`: bit k is register k."""

_FILE_OF_PANE = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
_SECTION = re.compile(r'\s*\.section\s+\.text\.([^,]+),"ax')
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-fA-F]{4,})\*/\s")
_ENCODING = re.compile(r"\s*/\* 0x")
_RULE = re.compile(r"// (\+-[-+]*\+)\s*$")


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one pane in one row: bit k is register k.

    `live` has every register with a mark, including those defined or used.
    """

    defined: int
    used: int
    live: int


_NO_MARKS = Marks(0, 0, 0)


@dataclass(frozen=True, slots=True)
class LifeRangeRow:
    """The row of the instruction at `address`; `marks` in the order of `FILES`.

    `line` is its 1-based line in the life ranges.
    """

    address: int
    line: int
    marks: tuple[Marks, Marks, Marks, Marks]


@dataclass(frozen=True, slots=True)
class LifeRanges:
    """The rows of one function (one section) in order of address."""

    name: str
    rows: tuple[LifeRangeRow, ...]


def parse_life_ranges(text: str, source: str = "<life ranges>") -> dict[str, LifeRanges]:
    """The life ranges of each function in the output of `nvdisasm -c -lrm narrow`.

    A function is a section `.text.NAME`. A device function that a kernel calls is in
    the kernel's section, and part of its rows. Raises InputError for text of
    another form.
    """
    try:
        functions = _LifeRangeReader(text.splitlines()).functions()
    except InputError as error:
        raise error.located(source) from None
    if not functions:
        raise InputError("no life ranges; expected `nvdisasm -c -lrm narrow`", source=source)
    return functions


class _Binary(dict[int, str]):
    """A translation of marks into binary digits; other characters become no digit."""

    def __init__(self, ones: str) -> None:
        super().__init__((ord(mark), "1" if mark in ones else "0") for mark in " :^vx")

    def __missing__(self, key: int) -> str:
        return "?"


_DEFINED, _USED, _LIVE = _Binary("^x"), _Binary("vx"), _Binary(":^vx")


@dataclass(frozen=True, slots=True)
class _Pane:
    """A pane at the columns `start` to `end` of a line; its right bar is at `end`.

    Register 0 is at `first`. Strings repeat, so `seen` keeps their marks.
    """

    file: str
    start: int
    first: int
    columns: int
    end: int
    seen: dict[str, Marks] = field(default_factory=dict, compare=False)

    def marks(self, line: str) -> Marks:
        segment = line[self.start : self.end + 1]
        known = self.seen.get(segment)
        if known is None:
            known = self.seen[segment] = self._parse(segment)
        return known

    def _parse(self, segment: str) -> Marks:
        """The marks of a segment: the count of registers, their marks, and the right bar."""
        if len(segment) != self.end + 1 - self.start or segment[-1] != "|":
            raise InputError(f"expected the right bar of pane {self.file} at column {self.end + 1}")
        first = self.first - self.start
        last = first + self.columns
        if segment[last:-1].strip():
            raise InputError(f"pane {self.file}: expected blanks right of {self.columns} registers")
        # A binary number has the highest register first.
        cells = segment[last - 1 : first - 1 : -1]
        try:
            live = int(cells.translate(_LIVE), 2)
        except ValueError:
            raise InputError(f"pane {self.file}: expected the marks `^`, `v`, `x`, `:`") from None
        printed = segment[:first].strip()
        count = printed or "0"
        if not count.isdecimal() or live.bit_count() != int(count):
            raise InputError(
                f"pane {self.file}: expected {printed or 'no'} marks, found {live.bit_count()}"
            )
        return Marks(int(cells.translate(_DEFINED), 2), int(cells.translate(_USED), 2), live)


class _LifeRangeReader:
    """A pass over the lines, with the open section and its panes, if there is one."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._next = 0
        self._name: str | None = None
        self._found: dict[str, LifeRanges] = {}

    def functions(self) -> dict[str, LifeRanges]:
        while self._next < len(self._lines):
            line = self._lines[self._next]
            self._next += 1
            if section := _SECTION.match(line):
                self._name = section[1]
            elif rule := _RULE.search(line):
                if self._name is None:
                    raise self._error("expected a .section .text before the panes")
                if self._name in self._found:
                    raise self._error(f"a second set of panes for the section of {self._name!r}")
                panes = self._header(rule.start())
                rows = self._rows(rule.start(), panes)
                self._found[self._name] = LifeRanges(self._name, tuple(rows))
                self._name = None
            elif _INSTRUCTION.match(line):
                raise self._error("an instruction before the header of its panes")
        return self._found

    def _error(self, message: str) -> InputError:
        return InputError(message, line=self._next)

    def _header(self, column: int) -> list[_Pane]:
        """The panes between the last rule and the next one."""
        rule = self._lines[self._next - 1].rstrip()
        bars = [at for at in range(column, len(rule)) if rule[at] == "+"]
        header: list[str] = []
        for line in self._lines[self._next :]:
            self._next += 1
            if line.rstrip()[column:] == rule[column:]:
                break
            if any(line[bar : bar + 1] != "|" for bar in bars):
                raise self._error("expected the header of the panes")
            header.append(line)
        else:
            raise self._error("expected a rule below the header of the panes")
        if len(header) < 2:
            raise self._error("expected names and registers in the header of the panes")
        panes = [
            self._pane([line[left + 1 : right] for line in header], left + 1)
            for left, right in pairwise(bars)
        ]
        if len({pane.file for pane in panes}) != len(panes):
            raise self._error("expected each pane once")
        return panes

    def _pane(self, header: list[str], start: int) -> _Pane:
        """The pane of a header that is cut to its columns.

        The first line has the name. The other lines have the digits of the register
        numbers, one above the other; the last begins with `#`.
        """
        file = _FILE_OF_PANE.get(header[0].strip())
        if file is None:
            raise self._error(f"pane {header[0].strip()!r}: expected {', '.join(_FILE_OF_PANE)}")
        units = header[-1]
        first = units.find("#") + 2
        columns = len(units.rstrip()) - first
        numbers = [
            "".join(line[at] for line in header[1:]).strip() for at in range(first, first + columns)
        ]
        if first == 1 or not numbers or not all(map(str.isdecimal, numbers)):
            raise self._error(f"pane {file}: expected `#` and the numbers of its registers")
        if [int(number) for number in numbers] != list(range(columns)):
            raise self._error(f"pane {file}: expected registers from 0 on, without a gap")
        return _Pane(file, start, start + first, columns, start + len(units))

    def _rows(self, column: int, panes: list[_Pane]) -> list[LifeRangeRow]:
        rows: list[LifeRangeRow] = []
        pane_of = {pane.file: pane for pane in panes}
        places = [pane_of.get(file) for file in FILES]
        line = ""
        for line in self._lines[self._next :]:
            self._next += 1
            if instruction := _INSTRUCTION.match(line):
                if not line.startswith("// |", column):
                    raise self._error(f"expected the panes at column {column + 1}")
                rows.append(self._row(int(instruction[1], 16), line, places))
                if len(rows) > 1 and rows[-2].address >= rows[-1].address:
                    raise self._error("expected rows in order of address")
            elif line.startswith("// +-", column) or _SECTION.match(line):
                break
            elif _ENCODING.match(line):
                # With encodings, the marks stand beside the second line of an instruction.
                raise self._error("expected no encodings; leave out nvdisasm's option -hex")
        if not line.startswith("// +-", column):
            raise self._error(f"expected the rule that closes the panes of {self._name!r}")
        return rows

    def _row(self, address: int, line: str, places: list[_Pane | None]) -> LifeRangeRow:
        try:
            general, predicate, uniform, uniform_predicate = (
                _NO_MARKS if pane is None else pane.marks(line) for pane in places
            )
        except InputError as error:
            raise self._error(error.message) from None
        return LifeRangeRow(address, self._next, (general, predicate, uniform, uniform_predicate))
