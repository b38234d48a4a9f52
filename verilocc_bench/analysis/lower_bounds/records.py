"""What a lower bound is, and what proves it.

An allocation uses at most `value` registers exactly when it keeps to one of
the shapes of that value: a shape limits how many units each file may have
(on AMD, no AGPR and so many VGPRs, or fewer VGPRs and some AGPRs). A bound of
N is proved when every shape of N - 1 is refuted: by cliques of lanes,
pairwise unable to share a unit, that do not fit within the shape's limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

__all__ = ["BoundKind", "Clique", "LowerBound", "Refutation", "Shape"]

Shape = tuple[tuple[str, int], ...]
"""(file, how many of its units may be used, from the first), in the order of the target."""


class BoundKind(StrEnum):
    """Why lanes do not fit, in rising strength.

    `pressure`: they are more than the units that they may have.
    `residues`: no matching gives each lane of one clique a unit of its own at
    which some legal base of its register puts it.
    `residue_schedule`: alike for several cliques together, each register at
    bases of one residue throughout: no choice of residues leaves every clique
    with enough units of each.
    `blocks`: tuples aligned to their width fill aligned blocks of units, alone
    or one after another: no count of blocks for each way to fill them leaves
    room for all registers of several cliques.
    `placement`: no choice of a base for each register keeps the lanes of every
    clique apart.
    """

    PRESSURE = "pressure"
    RESIDUES = "residues"
    RESIDUE_SCHEDULE = "residue_schedule"
    BLOCKS = "blocks"
    PLACEMENT = "placement"


@dataclass(frozen=True, slots=True)
class Clique:
    """Lanes of which no two can share a unit.

    They hold values together at the point after `instruction` of `block` (-1:
    at the entry), or are two of which one is defined there while the other is
    live. `lanes` are (virtual register, lane), `fixed` the (file, unit) that
    the function itself names.
    """

    point: int
    block: int
    instruction: int
    lanes: tuple[tuple[int, int], ...]
    fixed: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Refutation:
    """Cliques that this shape has no room for, and why.

    The first two kinds need one clique and no solver. `solver` names what
    found the others infeasible, with its version, `deterministic_time` how
    long that took it.
    """

    kind: BoundKind
    shape: Shape
    cliques: tuple[Clique, ...]
    solver: str = ""
    deterministic_time: float = 0.0


@dataclass(frozen=True, slots=True)
class LowerBound:
    """No valid assignment uses fewer than `value` registers.

    `group` is `vector`, for what is scored, or the name of another file.
    `refutations` together cover all shapes of `value` - 1; none are needed
    where there is no such shape: what the function's own physical registers
    make of a file, or a value of 0. `kind` is the strongest that was needed.
    """

    group: str
    value: int
    kind: BoundKind
    refutations: tuple[Refutation, ...]
