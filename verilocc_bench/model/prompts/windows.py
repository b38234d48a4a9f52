"""A function cut into windows: pieces of bounded size, in the order of its text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.settings.language_model import WINDOW_REGISTERS

INSTRUCTIONS = 48

_VIRTUAL = re.compile(r"%(\d+)")


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive lines of a function's body.

    `new` are the virtual registers that the function mentions here for the first
    time, and `known` the others in these lines; both ascend. A window that
    begins within a block begins with the line `bbN continued`. `instructions`
    numbers its instructions, counted over the function.
    """

    lines: tuple[str, ...]
    new: tuple[int, ...]
    known: tuple[int, ...]
    instructions: range


def cut_windows(problem: AllocationProblem, new_registers: int = WINDOW_REGISTERS) -> list[Window]:
    """The windows of a function.

    A window has at most INSTRUCTIONS instructions and `new_registers` new
    registers, but at least one instruction. A block that fits a window is not
    cut.
    """
    cutter = _Cutter(new_registers)
    for head, body in _blocks(problem):
        alone = _Cutter(new_registers, cutter.seen)
        if not cutter.has_room_for(body) and alone.has_room_for(body):
            cutter.close()
        cutter.lines.append(head)
        for line in body:
            if not cutter.has_room_for([line]):
                cutter.close()
                name = re.split(r"[(-]", head, maxsplit=1)[0]
                cutter.lines.append(f"{name} continued")
            cutter.add(line)
    cutter.close()
    return cutter.windows


def _blocks(problem: AllocationProblem) -> Iterator[tuple[str, list[str]]]:
    """The head and the instructions of each block, as the normalized text has them."""
    lines = problem.normalized.splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("bb0"))
    head, body = lines[first], list[str]()
    for line in lines[first + 1 :]:
        if line.startswith("bb"):
            yield head, body
            head, body = line, []
        else:
            body.append(line)
    yield head, body


def _mentioned(line: str) -> set[int]:
    return {int(number) for number in _VIRTUAL.findall(line)}


class _Cutter:
    """The window that is being filled, after those that are full.

    Registers are numbered by first mention, so all below `seen` are known.
    """

    def __init__(self, new_registers: int, seen: int = 0) -> None:
        self.new_registers = new_registers
        self.windows: list[Window] = []
        self.seen = self.start = seen
        self.lines: list[str] = []
        self.known: set[int] = set()
        self.first = self.instructions = 0

    def has_room_for(self, body: list[str]) -> bool:
        if not self.instructions and len(body) == 1:
            return True
        last = max((number for line in body for number in _mentioned(line)), default=-1)
        new = max(self.seen, last + 1) - self.start
        return self.instructions + len(body) <= INSTRUCTIONS and new <= self.new_registers

    def add(self, line: str) -> None:
        mentioned = _mentioned(line)
        self.lines.append(line)
        self.instructions += 1
        self.known |= {number for number in mentioned if number < self.start}
        self.seen = max(self.seen, max(mentioned, default=-1) + 1)

    def close(self) -> None:
        if self.lines:
            new = tuple(range(self.start, self.seen))
            instructions = range(self.first, self.first + self.instructions)
            known = tuple(sorted(self.known))
            self.windows.append(Window(tuple(self.lines), new, known, instructions))
        self.first += self.instructions
        self.lines, self.known, self.instructions = [], set(), 0
        self.start = self.seen
