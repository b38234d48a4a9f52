"""A parallel move between physical units as machine instructions, one after another.

A destination is written once no copy needs its old value. Only cycles remain:
V_SWAP_B32 turns a cycle of VGPRs; any other needs a free unit. Adjacent copies of
even pairs become one copy of 64 bits. Cost: linear in the units.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

from verilocc_bench.backends.amdgpu.mir_text import register_name
from verilocc_bench.ir import FixedUnits

Unit = tuple[str, int]
"""A file and a unit of it."""

_SWAP = "swap"
_COPY = "copy"
_Step = tuple[str, Unit, Unit]

_TEMPORARY_FILES = {"v": ("v", "a"), "a": ("v", "a"), "s": ("s", "vcc"), "vcc": ("s", "vcc")}
_SCALAR = ("s", "vcc")


class BlockedCycle(Exception):
    """The registers `units` must change places, but no register is free."""

    def __init__(self, units: Sequence[Unit]) -> None:
        super().__init__(units)
        self.units = tuple(units)


def sequential_moves(pairs: Iterable[tuple[Unit, Unit]], free: Mapping[str, int]) -> list[str]:
    """The instructions that carry out all copies (destination, source) at once.

    `free[file]` is a unit of that file that holds no value there. Raises
    BlockedCycle if a cycle needs a free unit and lacks one.
    """
    sources = {destination: source for destination, source in pairs if destination != source}
    steps = list(_steps(sources, free))
    return list(_instructions(steps))


def _steps(sources: dict[Unit, Unit], free: Mapping[str, int]) -> Iterator[_Step]:
    waiting: dict[Unit, int] = {}
    for source in sources.values():
        waiting[source] = waiting.get(source, 0) + 1
    ready = [destination for destination in sources if destination not in waiting]
    ready.reverse()
    left = dict(sources)
    while ready:
        destination = ready.pop()
        source = left.pop(destination)
        yield _COPY, destination, source
        waiting[source] -= 1
        if not waiting[source] and source in left:
            ready.append(source)
    while left:
        cycle = [next(iter(left))]
        while (source := left.pop(cycle[-1])) != cycle[0]:
            cycle.append(source)
        yield from _turned(cycle, free)


def _turned(cycle: list[Unit], free: Mapping[str, int]) -> Iterator[_Step]:
    """Gives each unit of a cycle the value of the next one, and the last the value of the first."""
    if all(file == "v" for file, _ in cycle):
        for destination, source in pairwise(cycle):
            yield _SWAP, destination, source
        return
    usable = [file for file in _TEMPORARY_FILES[cycle[0][0]] if file in free]
    if not usable:
        raise BlockedCycle(cycle)
    temporary = (usable[0], free[usable[0]])
    yield _COPY, temporary, cycle[0]
    for destination, source in pairwise(cycle):
        yield _COPY, destination, source
    yield _COPY, cycle[-1], temporary


def _instructions(steps: list[_Step]) -> Iterator[str]:
    at = 0
    while at < len(steps):
        kind, destination, source = steps[at]
        if kind == _SWAP:
            one, other = _name(destination, 1), _name(source, 1)
            yield f"    ${one}, ${other} = V_SWAP_B32 ${other}, ${one}, implicit $exec"
        else:
            wide = at + 1 < len(steps) and _is_pair(steps[at], steps[at + 1])
            at += wide
            names = _name(destination, 1 + wide), _name(source, 1 + wide)
            yield f"    renamable ${names[0]} = COPY renamable ${names[1]}"
        at += 1


def _name(unit: Unit, count: int) -> str:
    return register_name(FixedUnits(unit[0], unit[1], count))


def _is_pair(first: _Step, second: _Step) -> bool:
    """True if two copies form one copy of an even pair that one instruction can do."""
    if first[0] == _SWAP or second[0] == _SWAP:
        return False
    for (file, unit), following in ((first[1], second[1]), (first[2], second[2])):
        if unit % 2 or following != (file, unit + 1):
            return False
    files = {first[1][0], first[2][0]}
    return files == {"v"} or files <= {*_SCALAR}
