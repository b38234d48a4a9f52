"""Targets: their register files and the costs of registers."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Flag

from verilocc_bench.ir import BaseRange, Instruction, RegisterClass, RegisterFile


class MaskChange(Flag):
    """The change that an instruction may make to the set of executing threads."""

    NONE = 0
    WIDENS = 1
    NARROWS = 2
    ANY = 3


def _no_mask_change(_: Instruction) -> MaskChange:
    return MaskChange.NONE


def _no_mask_changes(instructions: Sequence[Instruction]) -> list[MaskChange]:
    return [MaskChange.NONE] * len(instructions)


def _saves_no_mask(_: Instruction) -> None:
    return None


def _no_wait_states(_: Instruction) -> int:
    return 0


def _reads_anywhere(_opcode: str, _file: str) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class TargetFile:
    """A register file of the hardware.

    `count` is the number of its units. `letter` is its letter in class names. Tuples
    start at multiples of `tuple_alignment`, or of the smallest power of two that is not
    below their width if that is less. The bank of a register is its number modulo
    `banks` (1: no banks).
    """

    name: str
    count: int
    letter: str
    tuple_alignment: int
    banks: int = 1
    unit_names: tuple[str, ...] = ()

    def with_budget(self, count: int) -> RegisterFile:
        """This file in a function that may use `count` units."""
        return RegisterFile(self.name, min(count, self.count), self.unit_names)

    def usual_step(self, width: int) -> int:
        """The alignment of tuples of `width` units."""
        return min(self.tuple_alignment, 1 << (width - 1).bit_length())


@dataclass(frozen=True, slots=True)
class Target:
    """A GPU architecture as data.

    The use of `vector_files` is scored. `vector_use` turns the registers used in each
    file (highest index + 1) into the scored number. `occupancy` gives waves (AMD) or
    warps (NVIDIA) from the same counts, at most `maximum_occupancy`. Class names have
    the letters of their files in alphabetical order, unless `class_letters` replaces
    them.

    Registers of `guard_files` can guard instructions. One bank delivers `bank_ports`
    registers at once. `reuse_slots` operand slots can keep what they read for the next
    instruction. `copy_opcodes` copy one register to another. `short_forms` are
    (opcodes, file): these instructions are shorter if an operand takes the whole file.

    If instructions are scheduled once more after allocation, `stays_behind` gives for each
    instruction of a block the earlier ones, as a bit mask, that it must not overtake,
    registers apart. None: they keep their order. `wait_states` is the number of
    instructions for which the hardware keeps others from writing an instruction's
    registers.

    For edits: nothing can be inserted in a block after an opcode in `terminators`.
    `constant_opcodes` without register uses give the same value at any place. A register
    of `file` can be moved from `move_sources[file]`. Spill slots take values from
    `spill_files`. Moves between registers of `masked_files` happen only in executing
    threads; `mask_change` gives the change of these threads by an instruction,
    `mask_changes` by those of a whole block, and `saves_mask` the virtual register that an
    instruction copies the mask of these threads to. With
    `ties_equal_operands`, opcodes may tie a use to a definition that the text does not
    mark; both then name the same lanes. Where `reads_once` is true for an opcode and a file,
    uses that name the same lanes have to be read from one place.
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
    stays_behind: Callable[[Sequence[Instruction]], list[int]] | None = None
    wait_states: Callable[[Instruction], int] = _no_wait_states
    terminators: re.Pattern[str] = re.compile(r"(?!)")
    constant_opcodes: frozenset[str] = frozenset()
    move_sources: Mapping[str, frozenset[str]] = field(default_factory=dict)
    spill_files: frozenset[str] = frozenset()
    masked_files: frozenset[str] = frozenset()
    mask_change: Callable[[Instruction], MaskChange] = _no_mask_change
    mask_changes: Callable[[Sequence[Instruction]], list[MaskChange]] = _no_mask_changes
    saves_mask: Callable[[Instruction], int | None] = _saves_no_mask
    ties_equal_operands: bool = False
    reads_once: Callable[[str, str], bool] = _reads_anywhere

    def counted_occupancy(self, occupancy: int) -> str:
        """The occupancy with its unit: `1 wave`, `8 waves`, `12 warps`."""
        return f"{occupancy} {self.occupancy_unit.removesuffix('s' if occupancy == 1 else '')}"

    def file(self, name: str) -> TargetFile:
        """The hardware's register file of that name. Raises KeyError for another."""
        for file in self.files:
            if file.name == name:
                return file
        raise KeyError(name)

    def make_class(
        self, width: int, bases: Mapping[str, tuple[BaseRange, ...]], budgets: Mapping[str, int]
    ) -> RegisterClass:
        """The class of the bases within the budgets, with its canonical name.

        The name spells the files and the width: `V2`, `AV4`, `S`. If the bases are not
        all aligned bases within the budget, the name describes them: `V2.from1by2`. So
        equal problems have equal names, whatever the compiler called its class.
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
    # A single base has no step; the usual step makes equal classes equal.
    step = legal.step if last > legal.first else usual_step
    return BaseRange(legal.file, legal.first, last, step)


def round_up(value: int, granularity: int) -> int:
    """The least multiple of `granularity` that is not below `value`."""
    return -(-value // granularity) * granularity
