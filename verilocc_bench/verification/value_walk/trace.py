"""The difference that a run found, and the path that shows it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Made = tuple[int, int, int, int, int]
"""A value: block, instruction, operand and lane of its definition, and the step of the run."""

Value = Made | list[Made]
"""The content of a unit: a value, or several entry values of which it holds an unknown one."""

ENTRY = 0
"""The step at which entry values are made."""

CONSTANT = -1
"""The step of constants that edits make again: the same value every time."""

SHOWN_BLOCKS = 24


@dataclass(frozen=True, slots=True)
class ValueOrigin:
    """The place where a value was made, with the operand, the lane and the step of the run."""

    block: int
    instruction: int
    operand: int
    lane: str
    step: int

    def __str__(self) -> str:
        if self.step == ENTRY:
            return f"{self.lane} from the entry"
        place = f"bb{self.block} instruction {self.instruction}"
        if self.step == CONSTANT:
            return f"the constant {self.lane} of {place}"
        return f"{self.lane} of {place} at step {self.step}"

    def to_json(self) -> dict[str, Any]:
        """The origin as one JSON object."""
        return {
            "block": self.block,
            "instruction": self.instruction,
            "operand": self.operand,
            "lane": self.lane,
            "step": self.step,
        }


@dataclass(frozen=True, slots=True)
class TraceBlock:
    """One block of the path, with its decisions: (instruction, decision)."""

    block: int
    decisions: tuple[tuple[int, str], ...] = ()

    def __str__(self) -> str:
        decisions = "".join(f"; {index}: {text}" for index, text in self.decisions)
        return f"bb{self.block}{decisions}"


@dataclass(frozen=True, slots=True)
class Miscompile:
    """A read that finds a wrong value, and the path to it.

    `operand` counts the instruction's definitions, then its uses; -1 is its
    guard. If it is a definition, two lanes were written at once to `unit`.
    `found` is None if the unit holds nothing.
    """

    block: int
    instruction: int
    operand: int
    lane: str
    unit: str
    expected: ValueOrigin
    found: ValueOrigin | None
    trace: tuple[TraceBlock, ...]

    def __str__(self) -> str:
        operand = "guard" if self.operand < 0 else f"operand {self.operand}"
        lines = [
            f"bb{self.block} instruction {self.instruction}, {operand}: {self.lane} in {self.unit}",
            f"  should be {self.expected}",
            f"  is {self.found or 'nothing'}",
            f"  along {len(self.trace)} blocks",
        ]
        if len(self.trace) > SHOWN_BLOCKS:
            lines.append("    …")
        lines += [f"    {block}" for block in self.trace[-SHOWN_BLOCKS:]]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The difference as one JSON object."""
        return {
            "block": self.block,
            "instruction": self.instruction,
            "operand": self.operand,
            "lane": self.lane,
            "unit": self.unit,
            "expected": self.expected.to_json(),
            "found": None if self.found is None else self.found.to_json(),
            "trace": [
                {"block": each.block, "decisions": [list(decision) for decision in each.decisions]}
                for each in self.trace
            ],
        }
