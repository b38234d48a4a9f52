"""Made-up streams of mentions: states of the notes that kernels come to seldom.

A stream is read backwards as a text is, but has no text: virtual registers are noted, mentioned,
written anew and crossed out at random. Drawn for each stream: the architecture, the budget
(sometimes without its low part, so that every register number is learnt), how full the files
are to be, which widths there are, how long virtual registers live.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass

from verilocc_bench.ir import BaseRange, RegisterClass
from verilocc_bench.model.prompts.notes.ledger import NotesLedger
from verilocc_bench.model.prompts.notes.reading import Mention, NotesBudget, Role
from verilocc_bench.model.prompts.notes.words import LENT

WIDTHS = {
    "v": ((1, 60), (2, 18), (4, 12), (8, 3), (16, 3), (3, 2), (6, 1), (5, 1), (12, 1), (32, 0.3)),
    "a": ((1, 20), (2, 10), (4, 20), (16, 10), (8, 3), (3, 1), (32, 0.3)),
    "s": ((1, 50), (2, 35), (4, 10), (8, 3), (16, 1), (3, 1), (5, 0.5), (6, 0.5)),
    "R": ((1, 60), (2, 20), (4, 18), (3, 1)),
    "UR": ((1, 70), (2, 25), (4, 4), (3, 1)),
    "P": ((1, 1),),
    "UP": ((1, 1),),
}

LIVES = (1, 3, 8, 30, 150)
"""Mean lives, in instructions, that are mixed."""

HELD_BACK = 12
"""Nothing is lent for fewer instructions."""

LATE = 6
"""A virtual register ends at most so many instructions later than it was to."""

Kind = tuple[tuple[str, ...], int]


@dataclass(slots=True)
class _Life:
    kind: Kind
    ends: int
    lent: bool = False
    needed: int = -1


class MadeUpStream:
    """An endless stream. `classes` grows with it."""

    def __init__(self, draw: random.Random) -> None:
        self.generator = draw
        self.classes: dict[int, RegisterClass] = {}
        self.time = 0
        self._lives: dict[int, _Life] = {}
        self._recent: list[int] = []
        self._needs: dict[str, list[int]] = {file: [] for file in LENT}
        self._returns: dict[int, list[int]] = {}
        self._count = 0
        self._draw_world(draw)
        self._made: dict[Kind, RegisterClass] = {}

    def _draw_world(self, draw: random.Random) -> None:
        counts: dict[str, int] = {}
        free: dict[str, int] = {}
        self._arguments = 0
        if draw.random() < 0.5:
            counts = {"v": draw.choice((64, 128, 168, 256, draw.randint(32, 256))), "s": 102}
            files: dict[tuple[str, ...], float] = {("v",): 10.0, ("s",): draw.choice((1.0, 4.0))}
            if draw.random() < 0.25:
                counts["a"] = draw.choice((64, 128, 256))
                files |= {("a",): draw.choice((0.5, 4.0)), ("v", "a"): draw.choice((0.5, 6.0))}
            free = {file: (1 << count) - 1 for file, count in counts.items()}
            free["v"] &= ~draw.choice((0, 1, 1, 3, 7))
            free["s"] &= ~(draw.choice((0, 1)) << 32) & ~(draw.choice((0, 0x3F, 0x30)) << 96)
            named = draw.randint(4, 18)
            arguments = ((1 << named) - 1) & ~draw.choice((0, 1, 3, 0xF))
            free["s"] &= ~((1 << named) - 1)
            if draw.random() < 0.85:
                self._arguments = arguments
        else:
            counts = {"R": draw.choice((64, 128, 168, 255, draw.randint(24, 255))), "UR": 63}
            counts |= {"P": 7, "UP": 7}
            files = {("R",): 10.0, ("UR",): draw.choice((0.3, 2.0)), ("P",): 5.0, ("UP",): 0.5}
            free = {file: (1 << count) - 1 for file, count in counts.items()}
            free["R"] &= ~2
            free["UR"] &= ~15
        for file in ("v", "a", "s", "R", "UR"):
            if file in free and draw.random() < 0.6:
                free[file] &= ~((1 << draw.randrange(counts[file])) - 1)
        self._free = free
        self._room = {file: units.bit_count() for file, units in free.items()}
        self._targets = {f: draw.choice((0.15, 0.4, 0.6, 0.75, 0.85, 0.92)) for f in free}
        self._kinds: list[Kind] = []
        self._weights: list[float] = []
        for where, weight in files.items():
            for width, often in WIDTHS[where[0]]:
                if width <= max(1, self._room[where[0]] // 4):
                    self._kinds.append((where, width))
                    self._weights.append(weight * often * draw.choice((0.1, 1, 1, 3)))
        self._life_weights = [draw.choice((0.2, 1, 3)) for _ in LIVES]
        self._lending = draw.choice((0.0, 0.02, 0.1))
        self.arguments_return_at = draw.randint(20, 800) if self._arguments else -1
        if self._arguments:
            heapq.heappush(self._needs["s"], self.arguments_return_at)

    def ledger(self) -> NotesLedger:
        """The notes before the stream begins."""
        return NotesLedger.of(
            NotesBudget(self._free, self._arguments), max(w for _, w in self._kinds)
        )

    @property
    def arguments(self) -> int:
        """The scalar registers that are lent until `arguments_return_at`."""
        return self._arguments

    def instruction(self) -> list[Mention]:
        """The mentions of the next instruction."""
        draw, mentions = self.generator, []
        self.time += 1
        returning = self._returns.pop(self.time, [])
        for register in returning:
            self._lives[register].lent = False
            mentions.append(Mention(register, returns=True))
        ending = [r for r, life in self._lives.items() if life.ends <= self.time and not life.lent]
        ending.sort(key=lambda register: self._lives[register].ends)
        overdue = sum(self._lives[r].ends <= self.time - LATE for r in ending)
        ending = ending[: max(overdue, draw.choice((1, 1, 1, 2)))]
        definitions = list(ending)
        if definitions and draw.random() < 0.1:
            definitions += self._pick(1)
        if len(definitions) > 1 or draw.random() < 0.08:
            mentions += [Mention(r, borrows=self._borrows(r)) for r in definitions]
        for register in ending:
            mentions.append(Mention(register, Role.BEGINS, self._borrows(register)))
            del self._lives[register]
        if not ending and draw.random() < 0.02:
            dead = self._begin(0)
            if dead is not None:
                mentions.append(Mention(dead, Role.BEGINS, self._borrows(dead)))
                del self._lives[dead]
        if not returning and draw.random() < self._lending:
            mentions += self._lend()
        used: list[int] = []
        for _ in range(draw.choice((0, 1, 1, 2, 2, 3, 4))):
            begun = self._begin() if draw.random() < 0.75 else None
            used += [begun] if begun is not None else self._pick(1)
        mentions += [Mention(r, borrows=self._borrows(r)) for r in dict.fromkeys(used)]
        if returning:
            last = mentions[-1]
            mentions[-1] = Mention(last.register, last.role, last.borrows, last.returns, cuts=True)
        return mentions

    def _begin(self, life: int | None = None) -> int | None:
        """A virtual register that is read for the first time, where there is room."""
        draw = self.generator
        kind = draw.choices(self._kinds, self._weights)[0]
        for _ in range(2):
            if self._has_room(kind):
                break
            kind = draw.choices(self._kinds, self._weights)[0]
        else:
            return None
        register = self._count
        self._count += 1
        mean = draw.choices(LIVES, self._life_weights)[0]
        length = 1 + int(draw.expovariate(1 / mean)) if life is None else life
        self._lives[register] = _Life(kind, self.time + length)
        self.classes[register] = self._class(kind)
        self._recent.append(register)
        del self._recent[:-24]
        return register

    def _has_room(self, kind: Kind) -> bool:
        """Whether all that live leave room below the target."""
        where, width = kind
        live = sum(life.kind[1] for life in self._lives.values() if life.kind[0][0] in where)
        room = sum(self._room[file] * self._targets[file] for file in where)
        return live + width <= room

    def _class(self, kind: Kind) -> RegisterClass:
        if kind not in self._made:
            where, width = kind
            name = "".join(where).upper() + str(width)
            ranges = tuple(BaseRange(file, 0, 255 - width, 1) for file in where)
            self._made[kind] = RegisterClass(name, width, ranges)
        return self._made[kind]

    def _pick(self, count: int) -> list[int]:
        """Some of those that live, rather late ones."""
        alive = [r for r, life in self._lives.items() if not life.lent]
        if not alive:
            return []
        recent = [r for r in self._recent if r in self._lives and not self._lives[r].lent]
        pool = recent if recent and self.generator.random() < 0.6 else alive
        return self.generator.sample(pool, min(count, len(pool)))

    def _borrows(self, register: int) -> bool:
        life = self._lives[register]
        file = next((f for f in life.kind[0] if f in LENT), None)
        if file is None:
            return False
        needs = self._needs[file]
        while needs and needs[0] < self.time:
            heapq.heappop(needs)
        return bool(needs) and life.ends + LATE + 1 < needs[0]

    def _lend(self) -> list[Mention]:
        """One or more are written anew."""
        mentions = []
        for register in self._pick(self.generator.choice((1, 1, 2, 4))):
            life = self._lives[register]
            file = life.kind[0][0]
            if file not in LENT or life.ends - self.time < HELD_BACK + 2:
                continue
            mentions.append(Mention(register, Role.ANEW, self._borrows(register)))
            life.lent = True
            need = self.generator.randint(self.time + HELD_BACK, life.ends - 1)
            self._returns.setdefault(need, []).append(register)
            heapq.heappush(self._needs[file], need)
        return mentions
