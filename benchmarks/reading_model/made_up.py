"""Functions of no meaning, to learn from, and other budgets."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from verilocc_bench.model.reading.conversation import COUNTS, INDEX, Text

KINDS: Sequence[tuple[str, float]] = (
    ("1 v", 50.0),
    ("2 v", 9.0),
    ("4 v", 9.0),
    ("8 v", 0.7),
    ("16 v", 1.0),
    ("32 v", 0.1),
    ("3 v", 0.3),
    ("1 a v", 1.0),
    ("2 a v", 1.0),
    ("4 a v", 2.0),
    ("16 a v", 0.5),
    ("1 a", 1.5),
    ("2 a", 1.5),
    ("4 a", 4.0),
    ("16 a", 1.0),
    ("32 a", 0.1),
    ("1 s", 10.0),
    ("1 s vcc", 8.0),
    ("2 s", 4.0),
    ("2 s vcc", 8.0),
    ("4 s", 2.0),
    ("8 s", 0.2),
    ("16 s", 0.05),
    ("1 u", 0.5),
)
"""Classes of made-up functions, with their shares."""


def with_budget(text: Text, rng: random.Random) -> Text:
    """The text with another budget, often a smaller one, and other registers named in it."""
    budget, fixed = {}, list(text["fixed"]) if rng.random() < 0.5 else []
    for file, count in text["budget"].items():
        most = min(count, 102 if file == "s" else COUNTS[file])
        most = int(most * rng.choice((1.0, 1.0, 0.75, 0.5, 0.4)))
        if file in "as" and rng.random() < 0.08:
            most = rng.choice((7, 16, 63))
        budget[file] = most - (rng.randrange(16) if most > 20 and rng.random() < 0.5 else 0)
        if rng.random() < 0.5:
            first = rng.randrange(12)
            run = range(first, first + rng.randrange(20 if file == "s" else 4))
            fixed += [f"{file}{unit}" for unit in run]
        for _ in range(rng.choice((0, 1, 2, 3))):
            start, size = rng.randrange(1 + most), rng.choice((1, 2, 4))
            fixed += [f"{file}{unit}" for unit in range(start, start + size)]
    rng.shuffle(fixed)
    return {**text, "budget": budget, "fixed": [unit for unit in fixed if unit in INDEX]}


def made_up(rng: random.Random, most: int = 500) -> dict[str, Any]:
    """A function of no meaning: lines of names with short, long and looping lives."""
    count = rng.randrange(30, most)
    shares = [share * rng.choice((0.1, 1.0, 1.0, 2.0)) for _, share in KINDS]
    kinds = [kind for kind, _ in KINDS]
    default = kinds[0] if rng.random() < 0.9 else rng.choice(kinds)
    lines: list[list[Any]] = []
    recent: list[int] = []
    long_lived: list[int] = []
    room = rng.randrange(4, 60)
    near = rng.choice((3.0, 8.0, 20.0))
    fresh = rng.uniform(0.5, 0.9)
    bursts = rng.random() < 0.5
    burst: list[int] = []
    name_count = 0
    for _ in range(count):
        names: dict[int, Any] = {}
        for _ in range(rng.choices((0, 1, 2, 3), (0.25, 0.68, 0.06, 0.01))[0]):
            if recent and rng.random() > fresh:
                old = rng.choice(long_lived) if long_lived and rng.random() < 0.5 else recent[-1]
                names.setdefault(old, old)
                continue
            name, kind = name_count, rng.choices(kinds, shares)[0]
            name_count += 1
            names[name] = name if kind == default else [name, kind]
            recent.append(name)
            if rng.random() < 0.12:
                long_lived.append(name)
                if len(long_lived) > room:
                    long_lived.pop(rng.randrange(len(long_lived)))
        uses = rng.choices((0, 1, 2, 3, 4, 8), (0.08, 0.37, 0.35, 0.15, 0.04, 0.01))[0]
        for _ in range(uses):
            old = -1
            if bursts and burst and rng.random() < 0.5:
                old = burst.pop(0)
            elif long_lived and rng.random() < 0.25:
                old = rng.choice(long_lived)
            elif recent:
                old = recent[-min(len(recent), 1 + int(rng.expovariate(1 / near)))]
            if old >= 0:
                names.setdefault(old, old)
        if bursts and not burst and rng.random() < 0.05:
            burst = recent[-rng.randrange(2, 24) :]
        lines.append(list(names.values()))
    return {
        "budget": {"v": 256, "a": 256, "s": 102, "u": 7},
        "fixed": ["v0", *(f"s{unit}" for unit in range(4, 20)), "s32", "s96", "s97"],
        "default": default,
        "lines": lines,
        "blocks": _made_up_blocks(count, rng),
    }


def fragmented(rng: random.Random) -> dict[str, Any]:
    """A made-up function whose free registers, read backwards, lie apart when wide ones are due."""
    file, widths = rng.choice((("v", (4, 8, 16)), ("v", (2, 4)), ("a", (4, 16)), ("s", (2, 4, 8))))
    count = rng.randrange(16, 100 if file == "s" or rng.random() < 0.6 else 256)
    most = count - rng.randrange(count // 2)
    backwards: list[Any] = []
    kinds: list[int] = []
    for _ in range(rng.randrange(1, 5)):
        live: list[int] = []
        for chosen, room in (
            (widths[:1] if rng.random() < 0.3 else (1, 1, 1, 2), 1.0),
            (widths, 0.9),
        ):
            while (width := rng.choice(chosen)) + sum(kinds[name] for name in live) <= room * most:
                live.append(len(kinds))
                kinds.append(width)
                old = rng.choice(live) if rng.random() < 0.2 else live[-1]
                backwards.append(list(dict.fromkeys((live[-1], old))))
            if chosen == widths and rng.random() < 0.7:
                continue
            for name in rng.sample(live, int(len(live) * rng.uniform(0.4, 0.95))):
                backwards.append([name])
                live.remove(name)
        backwards += [[name] for name in live]
    return _read_backwards(backwards, [f"{kind} {file}" for kind in kinds], file, count)


def waves(rng: random.Random, most: int) -> dict[str, Any]:
    """A made-up function whose lists, read backwards, grow deep and lie untouched for long."""
    file = rng.choice("vvvas")
    widths = rng.choice(((1,), (1,), (1, 1, 1, 2), (2,), (1, 4), (4, 16), (1, 2, 4)))
    count = 102 if file == "s" else 256
    backwards: list[Any] = []
    kinds: list[str] = []
    live: list[int] = []
    units = 0
    wanted = rng.randrange(100, max(101, most))

    def take() -> None:
        nonlocal units
        width = rng.choice(widths)
        if units + width <= 0.85 * count:
            units += width
            kinds.append(f"{width} {file}")
            backwards.append([len(kinds) - 1, *rng.sample(live, min(len(live), rng.randrange(3)))])
            live.append(len(kinds) - 1)

    def give(index: int) -> None:
        nonlocal units
        name = live.pop(index)
        units -= int(kinds[name].split()[0])
        backwards.append([name])

    while len(backwards) < wanted:
        for _ in range(rng.choice((8, 40, 100, 200)) // max(widths)):
            take()
        churn = rng.choice((10, 50, 200, 600))
        deep = rng.choice((1, 2, 4, 200))
        for _ in range(churn):
            if live and rng.random() < 0.5:
                give(-1 - rng.randrange(min(deep, len(live))))
            elif rng.random() < 0.15:
                kinds.append(rng.choice(("1 s", "2 s vcc", "1 s vcc", "1 v", "2 v")))
                backwards += [[len(kinds) - 1]] * 2
            else:
                take()
        if rng.random() < 0.5:
            rng.shuffle(live)
        for _ in range(int(len(live) * rng.uniform(0.3, 1.0))):
            give(rng.choice((0, -1)))
    return _read_backwards(backwards, kinds, file, count)


def _read_backwards(
    backwards: list[list[Any]], kinds: Sequence[str], file: str, count: int
) -> dict[str, Any]:
    lines = [list(dict.fromkeys(line)) for line in backwards[::-1]]
    seen: set[int] = set()
    for line in lines:
        for index, name in enumerate(line):
            if name not in seen:
                seen.add(name)
                line[index] = [name, kinds[name]]
    budget = {"v": 8, "a": 4, "s": 12, "u": 1, file: count}
    blocks = [[0, 0, []]]
    return {"budget": budget, "fixed": [], "default": "1 v", "lines": lines, "blocks": blocks}


def random_opening(rng: random.Random) -> dict[str, Any]:
    """Budgets and registers that a text may name: runs of them, with holes."""
    budget = {
        "v": rng.choice((256, 256, 168, 128, 64, 252, rng.randrange(1, 257))),
        "a": rng.choice((0, 0, 256, 256, 16, 63, rng.randrange(257))),
        "s": rng.choice((102, 102, 102, 7, rng.randrange(1, 107))),
        "u": rng.choice((0, 0, 7)),
    }
    fixed: list[str] = []
    for file, most in budget.items():
        for _ in range(rng.choice((1, 2, 3, 4)) if file == "s" else rng.randrange(3)):
            start = rng.randrange(18 if rng.random() < 0.7 else 1 + most)
            units = list(range(start, start + rng.choice((1, 2, 3, 4, 8, 14, 18))))
            holes = rng.sample(units, rng.randrange(1 + len(units) // 2))
            fixed += [f"{file}{unit}" for unit in units if unit not in holes or rng.random() < 0.3]
    if rng.random() < 0.5:
        rng.shuffle(fixed)
    if rng.random() < 0.5:
        fixed = ["s32", *(f"s{u}" for u in range(rng.choice((96, 100)), 102)), *fixed]
    lines: list[Any] = []
    fixed = [unit for unit in fixed if unit in INDEX]
    return {"budget": budget, "fixed": fixed, "default": "1 v", "lines": lines, "blocks": []}


def _made_up_blocks(count: int, rng: random.Random) -> list[list[Any]]:
    """Blocks of `count` lines with their successors; some jump back, also over other loops."""
    starts = sorted({0, *(rng.randrange(count) for _ in range(rng.choice((0, 2, 4, 8, 16))))})
    blocks: list[list[Any]] = []
    for number, start in enumerate(starts):
        after = [min(number + 1, len(starts)), min(number + rng.randrange(2, 5), len(starts))]
        if rng.random() < 0.3:
            after[1] = rng.randrange(max(0, number - 5), number + 1)
        rng.shuffle(after)
        blocks.append([start, number, list(dict.fromkeys(after))])
    return blocks
