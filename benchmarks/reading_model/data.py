"""Rows of words to learn from: conversations about made-up functions and about real ones.

A row is filled with conversations, one after the other, until it is full. Their names are apart,
so that nothing of an earlier conversation answers a later one.
"""

from __future__ import annotations

import gzip
import json
import multiprocessing as mp
import os
import queue
import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.reading_model.conversation import COUNTS, FILES, FreshNames, Said, converse

FORMS = ("links", "lowest")
Described = Mapping[str, Any]
"""A function as `conversation` reads it: kinds, lines, loops, offered."""

MADE_UP_KINDS: Sequence[tuple[list[Any], float]] = (
    (["v", 1, "1 v"], 50.0),
    (["v", 2, "2 v"], 9.0),
    (["v", 4, "4 v"], 9.0),
    (["v", 8, "8 v"], 0.7),
    (["v", 16, "16 v"], 1.0),
    (["v", 32, "32 v"], 0.1),
    (["v", 3, "3 v"], 0.3),
    (["v", 1, "1 a v"], 1.0),
    (["v", 2, "2 a v"], 1.0),
    (["v", 4, "4 a v"], 2.0),
    (["v", 16, "16 a v"], 0.5),
    (["a", 1, "1 a"], 1.5),
    (["a", 2, "2 a"], 1.5),
    (["a", 4, "4 a"], 4.0),
    (["a", 16, "16 a"], 1.0),
    (["a", 32, "32 a"], 0.1),
    (["s", 1, "1 s"], 10.0),
    (["s", 1, "1 s vcc"], 8.0),
    (["s", 2, "2 s"], 4.0),
    (["s", 2, "2 s vcc"], 8.0),
    (["s", 4, "4 s"], 2.0),
    (["s", 8, "8 s"], 0.2),
    (["s", 16, "16 s"], 0.05),
)
"""Classes of made-up functions, with their shares."""


LINE = 12
"""At least so many words go with a line of a made-up function."""


def load(path: Path) -> list[dict[str, Any]]:
    """Functions from compressed JSON lines."""
    with gzip.open(path, "rt") as stream:
        return [json.loads(line) for line in stream]


def offered_at_random(
    offered: Mapping[str, Sequence[int]], rng: random.Random
) -> dict[str, list[int]]:
    """The offered registers, often those of a smaller budget, with some left out."""
    if rng.random() < 0.4:
        return {file: list(units) for file, units in offered.items()}
    found = {}
    for file in FILES:
        most = int(COUNTS[file] * rng.choice((1.0, 1.0, 0.75, 0.5, 0.4)))
        left_out = {rng.randrange(1 + most) for _ in range(rng.randrange(12 if file == "s" else 4))}
        first = set(range(rng.choice((0, 0, 0, 1, 4, 16))))
        found[file] = (
            [u for u in range(min(most, 102)) if u not in left_out | first]
            if file == "s"
            else [u for u in range(most) if u not in left_out | first]
        )
    return found


def made_up(rng: random.Random, most: int = 500) -> dict[str, Any]:
    """A function of no meaning: lines of names with short, long and looping lives."""
    count = rng.randrange(30, most)
    shares = [share * rng.choice((0.1, 1.0, 1.0, 2.0)) for _, share in MADE_UP_KINDS]
    kinds: list[list[Any]] = []
    lines: list[list[int]] = []
    recent: list[int] = []
    long_lived: list[int] = []
    room = rng.randrange(4, 60)
    near = rng.choice((3.0, 8.0, 20.0))
    fresh = rng.uniform(0.5, 0.9)
    bursts = rng.random() < 0.5
    burst: list[int] = []
    for _ in range(count):
        names: dict[int, None] = {}
        for _ in range(rng.choices((0, 1, 2, 3), (0.25, 0.68, 0.06, 0.01))[0]):
            if recent and rng.random() > fresh:
                names[
                    rng.choice(long_lived) if long_lived and rng.random() < 0.5 else recent[-1]
                ] = None
                continue
            name = len(kinds)
            kinds.append(rng.choices(MADE_UP_KINDS, shares)[0][0])
            names[name] = None
            recent.append(name)
            if rng.random() < 0.12:
                long_lived.append(name)
                if len(long_lived) > room:
                    long_lived.pop(rng.randrange(len(long_lived)))
        uses = rng.choices((0, 1, 2, 3, 4, 8), (0.08, 0.37, 0.35, 0.15, 0.04, 0.01))[0]
        for _ in range(uses):
            if bursts and burst and rng.random() < 0.5:
                names[burst.pop(0)] = None
            elif long_lived and rng.random() < 0.25:
                names[rng.choice(long_lived)] = None
            elif recent:
                names[recent[-min(len(recent), 1 + int(rng.expovariate(1 / near)))]] = None
        if bursts and not burst and rng.random() < 0.05:
            burst = recent[-rng.randrange(2, 24) :]
        lines.append(list(names))
    loops = _made_up_loops(count, rng)
    offered = {"v": range(1, 256), "a": range(256), "s": [*range(4), *range(20, 96)]}
    return {
        "kinds": kinds,
        "lines": lines,
        "loops": sorted(set(loops)),
        "offered": {file: list(units) for file, units in offered.items()},
    }


def _made_up_loops(count: int, rng: random.Random) -> list[tuple[int, int]]:
    """First and last lines of loops among `count` lines; some lie in others."""
    loops: list[tuple[int, int]] = []
    for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
        start = rng.randrange(count)
        loops.append((start, min(count - 1, start + rng.randrange(1, 2 + count // 3))))
    for start, end in list(loops):
        if rng.random() < 0.2 and end - start > 6:
            loops.append((start + (end - start) // 3, end - (end - start) // 4))
    return loops


def one_conversation(
    function: Described,
    form: str,
    names: FreshNames,
    rng: random.Random,
    limit: int,
    *,
    from_end: float,
    plain: bool,
) -> Said:
    """A conversation about a function, or about its lines before some line."""
    count = len(function["lines"])
    stop = None if rng.random() < from_end else rng.randrange(min(20, count), count + 1)
    if plain or rng.random() < 0.4:
        return converse(function, form, names, stop=stop, limit=limit)[0]
    offered = offered_at_random(function["offered"], rng)
    order = rng if rng.random() < 0.5 else None
    return converse(function, form, names, stop=stop, rng=order, offered=offered, limit=limit)[0]


def row(
    choose: Callable[[random.Random], Described],
    form: str,
    length: int,
    rng: random.Random,
    *,
    from_end: float = 0.5,
    plain: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """A row of words with their meanings. `plain`: budgets and lists as the header has them."""
    words: list[int] = []
    meanings: list[int] = []
    names = FreshNames(rng)
    while len(words) < length:
        said = one_conversation(
            choose(rng), form, names, rng, length - len(words), from_end=from_end, plain=plain
        )
        words += said.words
        meanings += said.meanings
    return np.array(words[:length], np.int16), np.array(meanings[:length], np.uint8)


def held_out(
    functions: Sequence[Described], form: str, length: int, rows: int, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The same rows whenever asked: windows of these functions, half of them from the end on."""
    rng = random.Random(seed)
    found = []
    for index in range(rows):
        function = functions[index * 7 % len(functions)]
        found.append(
            row(
                lambda _, f=function: f,  # type: ignore[misc]
                form,
                length,
                rng,
                from_end=(index + 1) % 2,
                plain=True,
            )
        )
    return np.stack([w for w, _ in found]), np.stack([m for _, m in found])


def held_out_made_up(
    form: str, length: int, rows: int, seed: int = 2
) -> tuple[np.ndarray, np.ndarray]:
    """The same rows of made-up functions whenever asked."""
    rng = random.Random(seed)
    found = [row(made_up, form, length, rng) for _ in range(rows)]
    return np.stack([w for w, _ in found]), np.stack([m for _, m in found])


class Feeder:
    """Processes that make rows; what they make can be changed on the way."""

    def __init__(self, functions: Sequence[Described], workers: int, rows: int, seed: int) -> None:
        context = mp.get_context("fork")
        self._setting = context.Array("l", [0, 128])
        self._queue: Any = context.Queue(maxsize=6 * workers)
        self._processes = [
            context.Process(
                target=_feed,
                args=(functions, self._setting, self._queue, rows, seed + index),
                daemon=True,
            )
            for index in range(workers)
        ]
        for process in self._processes:
            process.start()
        self.waited = 0

    def turn_to(self, form: str, length: int) -> None:
        """From now on rows of this format and length."""
        self._wanted = (FORMS.index(form), length)
        self._setting[:] = self._wanted

    def batch(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The next rows."""
        words: list[np.ndarray] = []
        meanings: list[np.ndarray] = []
        count = 0
        while count < rows:
            try:
                setting, new_words, new_meanings = self._queue.get_nowait()
            except queue.Empty:
                self.waited += 1
                setting, new_words, new_meanings = self._queue.get()
            if setting == self._wanted:
                words.append(new_words)
                meanings.append(new_meanings)
                count += len(new_words)
        return np.concatenate(words)[:rows], np.concatenate(meanings)[:rows]

    def close(self) -> None:
        """Ends the processes."""
        for process in self._processes:
            process.terminate()


def _feed(functions: Sequence[Described], setting: Any, out: Any, rows: int, seed: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    rng = random.Random(seed)

    def choose(rng: random.Random) -> Described:
        if not functions or rng.random() < 0.5:
            return made_up(rng, max(500, wanted[1] // LINE))
        return max(rng.choices(functions, k=3), key=lambda f: int(f["spoken"]))

    while True:
        wanted = (int(setting[0]), int(setting[1]))
        made = [row(choose, FORMS[wanted[0]], wanted[1], rng) for _ in range(rows)]
        out.put((wanted, np.stack([w for w, _ in made]), np.stack([m for _, m in made])))
