"""A register allocator as a program: requests on standard input, answers on standard output.

It needs nothing but Python 3: it knows only the normalized text
(docs/normalized-text.md) and the protocol of docs/allocators.md. The method is
linear scan without holes. Each virtual register keeps its place from the first
point where it may be live to the last. It ignores lanes and guards, and never
uses registers that the function names itself. All of that is on the safe side:
its answers are valid, but often it has none.
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass, field

FILE = re.compile(r"(\w+?):(\d+)(?:=(.+))?")
BASES = re.compile(r"([A-Za-z]+)(?:\[(\d+)-(\d+)\])?(?:/(\d+))?")
BLOCK = re.compile(r"bb(\d+)(?:\((.*)\))?(?:->(.+))?")
VIRTUAL = re.compile(r"\+?%(\d+)(?::([\w.]+?))?(?:\.(\d+)(?:-(\d+))?)?(!?)(&?)(?:~\d+)?")
PHYSICAL = re.compile(r"\+?([A-Za-z]+?)(?:(\d+)|\[(\d+):(\d+)\])[!&]*(?:~\d+)?")


class NoAnswer(Exception):
    """A virtual register fits nowhere."""


@dataclass
class TextBlock:
    """A range of positions; the registers that it reads first, and those it defines whole."""

    successors: list[int]
    first: int
    last: int = 0
    read: set[int] = field(default_factory=set)
    defined: set[int] = field(default_factory=set)
    live_in: set[int] = field(default_factory=set)


class TextFunction:
    """A normalized text, read line by line.

    An instruction in line n reads at position 2n and writes at 2n + 1.
    """

    def __init__(self, text: str) -> None:
        self.units: dict[str, list[str]] = {}  # the names of the units of each file
        self.classes: dict[str, tuple[int, list[str]]] = {}  # width, legal bases by name
        self.taken: set[str] = set()  # units that must not be used
        self.class_of: list[str] = []
        self.first: list[int] = []  # of each virtual register: where it may be live
        self.last: list[int] = []
        self.blocks: dict[int, TextBlock] = {}
        for number, line in enumerate(text.splitlines()):
            self._read_line(number, line)

    def _read_line(self, number: int, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "registers":
            for name, count, names in FILE.findall(rest):
                plain = [f"{name}{unit}" for unit in range(int(count))]
                self.units[name] = names.split(",") if names else plain
        elif word == "reserved":
            self._take(rest.split(" "))
        elif word == "class":
            self._read_class(rest.split(" "))
        elif found := BLOCK.fullmatch(line):
            block, live_in, successors = found.groups()
            self._take((live_in or "").split(","))
            numbers = [int(name[2:]) for name in (successors or "").split(",") if name]
            self.blocks[int(block)] = TextBlock(numbers, 2 * number, 2 * number)
        elif self.blocks:
            self._read_instruction(number, line)

    def _read_class(self, words: list[str]) -> None:
        width, bases = int(words[1]), []
        for file, first, last, step in BASES.findall(" ".join(words[2:])):
            units = self.units[file]
            end = int(last) if last else len(units) - width
            bases += [f"{file}:{base}" for base in range(int(first or 0), end + 1, int(step or 1))]
        self.classes[words[0]] = width, bases

    def _take(self, names: list[str]) -> None:
        """Notes physical registers that the function uses itself."""
        for name in names:
            bare = name.strip("+!&")
            if bare in self.units:  # a whole file, such as vcc
                self.taken.update(self.units[bare])
            elif found := PHYSICAL.fullmatch(name):
                file, unit, first, last = found.groups()
                numbers = range(int(unit or first), int(unit or last) + 1)
                self.taken.update(f"{file}{number}" for number in numbers)
            elif bare:
                self.taken.add(bare)

    def _read_instruction(self, number: int, line: str) -> None:
        block = self.blocks[next(reversed(self.blocks))]
        block.last = 2 * number + 1
        guard = ""
        if line.startswith("@"):
            guard, _, line = line.partition(" ")
        left, equals, right = line.partition("=")
        if not equals:
            left, right = "", line
        # Definitions come first in the text, and so do the classes of what they mention first.
        definitions = [self._mention(name) for name in left.split(",") if name]
        uses = [self._mention(name) for name in right.partition(" ")[2].split(",") if name]
        for use in [*uses, self._mention(guard.lstrip("@!"))]:
            if use is not None and not use[4]:
                register = use[0]
                self._extend(register, 2 * number)
                if register not in block.defined:
                    block.read.add(register)
        for definition in definitions:
            if definition is not None:
                register, first, last, early, begins = definition
                self._extend(register, 2 * number + (not early))
                self._extend(register, 2 * number + 1)
                whole = last - first + 1 == self.classes[self.class_of[register]][0]
                if (whole or begins) and not guard:
                    block.defined.add(register)

    def _mention(self, name: str) -> tuple[int, int, int, bool, bool] | None:
        """The parts of a virtual register: number, first and last lane, early clobber, `!`."""
        found = VIRTUAL.fullmatch(name)
        if found is None:
            self._take([name])
            return None
        number, class_name, first, last, mark, early = found.groups()
        register = int(number)
        if register == len(self.class_of):
            self.class_of.append(class_name or next(iter(self.classes)))
            self.first.append(1 << 60)
            self.last.append(-1)
        width = self.classes[self.class_of[register]][0]
        lanes = (int(first), int(last or first)) if first else (0, width - 1)
        return register, *lanes, early == "&", mark == "!"

    def _extend(self, register: int, position: int) -> None:
        self.first[register] = min(self.first[register], position)
        self.last[register] = max(self.last[register], position)

    def _find_live_ranges(self) -> None:
        """Liveness over blocks: a value live at an edge is live through to the block's ends."""
        changed = True
        while changed:
            changed = False
            for block in reversed(self.blocks.values()):
                live = block.read | (self._live_out(block) - block.defined)
                changed |= live != block.live_in
                block.live_in = live
        for block in self.blocks.values():
            for register in block.live_in:
                self._extend(register, block.first)
            for register in self._live_out(block):
                self._extend(register, block.last)

    def _live_out(self, block: TextBlock) -> set[int]:
        return set().union(*(self.blocks[number].live_in for number in block.successors))

    def allocate(self) -> dict[str, str]:
        """Linear scan: in the order of first positions, each at the first base that is free."""
        self._find_live_ranges()
        busy_until = {
            name: 1 << 60 if name in self.taken else -1
            for names in self.units.values()
            for name in names
        }
        answer: dict[str, str] = {}
        widths = [self.classes[name][0] for name in self.class_of]
        order = sorted(range(len(widths)), key=lambda r: (self.first[r], -widths[r]))
        for register in order:
            for base in self.classes[self.class_of[register]][1]:
                file, _, number = base.partition(":")
                units = self.units[file][int(number) : int(number) + widths[register]]
                if all(busy_until[unit] < self.first[register] for unit in units):
                    break
            else:
                raise NoAnswer(f"%{register} fits nowhere: {len(answer)} registers placed")
            answer[f"%{register}"] = units[0]
            for unit in units:
                busy_until[unit] = self.last[register]
        return answer


def main() -> None:
    """Answers each line with a line."""
    for line in sys.stdin:
        request = json.loads(line)
        answer: dict[str, object] = {"id": request["id"]}
        try:
            answer["assignment"] = TextFunction(request["normalized"]).allocate()
        except NoAnswer as reason:
            answer |= {"failure": "no_answer", "message": str(reason)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
