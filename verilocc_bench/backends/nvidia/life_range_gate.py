"""The gate: compares our definitions and uses with NVIDIA's own life ranges.

A difference in any row rejects the kernel. One table lists the exceptions, where
nvdisasm is known to show something else than the truth; nothing else is tolerated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import assert_never

from verilocc_bench.backends.nvidia.flow import control_flow
from verilocc_bench.backends.nvidia.life_ranges import (
    FILES,
    FileMasks,
    LifeRangeRow,
    LifeRanges,
    Marks,
)
from verilocc_bench.backends.nvidia.records import RegisterReference, SassFunction, SassInstruction


@dataclass(frozen=True, slots=True)
class LifeRangeMismatch:
    """The first difference between our definitions and uses and the life ranges.

    `line` is the line of the instruction in its disassembly, or 0 if the function
    has no instruction at `address`. `ours` and `theirs` name registers of `file`.
    """

    address: int
    line: int
    opcode: str
    file: str
    ours: str
    theirs: str

    def __str__(self) -> str:
        place = f"{self.opcode} at 0x{self.address:04x} (line {self.line})"
        file = f", file {self.file}" if self.file else ""
        return f"{place}{file}: ours {self.ours}; NVIDIA's {self.theirs}"


class _Tolerance(Enum):
    """The ways in which the marks of a row may differ from our definitions and uses."""

    EXTRA = "the life ranges may define and use more"
    PREDICATE_BOTH = "a predicate operand that we use may be marked as used and defined"
    FIXED_UNMARKED = "fixed registers may have no mark"


@dataclass(frozen=True, slots=True)
class _Exception:
    """A known difference of an operation (the opcode up to its first dot)."""

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
"""Every difference that the gate accepts. (Neither side has B registers.)"""

_TOLERANCES = {
    (each.operation, file): each.tolerance for each in _EXCEPTIONS for file in each.files
}


def check_marks(function: SassFunction, ranges: LifeRanges) -> LifeRangeMismatch | None:
    """The first difference from NVIDIA's life ranges, or None if all rows agree.

    In every file, the definitions and uses of each instruction, with its guard
    among the uses, must equal the marks of its row, but for `_EXCEPTIONS` and calls by the
    ABI. An instruction that never executes has the marks that it would have under another
    guard. What is never reached may have no row, and a NOP has none there.
    """
    rows = iter(ranges.rows)
    row = next(rows, None)
    for instruction in function.instructions:
        if row is None or instruction.address != row.address:
            # A NOP defines and uses nothing.
            if instruction.opcode != "NOP" and _is_reached(function, instruction):
                theirs = "no row" if row is None else f"a row at 0x{row.address:04x}"
                return _misplaced(instruction, "an instruction", theirs)
            continue
        if found := _compare(instruction, row):
            return found
        row = next(rows, None)
    if row is not None:
        return LifeRangeMismatch(row.address, 0, "", "", "no instruction", "a row")
    return None


def _is_reached(function: SassFunction, instruction: SassInstruction) -> bool:
    return any(
        function.instructions[index] is instruction
        for block in control_flow(function)
        for index in block.instructions
    )


def _misplaced(instruction: SassInstruction, ours: str, theirs: str) -> LifeRangeMismatch:
    return LifeRangeMismatch(
        instruction.address, instruction.line, instruction.opcode, "", ours, theirs
    )


def _compare(instruction: SassInstruction, row: LifeRangeRow) -> LifeRangeMismatch | None:
    if instruction.destroys:
        return _compare_call(instruction, row)
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
        return LifeRangeMismatch(
            instruction.address,
            instruction.line,
            instruction.opcode,
            file,
            _described(file, defined[at], uses),
            _described(file, marks.defined, marks.used),
        )
    return None


def _compare_call(instruction: SassInstruction, row: LifeRangeRow) -> LifeRangeMismatch | None:
    """Compares a call by the ABI: what it destroys, and the pair with the callee's address.

    nvdisasm does not mark arguments. What lives through the call must be kept.
    """
    written = file_masks((*instruction.definitions, *instruction.destroys))
    used = file_masks(each for each in instruction.uses if not each.fixed)
    for at, file in enumerate(FILES):
        marks = row.marks[at]
        kept = marks.live & ~marks.defined & ~marks.used
        if kept & written[at] or marks.defined & ~written[at] or used[at] & ~marks.used:
            return LifeRangeMismatch(
                instruction.address,
                instruction.line,
                instruction.opcode,
                file,
                _described(file, written[at], used[at]),
                f"{_described(file, marks.defined, marks.used)}, keep {_registers(file, kept)}",
            )
    return None


def _tolerated(
    tolerance: _Tolerance,
    instruction: SassInstruction,
    at: int,
    ours: tuple[int, int],
    marks: Marks,
) -> bool:
    """True if the marks of the file `FILES[at]` differ from `ours` only in the tolerated way."""
    defined, used = ours
    match tolerance:
        case _Tolerance.EXTRA:
            return not (defined & ~marks.defined or used & ~marks.used)
        case _Tolerance.PREDICATE_BOTH:
            operands = file_masks(instruction.uses)[at]  # not the guard
            return used == marks.used and not (defined ^ marks.defined) & ~operands
        case _Tolerance.FIXED_UNMARKED:
            fixed_definitions, fixed_uses = fixed_masks(instruction)
            return not (
                (defined ^ marks.defined) & ~fixed_definitions[at]
                or (used ^ marks.used) & ~fixed_uses[at]
            )
        case _:
            assert_never(tolerance)


def fixed_masks(instruction: SassInstruction) -> tuple[FileMasks, FileMasks]:
    """The fixed registers that an instruction defines, and those that it uses."""
    return (
        file_masks(reference for reference in instruction.definitions if reference.fixed),
        file_masks(reference for reference in instruction.uses if reference.fixed),
    )


def file_masks(references: Iterable[RegisterReference]) -> FileMasks:
    """The registers of these references, as a mask for each of `FILES`."""
    masks = dict.fromkeys(FILES, 0)
    for reference in references:
        masks[reference.file] |= ((1 << reference.count) - 1) << reference.first
    return masks["R"], masks["P"], masks["UR"], masks["UP"]


def _described(file: str, defined: int, used: int) -> str:
    return f"define {_registers(file, defined)}, use {_registers(file, used)}"


def _registers(file: str, mask: int) -> str:
    names = [f"{file}{index}" for index in range(mask.bit_length()) if mask >> index & 1]
    return " ".join(names) or "none"
