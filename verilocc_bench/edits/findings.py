"""Verdicts as data, with one finding for each mistake."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

Place = tuple[int, int]
"""(block, instruction in the block); the function's entry is (0, -1)."""


class FindingKind(StrEnum):
    """The kinds of mistakes in a well-formed answer."""

    MISSING = "missing"
    UNKNOWN_VIRTUAL_REGISTER = "unknown_virtual_register"
    UNKNOWN_PHYSICAL_REGISTER = "unknown_physical_register"
    WRONG_CLASS = "wrong_class"
    MISALIGNED = "misaligned"
    RESERVED = "reserved"
    OVER_BUDGET = "over_budget"
    OVERLAP = "overlap"
    FIXED_REGISTER_CLOBBERED = "fixed_register_clobbered"
    EARLY_CLOBBER = "early_clobber"
    TIED_MISMATCH = "tied_mismatch"
    INVALID_EDIT = "invalid_edit"
    WRONG_VALUE = "wrong_value"


OF_VALUES = frozenset(
    {
        FindingKind.OVERLAP,
        FindingKind.FIXED_REGISTER_CLOBBERED,
        FindingKind.EARLY_CLOBBER,
        FindingKind.WRONG_VALUE,
    }
)
"""The kinds about the values in registers; the others are about registers and edits alone."""

_VIRTUAL = re.compile(r"%(\d{1,9})", re.ASCII)


@lru_cache(1 << 16)
def _number(name: str) -> int | None:
    """The number of a virtual register, or None for another name."""
    match = _VIRTUAL.fullmatch(name)
    return None if match is None else int(match[1])


@dataclass(frozen=True, slots=True)
class InvolvedLane:
    """A lane that takes part in a collision: `%5.1`, or a physical unit of the function's own.

    `defined` are the places of the definitions whose value it holds there.
    `next_use` is the nearest place that reads this value, or None.
    """

    name: str
    defined: tuple[Place, ...] = ()
    next_use: Place | None = None

    def to_json(self) -> dict[str, Any]:
        """The lane as one JSON object; places are pairs."""
        return {
            "lane": self.name,
            "defined": [list(place) for place in self.defined],
            "next_use": None if self.next_use is None else list(self.next_use),
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake and its place.

    `block` and `instruction` (within the block; -1 is the function's entry) are None
    for a finding without a place. `registers` are the virtual registers of the mistake,
    then the physical ones. `unit` is the physical register unit, by the assembler's
    name. `operand` counts the instruction's definitions, then its uses, from 0 (-1 is
    its guard). `lanes` are the lanes that collide; the one that destroys is the first.
    """

    kind: FindingKind
    message: str
    block: int | None = None
    instruction: int | None = None
    registers: tuple[str, ...] = ()
    unit: str | None = None
    operand: int | None = None
    lanes: tuple[InvolvedLane, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The finding as one JSON object."""
        return {
            "kind": self.kind.value,
            "block": self.block,
            "instruction": self.instruction,
            "operand": self.operand,
            "registers": list(self.registers),
            "unit": self.unit,
            "lanes": [lane.to_json() for lane in self.lanes],
            "message": self.message,
        }

    def sort_key(self) -> tuple[Any, ...]:
        """Sorts findings without a place first, then by place, then registers by number."""
        place = (-1, -1) if self.block is None else (self.block, self.instruction or 0)
        numbers = [n for name in self.registers if (n := _number(name)) is not None]
        operand = -2 if self.operand is None else self.operand
        lanes = [lane.name for lane in self.lanes]
        return (
            *place,
            numbers,
            self.kind,
            self.registers,
            self.unit or "",
            operand,
            lanes,
            self.message,
        )


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The verdict on an answer: valid or not, with the findings.

    `registers_used` (by file, and `vector` for the scored number) and `occupancy` are
    None if some virtual register has no legal place. If only the first findings were
    requested, `untold` counts the others. If there are millions, `uncounted` is True:
    there are more than it counts.
    """

    id: str
    valid: bool
    findings: tuple[Finding, ...]
    registers_used: dict[str, int] | None
    occupancy: int | None
    untold: Mapping[FindingKind, int] = field(default_factory=dict)
    uncounted: bool = False

    @property
    def findings_count(self) -> int:
        """How many mistakes were counted, those included that `findings` leaves out."""
        return len(self.findings) + sum(self.untold.values())

    def __str__(self) -> str:
        if not self.valid:
            count = f"{'at least ' if self.uncounted else ''}{self.findings_count} findings"
            first = f", first: {self.findings[0].message}" if self.findings else ""
            return f"wrong: {count}{first}"
        if self.registers_used is None:
            return "valid"
        files = ", ".join(f"{name} {count}" for name, count in self.registers_used.items())
        return f"valid: registers used {files}; occupancy {self.occupancy}"

    def __repr__(self) -> str:
        return f"<Verdict on {self.id}: {self}>"

    def to_json(self) -> dict[str, Any]:
        """The verdict as one JSON document."""
        return {
            "id": self.id,
            "valid": self.valid,
            "findings": [finding.to_json() for finding in self.findings],
            **({"untold": dict(self.untold)} if self.untold else {}),
            **({"uncounted": True} if self.uncounted else {}),
            "registers_used": self.registers_used,
            "occupancy": self.occupancy,
        }
