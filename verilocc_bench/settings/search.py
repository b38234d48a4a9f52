"""Settings of the built-in allocators that place registers, and of those that search."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from verilocc_bench.errors import InputError
from verilocc_bench.settings.allocator import AllocatorSettings
from verilocc_bench.settings.flags import at_least, machine_live_ranges, setting


class Objective(StrEnum):
    """What searching allocators are after.

    `registers`: as few as can be found, then the least combined cost. The
    others keep the occupancy that so few registers give, and use all the
    registers that it leaves: for the fewest bank conflicts (`bank-conflicts`),
    the fewest copies (`copies`), or the least of both together (`combined`).
    `machine-code` takes only as few registers as occupancy needs, and then the
    least of all that the hardware pays for in machine code.
    """

    REGISTERS = "registers"
    BANK_CONFLICTS = "bank-conflicts"
    COPIES = "copies"
    COMBINED = "combined"
    MACHINE_CODE = "machine-code"


OBJECTIVE_OF_CODE = Objective.MACHINE_CODE
"""The objective, if no other is asked for, of answers that go into code which runs."""


@dataclass(frozen=True, slots=True)
class PlacementSettings(AllocatorSettings):
    """The live ranges to work on: the text's or the machine's."""

    FLAG_GROUP: ClassVar[str] = "allocators that place registers"

    runnable: bool = machine_live_ranges()

    @property
    def on_machine_live_ranges(self) -> bool:
        """See AllocatorSettings."""
        return self.runnable

    def described(self) -> dict[str, Any]:
        """As in AllocatorSettings; `runnable` is named only where it is asked for."""
        found = AllocatorSettings.described(self)
        if not self.runnable:
            del found["runnable"]
        return found


@dataclass(frozen=True, slots=True)
class SearchSettings(PlacementSettings):
    """What to search for, and how long. Effort multiplies all budgets of steps."""

    FLAG_GROUP: ClassVar[str] = "allocators that search"

    objective: Objective = setting(
        Objective.REGISTERS,
        "--objective",
        "the fewest registers, or at the occupancy of the fewest the least of something else "
        "(default: {})",
        read=Objective,
    )
    effort: int = setting(
        1,
        "--effort",
        "N times the usual budget of steps (default: 1)",
        metavar="N",
        read=at_least(int, 1, 1000),
    )
    compiled: int = setting(
        0,
        "--compiled",
        "for the objective machine-code: compile N answers with llc, and keep the one with "
        "the best code; `best` takes none that at the same waves has a worse count than LLVM's "
        "own code (gfx90a and gfx942; needs llc of LLVM 22, and the dataset's raw code or machine "
        "IR; default: {})",
        metavar="N",
        read=at_least(int, 0, 10_000),
    )

    @property
    def compiled_answers(self) -> int:
        """See AllocatorSettings."""
        return self.compiled

    def __post_init__(self) -> None:
        """Raises InputError if answers are to be compiled for another objective."""
        if self.compiled and self.objective is not Objective.MACHINE_CODE:
            raise InputError("--compiled is for --objective machine-code")

    def described(self) -> dict[str, Any]:
        """As in PlacementSettings; `compiled` is named only where it is asked for."""
        found = PlacementSettings.described(self)
        if not self.compiled:
            del found["compiled"]
        return found
