"""Made-up decisions of `state`: states of the registers that kernels seldom reach.

Most tuples of a kernel are placed while many registers are free, and the
lowest base fits. A model also has to see lines that share few bases, single
lanes with many runs, and registers from all over a file. So free bases are
drawn here, and the prompt is written as the format writes it. The answer is
the choice of the policy of `state`: for a tuple the lowest base in all lines,
for a single register the base that is idle for the shortest time, and the
lowest of several such.

Two kinds of states that are rare by chance are drawn often: lanes whose runs
differ only at the ends, as the lanes of a tuple do in kernels, and one long
run at the end of a file, which may begin anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from itertools import pairwise
from random import Random
from typing import NamedTuple

from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.model.prompts.state import IdleRun, lane_line, least_idle, tightest_lines
from verilocc_bench.targets import TARGETS, Target

WIDTHS = (1, 2, 3, 4, 5, 6, 8, 16)
FREQUENCIES = (6, 6, 1, 6, 1, 2, 3, 1)
"""How often each width is drawn; widths that are common in kernels are drawn most."""

STEPS = (1, 2, 4)
MOST_DIGITS = 14
SEVERAL, TRIES = 0.4, 20
"""The share of tuples that must have several lines, and the most draws to get them."""

TIED = 0.03
"""The share of tuples that are tied to a placed register."""

ALIKE, MOST_BEYOND = 0.5, 3
"""The share of tuples whose lanes differ at the ends of runs alone, and by how many bases."""

LAST_RUN = 0.25
"""The share of states where hardly anything before the end of a file is free."""

CUTS = (0.0, 0.02, 0.2)
SPREADS = (1, 2, 3, MOST_DIGITS)
"""The chances that the idle time changes from base to base, and the numbers of different times."""

FreeBases = frozenset[int]


class _Class(NamedTuple):
    """A made-up register class: its width, its legal bases by file, their names, and its text."""

    width: int
    ranges: tuple[range, ...]
    names: dict[int, str]
    words: str

    @property
    def bases(self) -> list[int]:
        return [base for bases in self.ranges for base in bases]


def synthetic_turns(count: int, seed: str, archs: Collection[str] = ()) -> Iterator[Turn]:
    """Yields `count` prompts of `state`, each with its answer. The seed decides them.

    The register files are those of `archs`; empty stands for all targets.
    """
    generator = Random(f"synthetic {seed}")  # noqa: S311  no secret depends on it
    architectures = sorted(archs or TARGETS)
    for _ in range(count):
        target = TARGETS[generator.choice(architectures)]
        register_class = _draw_class(target, generator)
        if register_class.width == 1:
            lines, base = _single(register_class, generator)
        else:
            lines, base = _tuple(register_class, generator)
        digits = [generator.randrange(MOST_DIGITS) for _ in range(2)]
        query = f"%0 V {register_class.words} lives {digits[0]} spare {digits[1]}"
        yield Turn("\n".join([query, *lines, ""]), register_class.names[base])


def _draw_class(target: Target, generator: Random) -> _Class:
    files = [file for file in target.files if not file.unit_names]
    scored = [file for file in files if file.name in target.vector_files]
    while True:
        (width,) = generator.choices(WIDTHS, FREQUENCIES)
        step = 1 if width == 1 else generator.choice(STEPS)
        # Large files have more states to know.
        chosen = generator.choices(files, [math.sqrt(file.count) for file in files])
        if len(scored) > 1 and generator.random() < 0.3:  # a class may allow either
            chosen = scored
        if all(file.count >= width for file in chosen):
            break
    ranges, names, first = [], {}, 0
    for file in chosen:
        bases = range(first, first + file.count - width + 1, step)
        ranges.append(bases)
        names.update({base: f"{file.name}{base - first}" for base in bases})
        first += file.count
    words = " ".join(file.name + (f"/{step}" if step > 1 else "") for file in chosen)
    return _Class(width, tuple(ranges), names, f"{width} {words}")


def _tuple(register_class: _Class, generator: Random) -> tuple[list[str], int]:
    """The lines of a tuple, one for each group of its lanes, and the base to answer."""
    width, names = register_class.width, register_class.names
    fewest = 2 if generator.random() < SEVERAL else 1
    alike = generator.random() < ALIKE
    for _ in range(TRIES):
        count = min(width, 1 + int(generator.expovariate(0.4)))
        if alike:
            common = _draw_state(register_class, 1 + generator.randrange(10), generator)
            own = [_widened(common, register_class, generator) for _ in range(count)]
        else:
            common = _draw_bases(register_class, 1 + int(generator.expovariate(0.7)), 2, generator)
            own = [
                _draw_bases(register_class, generator.randrange(1, 9), 4, generator)
                for _ in range(count)
            ]
        cuts = [0, *sorted(generator.sample(range(1, width), count - 1)), width]
        groups = [
            (range(first, end), common | bases)
            for (first, end), bases in zip(pairwise(cuts), own, strict=True)
        ]
        lines = tightest_lines(groups, register_class.ranges, names)
        if len(lines) >= fewest:
            break
    suited = frozenset[int].intersection(*(bases for _, bases in groups))
    base = min(suited)
    if generator.random() < TIED:
        base = generator.choice(sorted(suited))
        lines.append(f"tied: {names[base]}")
    return lines, base


def _widened(common: FreeBases, register_class: _Class, generator: Random) -> FreeBases:
    """The bases of `common`, with some runs that begin a little earlier or end a little later."""
    found = set(common)
    for bases in register_class.ranges:
        for number, base in enumerate(bases):
            if base not in common:
                continue
            for ahead in (-1, 1):
                beyond = number + ahead
                ends = not 0 <= beyond < len(bases) or bases[beyond] not in common
                if ends and generator.random() < 0.5:
                    reach = range(1, 1 + generator.randint(1, MOST_BEYOND))
                    places = (number + ahead * each for each in reach)
                    found.update(bases[place] for place in places if 0 <= place < len(bases))
    return frozenset(found)


def _single(register_class: _Class, generator: Random) -> tuple[list[str], int]:
    free = _draw_state(register_class, 1 + generator.randrange(12), generator)
    cut, spread = generator.choice(CUTS), generator.choice(SPREADS)
    shortest = generator.randrange(MOST_DIGITS - spread + 1)
    runs: list[IdleRun] = []
    for bases in register_class.ranges:
        previous = None
        for base in (each for each in bases if each in free):
            if previous is None or base - previous != bases.step or generator.random() < cut:
                runs.append((shortest + generator.randrange(spread), base, base))
            else:
                idle, first, _ = runs[-1]
                runs[-1] = (idle, first, base)
            previous = base
    return [lane_line(least_idle(runs), register_class.names)], min(runs)[1]


def _draw_state(register_class: _Class, pieces: int, generator: Random) -> FreeBases:
    """Draws free bases: often the last of a file with few before, else by `_draw_bases`."""
    if generator.random() >= LAST_RUN:
        return _draw_bases(register_class, pieces, 2, generator)
    bases = generator.choice(register_class.ranges)
    found = set(bases[generator.randrange(len(bases)) :])
    if generator.random() < 0.5:
        for _ in range(generator.randint(1, 4)):
            start = generator.randrange(len(bases))
            found.update(bases[start : start + generator.randint(1, MOST_BEYOND)])
    return frozenset(found)


def _draw_bases(register_class: _Class, pieces: int, shorter: int, generator: Random) -> FreeBases:
    """Draws `pieces` runs of bases, and half of the time one more that reaches the end.

    The logarithms of their lengths are uniform, up to a `shorter`-th of the bases.
    """
    bases = register_class.bases
    found: set[int] = set()
    for _ in range(pieces):
        longest = max(1, len(bases) // shorter)
        length = int(math.exp(generator.random() * math.log(longest + 1)))
        start = generator.randrange(len(bases) - length + 1)
        found.update(bases[start : start + length])
    if generator.random() < 0.5:
        found.update(bases[generator.randrange(len(bases)) :])
    return frozenset(found)
