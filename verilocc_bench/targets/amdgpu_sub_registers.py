"""LLVM's AMDGPU sub-register indices, each with its lanes of a tuple.

Every index of LLVM 22 names adjacent lanes, or one 16-bit half of a lane.
LLVM spells 1 to 6, 8 and 16 lanes lane by lane (`sub2_sub3`). It spells 7 and
9 to 12 lanes half by half (`lo16_hi16_sub1_lo16_sub1_hi16_…`), and leaves out
`sub0` there. The tests compare the names with LLVM's own tables.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_LANES_OF_A_TUPLE = 32
_COUNTS_BY_LANE = (1, 2, 3, 4, 5, 6, 8, 16)
_COUNTS_BY_HALF = (7, 9, 10, 11, 12)


@dataclass(frozen=True, slots=True)
class SubRegister:
    """`count` lanes from `first`; `half` is "lo16" or "hi16" for half of one lane."""

    first: int
    count: int
    half: str | None = None


def _half_name(lane: int, half: str) -> str:
    return f"sub{lane}_{half}" if lane else half


def _sub_registers() -> Iterator[tuple[str, SubRegister]]:
    for first in range(_LANES_OF_A_TUPLE):
        for half in ("lo16", "hi16"):
            yield _half_name(first, half), SubRegister(first, 1, half)
        for count in (*_COUNTS_BY_LANE, *_COUNTS_BY_HALF):
            lanes = range(first, first + count)
            if lanes[-1] >= _LANES_OF_A_TUPLE:
                continue
            if count in _COUNTS_BY_LANE:
                parts = [f"sub{lane}" for lane in lanes]
            else:
                parts = [_half_name(lane, half) for lane in lanes for half in ("lo16", "hi16")]
            yield "_".join(parts), SubRegister(first, count)


SUB_REGISTERS = dict(_sub_registers())
"""Every index of LLVM by its name."""
