"""Lower bounds and their proofs.

A shape limits the number of units of each file (on AMD, no AGPR and N VGPRs, or
fewer VGPRs and some AGPRs). An allocation uses at most `value` registers exactly
when it fits one of the shapes of that value. A bound of N is proved when every
shape of N - 1 is refuted: by cliques of lanes, of which no two can share a unit,
that do not fit within the limits of the shape.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

Shape = tuple[tuple[str, int], ...]
"""(file, the number of units that may be used, from the first), in the order of the target."""


class BoundKind(StrEnum):
    """Why lanes do not fit, from the weakest reason to the strongest.

    `pressure`: one clique has more lanes than there are units for them.
    `residues`: no matching gives each lane of one clique a unit of its own at
    which a legal base of its register puts it.
    `residue_schedule`: the same for several cliques together, where each
    register keeps the residue of its base. No choice of residues leaves every
    clique enough units of each residue.
    `blocks`: tuples aligned to their width fill aligned blocks of units. No way
    to fill the blocks, counted by sort, has room for all registers of several
    cliques.
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

    Either all of them hold values at the point after `instruction` of `block`
    (-1: at the entry), or there are two and one is defined there while the
    other is live. `lanes` are (virtual register, lane); `fixed` are the
    (file, unit) that the function itself names.
    """

    point: int
    block: int
    instruction: int
    lanes: tuple[tuple[int, int], ...]
    fixed: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Refutation:
    """The reason why the cliques do not fit within a shape.

    The first two kinds need one clique and no solver. For the other kinds
    `solver` is the solver that found the cliques infeasible, with its version,
    and `deterministic_time` is its time, in the solver's seconds.
    """

    kind: BoundKind
    shape: Shape
    cliques: tuple[Clique, ...]
    solver: str = ""
    deterministic_time: float = 0.0


@dataclass(frozen=True, slots=True, repr=False)
class LowerBound:
    """No valid assignment uses fewer than `value` registers.

    `group` is `vector`, the scored files, or the name of another file.
    `refutations` cover all shapes of `value` - 1. The tuple is empty without
    such a shape: if the function's own physical registers reach that far, or
    for a value of 0. `kind` is the strongest kind among the refutations.
    """

    group: str
    value: int
    kind: BoundKind
    refutations: tuple[Refutation, ...]

    def __repr__(self) -> str:
        return f"<LowerBound: at least {self.value} registers of {self.group} ({self.kind.value})>"
