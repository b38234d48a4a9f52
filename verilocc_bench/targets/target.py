"""What a target is: its register files and what registers cost."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Flag

from verilocc_bench.ir import BaseRange, Instruction, RegisterClass, RegisterFile

__all__ = ["MaskChange", "Target", "TargetFile", "round_up"]


class MaskChange(Flag):
    """What an instruction may do to the set of threads that execute."""

    NONE = 0
    WIDENS = 1
    NARROWS = 2
    ANY = 3


def _no_mask_change(_: Instruction) -> MaskChange:
    return MaskChange.NONE


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A register file of the hardware.

    `count`: units that exist. `letter`: how class names spell the file.
    `tuple_alignment`: tuples start at multiples of this, or of the smallest
    power of two that holds them if that is less. `banks`: the bank of a
    register is its number modulo this (1: no banks).
    """

    name: str
    count: int
    letter: str
    tuple_alignment: int
    banks: int = 1
    unit_names: tuple[str, ...] = ()

    def with_budget(self, count: int) -> RegisterFile:
        """This file as a function sees it that may use `count` units."""
        return RegisterFile(self.name, min(count, self.count), self.unit_names)

    def usual_step(self, width: int) -> int:
        """The alignment of tuples of `width` units."""
        return min(self.tuple_alignment, 1 << (width - 1).bit_length())


@dataclass(frozen=True, slots=True)
class Target:
    """A GPU architecture as data.

    `vector_files` are those whose use is scored. `vector_use` turns the
    count of registers used in each file (highest index + 1) into the number
    that is scored; `occupancy` gives waves (AMD) or warps (NVIDIA) from the
    same counts, at most `maximum_occupancy`. `class_letters` says what class
    names have for the letters of some files, where that is not those letters in
    alphabetical order.

    `guard_files`: the files whose registers can guard instructions.
    `bank_ports`: how many registers one bank delivers at once.
    `reuse_slots`: how many operand slots can keep what they read for the next
    instruction. `copy_opcodes`: what copies one register to another.
    `short_forms`: (opcodes, file) where instructions are shorter with an operand
    that takes the whole of the file.

    For edits. `terminators`: opcodes after which nothing can be inserted in a
    block. `constant_opcodes`: without register uses these give the same value
    at any place. `move_sources[file]`: the files from which a register of
    `file` can be moved. `spill_files`: the files that spill slots take values
    from. `masked_files`: moves between their registers happen only in the
    threads that execute; `mask_change` says what an instruction may do to these.
    `ties_equal_operands`: opcodes may tie a use to a definition without a word of
    it in the text; then both name the same lanes.
    """

    name: str
    vendor: str
    files: tuple[TargetFile, ...]
    vector_files: tuple[str, ...]
    vector_use: Callable[[Mapping[str, int]], int]
    occupancy: Callable[[Mapping[str, int]], int]
    occupancy_unit: str
    maximum_occupancy: int
    sources: tuple[str, ...]
    class_letters: Mapping[str, str]
    copy_opcodes: frozenset[str]
    guard_files: frozenset[str] = frozenset()
    bank_ports: int = 1
    reuse_slots: int = 0
    short_forms: tuple[tuple[re.Pattern[str], str], ...] = ()
    terminators: re.Pattern[str] = re.compile(r"(?!)")
    constant_opcodes: frozenset[str] = frozenset()
    move_sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    spill_files: frozenset[str] = frozenset()
    masked_files: frozenset[str] = frozenset()
    mask_change: Callable[[Instruction], MaskChange] = _no_mask_change
    ties_equal_operands: bool = False

    def file(self, name: str) -> TargetFile:
        """The hardware's register file of that name. Raises KeyError for another."""
        for file in self.files:
            if file.name == name:
                return file
        raise KeyError(name)

    def make_class(
        self, width: int, bases: Mapping[str, tuple[BaseRange, ...]], budgets: Mapping[str, int]
    ) -> RegisterClass:
        """The class of those bases within the budgets, under its canonical name.

        The name spells the files and the width: `V2`, `AV4`, `S`. Where the
        bases are not all aligned ones that the budget has room for, the name
        goes on with what they are instead: `V2.from1by2`. Equal problems
        thus have equal names, whatever the compiler called its class.
        """
        ranges: list[BaseRange] = []
        letters: list[str] = []
        remarks: list[str] = []
        for file in self.files:
            room = budgets.get(file.name, 0) - width
            step = file.usual_step(width)
            legal = [_clip(r, room, step) for r in bases.get(file.name, ()) if r.first <= room]
            if not legal:
                continue
            letters.append(file.letter)
            ranges += legal
            if legal != [BaseRange(file.name, 0, room - room % step, step)]:
                for r in legal:
                    remark = f".from{r.first}" if r.first else ""
                    if r.last + r.step <= room:
                        remark += f".to{r.last}"
                    remarks.append(remark + (f".by{r.step}" if r.step != step else ""))
        suffix = "" if width == 1 else str(width)
        spelled = "".join(sorted(letters))
        name = self.class_letters.get(spelled, spelled) or "NONE"
        return RegisterClass(name + suffix + "".join(remarks), width, tuple(ranges))


def _clip(legal: BaseRange, room: int, usual_step: int) -> BaseRange:
    last = min(legal.last, room)
    last -= (last - legal.first) % legal.step
    # A single base has no step of its own: the usual one keeps equal classes equal.
    step = legal.step if last > legal.first else usual_step
    return BaseRange(legal.file, legal.first, last, step)


def round_up(value: int, granularity: int) -> int:
    """The least multiple of `granularity` that is not below `value`."""
    return -(-value // granularity) * granularity
