"""Made-up decisions of `state`: states of the registers that kernels seldom come to.

Most tuples of a kernel are placed while much is free, and the lowest base
will do. A model has to see many cases where several lines leave little in
common, or runs of a single lane are many, and registers from all over a file.
Here free bases are drawn, and the prompt is written as the format does; what
is learnt is what the policy of `state` says: the lowest base of a tuple that
is in all lines, of a single register the least idle, of equals the lowest.

Two kinds of states that chance alone hardly ever makes are drawn often: lanes
whose runs differ at the ends only, as those of neighbours do, and one long run
at the end of a file, which may begin anywhere.
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

__all__ = ["synthetic_turns"]

WIDTHS = (1, 2, 3, 4, 5, 6, 8, 16)
FREQUENCIES = (6, 6, 1, 6, 1, 2, 3, 1)
"""How often each width is drawn: those that kernels have many of the most."""

STEPS = (1, 2, 4)
MOST_DIGITS = 14
SEVERAL, TRIES = 0.4, 20
"""The share of tuples that are drawn again, so often, until they have several lines."""

TIED = 0.03
"""The share of tuples with a tie to what is placed."""

ALIKE, MOST_BEYOND = 0.5, 3
"""The share of tuples whose lanes have runs that differ at the ends; by so many bases at most."""

LAST_RUN = 0.25
"""The share of states where little but the end of a file is free."""

CUTS = (0.0, 0.02, 0.2)
SPREADS = (1, 2, 3, MOST_DIGITS)
"""How often idle times change from base to base, and how many there are of them, in digits."""

Bases = frozenset[int]


class _Class(NamedTuple):
    """A made-up register class: its width, its legal bases by file, their names, and its words."""

    width: int
    ranges: tuple[range, ...]
    names: dict[int, str]
    words: str

    @property
    def bases(self) -> list[int]:
        return [base for bases in self.ranges for base in bases]


def synthetic_turns(count: int, seed: str, archs: Collection[str] = ()) -> Iterator[Turn]:
    """So many prompts of `state`, each with its answer; the same for the same seed.

    `archs` are those whose register files are drawn from; none stands for all.
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
    """Lines of groups of lanes, and the lowest base that suits all of them."""
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


def _widened(common: Bases, register_class: _Class, generator: Random) -> Bases:
    """Runs of bases that begin a little before, or end a little after, those of `common`."""
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


def _draw_state(register_class: _Class, pieces: int, generator: Random) -> Bases:
    """Bases as `_draw_bases` draws them; often the last of a file, and next to nothing before."""
    if generator.random() >= LAST_RUN:
        return _draw_bases(register_class, pieces, 2, generator)
    bases = generator.choice(register_class.ranges)
    found = set(bases[generator.randrange(len(bases)) :])
    if generator.random() < 0.5:
        for _ in range(generator.randint(1, 4)):
            start = generator.randrange(len(bases))
            found.update(bases[start : start + generator.randint(1, MOST_BEYOND)])
    return frozenset(found)


def _draw_bases(register_class: _Class, pieces: int, shorter: int, generator: Random) -> Bases:
    """Some runs of bases, `shorter` in proportion; now and then all from one on.

    Their lengths are spread evenly over orders of magnitude.
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
