"""NVIDIA's own life ranges, read from `nvdisasm -c -lrm narrow`.

Each instruction has a row with one character for each register in up to four
panes: `^` definition, `v` use, `x` both, `:` in use, blank not in use.

    /*0070*/  IMAD.WIDE R6, R8, R9, c[0x0][0x168] ;  // |  8 :: :: ^^vv |        | 2 ::  |

The panes of a function stand at fixed columns, which its header gives; the
number before the marks counts the registers in use. A pane is absent where
the function uses no register of that file; trailing NOPs have no row.

Source: CUDA Binary Utilities, "nvdisasm", option `--life-range-mode`, and the
legend that nvdisasm prints below each function. Cost: linear in the text; a
pane becomes bit masks by translation into a binary number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import pairwise, zip_longest
from typing import assert_never

from verilocc_bench.errors import InputError
from verilocc_bench.parse.sass.records import RegisterReference, SassFunction, SassInstruction

__all__ = [
    "FILES",
    "Disagreement",
    "FileMasks",
    "LifeRangeRow",
    "LifeRanges",
    "LivenessAgreement",
    "Marks",
    "check_marks",
    "compare_liveness",
    "file_masks",
    "parse_life_ranges",
]

FILES = ("R", "P", "UR", "UP")
"""The register files in the order of the panes."""

FileMasks = tuple[int, int, int, int]
"""Registers of each of `FILES`: bit k stands for register k."""

_FILE_OF_PANE = {"GPR": "R", "PRED": "P", "UGPR": "UR", "UPRED": "UP"}
_SECTION = re.compile(r'\s*\.section\s+\.text\.([^,]+),"ax')
_INSTRUCTION = re.compile(r"\s*/\*([0-9a-fA-F]{4,})\*/\s")
_ENCODING = re.compile(r"\s*/\* 0x")
_RULE = re.compile(r"// (\+-[-+]*\+)\s*$")


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one pane in one row: bit k stands for register k.

    `live` has every register with a mark, those defined or used here included.
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

    A function is a section `.text.NAME`; a device function that a kernel calls
    stands in the kernel's section, and is part of its rows. Text that is not
    in that form raises InputError.
    """
    try:
        functions = _Reader(text.splitlines()).functions()
    except InputError as error:
        raise error.located(source) from None
    if not functions:
        raise InputError("no life ranges; expected `nvdisasm -c -lrm narrow`", source=source)
    return functions


class _Binary(dict[int, str]):
    """A translation of marks into binary digits; what is no mark becomes no digit."""

    def __init__(self, ones: str) -> None:
        super().__init__((ord(mark), "1" if mark in ones else "0") for mark in " :^vx")

    def __missing__(self, key: int) -> str:
        return "?"


_DEFINED, _USED, _LIVE = _Binary("^x"), _Binary("vx"), _Binary(":^vx")


@dataclass(frozen=True, slots=True)
class _Pane:
    """A pane at the columns `start` to `end` of a line, `end` at its right bar.

    Register 0 stands at `first`. Strings repeat, so their marks are kept in `seen`.
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
        """`segment` is the count of registers, their marks, and the right bar."""
        if len(segment) != self.end + 1 - self.start or segment[-1] != "|":
            raise InputError(f"expected the right bar of pane {self.file} at column {self.end + 1}")
        first = self.first - self.start
        last = first + self.columns
        if segment[last:-1].strip():
            raise InputError(f"pane {self.file}: expected blanks right of {self.columns} registers")
        # The highest register comes first in a binary number.
        cells = segment[last - 1 : first - 1 : -1]
        try:
            live = int(cells.translate(_LIVE), 2)
        except ValueError:
            raise InputError(f"pane {self.file}: expected the marks `^`, `v`, `x`, `:`") from None
        if live.bit_count() != _count(segment[:first]):
            raise InputError(
                f"pane {self.file}: expected {segment[:first].strip() or 'no'} marks, "
                f"found {live.bit_count()}"
            )
        return Marks(int(cells.translate(_DEFINED), 2), int(cells.translate(_USED), 2), live)


def _count(text: str) -> int:
    """The number before the marks, 0 where it is blank, -1 where it is none."""
    text = text.strip()
    if not text:
        return 0
    return int(text) if text.isdecimal() else -1


class _Reader:
    """A pass over the lines; one section is open at most, and its panes once seen."""

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
                self._function(rule.start())
            elif _INSTRUCTION.match(line):
                raise self._error("an instruction before the header of its panes")
        return self._found

    def _error(self, message: str) -> InputError:
        return InputError(message, line=self._next)

    def _function(self, column: int) -> None:
        """Read from the rule that opens a function's panes to the one that closes them."""
        if self._name is None:
            raise self._error("expected a .section .text before the panes")
        if self._name in self._found:
            raise self._error(f"a second set of panes for the section of {self._name!r}")
        panes = self._header(column)
        self._found[self._name] = LifeRanges(self._name, tuple(self._rows(column, panes)))
        self._name = None

    def _header(self, column: int) -> list[_Pane]:
        """The panes between the rule just read and the next one."""
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
        """The pane whose header, cut to its columns, is given.

        The name stands in the first line; the digits of a register's number
        stand above each other in the others, behind a `#` in the last.
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
                # There the marks stand beside an instruction's second line.
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


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first place where our definitions and uses are not those of the life ranges.

    `line` is that of the instruction in its disassembly, 0 where the function
    has no instruction at `address`. `ours` and `theirs` name the registers of `file`.
    """

    address: int
    line: int
    opcode: str
    file: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        place = f"{self.opcode} at 0x{self.address:04x} (line {self.line})"
        return f"{place}, file {self.file}: ours {self.ours}; NVIDIA's {self.theirs}"


class _Tolerance(Enum):
    """In what way the marks of a row may differ from our definitions and uses."""

    EXTRA = "the life ranges may define and use more"
    PREDICATE_BOTH = "a predicate operand that we use may be marked as used and defined"
    FIXED_UNMARKED = "fixed registers may have no mark"


@dataclass(frozen=True, slots=True)
class _Exception:
    """A difference that is understood, for an operation (the opcode up to its first dot)."""

    operation: str
    files: tuple[str, ...]
    tolerance: _Tolerance
    reason: str


_EXCEPTIONS = (
    _Exception(
        "CALL",
        FILES,
        _Tolerance.EXTRA,
        "the row sums up an assumed callee, even where the call is a jump that never returns",
    ),
    _Exception(
        "LDGSTS",
        ("P",),
        _Tolerance.PREDICATE_BOTH,
        "the predicate behind the addresses is marked `x`, but only read (it decides whether to "
        "copy or to store zeros): later code uses the same value",
    ),
    _Exception(
        "R2P",
        ("P",),
        _Tolerance.FIXED_UNMARKED,
        "the predicates of the mask are never marked",
    ),
    _Exception(
        "P2R",
        ("P",),
        _Tolerance.FIXED_UNMARKED,
        "the predicates of the mask are never marked",
    ),
)
"""Every difference that the gate lets pass. (B registers need none: neither side has them.)"""

_TOLERANCES = {
    (each.operation, file): each.tolerance for each in _EXCEPTIONS for file in each.files
}


def check_marks(function: SassFunction, ranges: LifeRanges) -> Disagreement | None:
    """The gate: are our definitions and uses those of NVIDIA's life ranges?

    Each instruction's definitions and uses, its guard among the uses, must
    equal the marks of its row, in every file; `_EXCEPTIONS` has what may
    differ. An instruction that never executes has the marks it would have
    under another guard. Trailing NOPs have no row. None: all agree.
    """
    instructions = function.instructions
    for instruction, row in zip_longest(instructions, ranges.rows):
        if row is None:
            # Trailing NOPs only: a row missing before would shift all that follow.
            if instruction.opcode != "NOP":
                return _misplaced(instruction, "an instruction", "no row")
        elif instruction is None:
            return Disagreement(row.address, 0, "", "", "no instruction", "a row")
        elif instruction.address != row.address:
            return _misplaced(instruction, "an instruction", f"a row at 0x{row.address:04x}")
        elif found := _compare(instruction, row):
            return found
    return None


def _misplaced(instruction: SassInstruction, ours: str, theirs: str) -> Disagreement:
    return Disagreement(instruction.address, instruction.line, instruction.opcode, "", ours, theirs)


def _compare(instruction: SassInstruction, row: LifeRangeRow) -> Disagreement | None:
    defined = file_masks(instruction.definitions)
    used = file_masks(instruction.uses)
    guard = instruction.guard
    for at, file in enumerate(FILES):
        marks = row.marks[at]
        uses = used[at] | (1 << guard.index if guard and guard.file == file else 0)
        if (defined[at], uses) == (marks.defined, marks.used):
            continue
        tolerance = _TOLERANCES.get((instruction.opcode.partition(".")[0], file))
        if tolerance and _tolerated(tolerance, instruction, at, (defined[at], uses), marks):
            continue
        return Disagreement(
            instruction.address,
            instruction.line,
            instruction.opcode,
            file,
            _described(file, defined[at], uses),
            _described(file, marks.defined, marks.used),
        )
    return None


def _tolerated(
    tolerance: _Tolerance,
    instruction: SassInstruction,
    at: int,
    ours: tuple[int, int],
    marks: Marks,
) -> bool:
    """Do the marks of the file `FILES[at]` differ from `ours` in the tolerated way alone?"""
    defined, used = ours
    match tolerance:
        case _Tolerance.EXTRA:
            return not (defined & ~marks.defined or used & ~marks.used)
        case _Tolerance.PREDICATE_BOTH:
            operands = file_masks(instruction.uses)[at]  # not the guard
            return used == marks.used and not (defined ^ marks.defined) & ~operands
        case _Tolerance.FIXED_UNMARKED:
            fixed_definitions, fixed_uses = _fixed(instruction)
            return not (
                (defined ^ marks.defined) & ~fixed_definitions[at]
                or (used ^ marks.used) & ~fixed_uses[at]
            )
        case _:
            assert_never(tolerance)


def _fixed(instruction: SassInstruction) -> tuple[FileMasks, FileMasks]:
    """The registers that the instruction defines and uses and that no others can replace."""
    return (
        file_masks(reference for reference in instruction.definitions if reference.fixed),
        file_masks(reference for reference in instruction.uses if reference.fixed),
    )


def file_masks(references: Iterable[RegisterReference]) -> FileMasks:
    """The registers that `references` name, a mask for each of `FILES`."""
    masks = dict.fromkeys(FILES, 0)
    for reference in references:
        masks[reference.file] |= ((1 << reference.count) - 1) << reference.first
    return masks["R"], masks["P"], masks["UR"], masks["UP"]


def _described(file: str, defined: int, used: int) -> str:
    return f"define {_registers(file, defined)}, use {_registers(file, used)}"


def _registers(file: str, mask: int) -> str:
    names = [f"{file}{index}" for index in range(mask.bit_length()) if mask >> index & 1]
    return " ".join(names) or "none"


@dataclass(frozen=True, slots=True)
class LivenessAgreement:
    """How much of a liveness agrees with the life ranges: a figure, no gate.

    A cell is one compared register in one row; a row agrees if all its cells do.
    """

    rows: int
    agreeing_rows: int
    cells: int
    agreeing_cells: int

    def __add__(self, other: LivenessAgreement) -> LivenessAgreement:
        return LivenessAgreement(
            self.rows + other.rows,
            self.agreeing_rows + other.agreeing_rows,
            self.cells + other.cells,
            self.agreeing_cells + other.agreeing_cells,
        )


def compare_liveness(
    function: SassFunction,
    ranges: LifeRanges,
    live_before: Sequence[FileMasks],
    live_after: Sequence[FileMasks],
) -> LivenessAgreement | None:
    """Compare a liveness with the registers that the life ranges show in use.

    `live_before` and `live_after` have the registers live before and after
    each instruction of `function`, a mask for each of `FILES`. The life ranges
    show a register in use in a row if it is live on either side or defined there.

    Compared are the registers that the function names, but for those with a
    guarded definition, where nvdisasm itself guesses; those that it leaves out
    of its marks (`fixed`); and R1, the stack pointer, which it keeps in use to
    the end. None: a function with a CALL, even if that is a mere jump, cannot
    be compared, for nvdisasm carries back what an assumed callee uses (R0 and
    R1), not what the code at the target does.
    """
    if any(each.opcode.partition(".")[0] == "CALL" for each in function.instructions):
        return None
    compared = _compared_registers(function)
    rows = agreeing_rows = differing_cells = 0
    for instruction, row, before, after in zip(
        function.instructions, ranges.rows, live_before, live_after, strict=False
    ):
        defined = file_masks(instruction.definitions)
        differing = sum(
            (((before[at] | after[at] | defined[at]) ^ row.marks[at].live) & mask).bit_count()
            for at, mask in enumerate(compared)
        )
        rows += 1
        agreeing_rows += not differing
        differing_cells += differing
    cells = rows * sum(mask.bit_count() for mask in compared)
    return LivenessAgreement(rows, agreeing_rows, cells, cells - differing_cells)


def _compared_registers(function: SassFunction) -> list[int]:
    named = [0] * len(FILES)
    excluded = [1 << 1, 0, 0, 0]
    for instruction in function.instructions:
        guarded = instruction.definitions if instruction.guard else ()
        fixed_definitions, fixed_uses = _fixed(instruction)
        for at, (definitions, uses, partial) in enumerate(
            zip(
                file_masks(instruction.definitions),
                file_masks(instruction.uses),
                file_masks(guarded),
                strict=True,
            )
        ):
            named[at] |= definitions | uses
            excluded[at] |= partial | fixed_definitions[at] | fixed_uses[at]
    return [some & ~others for some, others in zip(named, excluded, strict=True)]
