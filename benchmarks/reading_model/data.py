"""Rows of words to learn from: conversations about made-up functions and about real ones.

A row is filled with conversations, one after the other. Their names are apart, so that nothing of
an earlier conversation answers a later one.
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

from benchmarks.reading_model.conversation import (
    COUNTS,
    INDEX,
    NAME_COUNT,
    PAD,
    WORDS,
    Backward,
    Conversation,
    Forward,
    FreshNames,
    Loop,
    Text,
    loops_of,
)
from benchmarks.reading_model.teaching import taught

MADE_UP_KINDS: Sequence[tuple[str, float]] = (
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
KINDS: Sequence[tuple[str, float]] = (
    ("forward", 0.2),
    ("loop", 0.2),
    ("backward", 0.42),
    ("opening", 0.18),
)
"""Kinds of conversations, with their shares; `opening` is a backward one without lines."""
SHORT, SHORT_ROWS = 2048, 8
SHORT_SHARE = 0.25
"""Of what is read at once: short rows, which begin as the conversations do that the model has."""
LINE = 12
"""At least so many words go with a line of a made-up function."""
MEASURED = 8192
"""The most words of a row on which wrong words are counted."""
IS_NAME = np.array([word[0] == "n" for word in WORDS])


def rate(counts: Mapping[str, Sequence[float]]) -> float:
    """The share of wrong words among the model's own."""
    own = [pair for name, pair in counts.items() if name != "shown"]
    return sum(pair[0] for pair in own) / max(1, sum(pair[1] for pair in own))


def load(path: Path) -> list[dict[str, Any]]:
    """Functions from compressed JSON lines."""
    with gzip.open(path, "rt") as stream:
        return [json.loads(line) for line in stream]


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


def with_default(text: Text, rng: random.Random) -> Text:
    """The text with another class standing first in the header: others are spelled out."""
    kinds: dict[int, str] = {}
    for line in text["lines"]:
        for item in line:
            number, kind = (item, text["default"]) if isinstance(item, int) else item
            kinds.setdefault(number, kind)
    default = rng.choice([*dict.fromkeys(kinds.values()), text["default"]])
    seen: set[int] = set()
    lines: list[list[Any]] = []
    for line in text["lines"]:
        lines.append([])
        for item in line:
            number = item if isinstance(item, int) else item[0]
            plain = number in seen or kinds[number] == default
            lines[-1].append(number if plain else [number, kinds[number]])
            seen.add(number)
    return {**text, "lines": lines, "default": default}


def until(text: Text, stop: int) -> Text:
    """The text before a line."""
    blocks = [block for block in text["blocks"] if block[0] < stop]
    return {**text, "lines": text["lines"][:stop], "blocks": blocks}


def reordered(text: Text, rng: random.Random) -> Text:
    """The text with neighbouring lines of a block exchanged where they share no name."""
    lines = list(text["lines"])
    names = [{item if isinstance(item, int) else item[0] for item in line} for line in lines]
    heads = {block[0] for block in text["blocks"]}
    for _ in range(rng.randrange(1, 9)):
        for index in range(rng.randrange(2), len(lines) - 1):
            after = index + 1
            if after not in heads and rng.random() < 0.5 and names[index].isdisjoint(names[after]):
                lines[index], lines[after] = lines[after], lines[index]
                names[index], names[after] = names[after], names[index]
    return {**text, "lines": lines}


def made_up(rng: random.Random, most: int = 500) -> dict[str, Any]:
    """A function of no meaning: lines of names with short, long and looping lives."""
    count = rng.randrange(30, most)
    shares = [share * rng.choice((0.1, 1.0, 1.0, 2.0)) for _, share in MADE_UP_KINDS]
    kinds = [kind for kind, _ in MADE_UP_KINDS]
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


def one_conversation(text: Text, kind: str, rng: random.Random, names: FreshNames) -> Conversation:
    """A conversation about a text, after those with a perfect reader that lead to it."""
    if kind == "opening":
        opened = random_opening(rng) if rng.random() < 0.8 else {**text, "lines": []}
        return Backward(opened, {}, [], {})
    words = names.of(text)
    forward = Forward(text, words)
    if kind == "forward":
        return forward
    marks, jumps = forward.marks(answers(forward))
    spans = loops_of(text, jumps)
    if kind == "loop":
        start = rng.randrange(len(text["lines"]))
        made_up_span = (start, rng.randrange(start, len(text["lines"])) + 1)
        chosen = rng.choice(spans) if spans and rng.random() < 0.7 else made_up_span
        return Loop(text, words, marks, chosen)
    around: dict[int, list[tuple[str, str]]] = {}
    for span in spans:
        loop = Loop(text, words, marks, span)
        around.setdefault(span[1] - 1, []).extend(loop.around(answers(loop)))
    return Backward(text, words, marks, around)


def answers(conversation: Conversation) -> list[list[str]]:
    """A perfect reader's answers."""
    return [[WORDS[word] for word in answer] for answer in taught(conversation)[1]]


def row(
    choose: Callable[[random.Random], Text],
    length: int,
    rng: random.Random,
    *,
    kinds: Sequence[tuple[str, float]] = KINDS,
    plain: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """A row of words with their meanings. `plain`: texts, budgets and lists as they are."""
    words = np.full(length, PAD, np.int16)
    meanings = np.zeros(length, np.uint8)
    names = FreshNames(rng)
    at = used = 0
    while at < length:
        text = choose(rng)
        if not plain:
            if rng.random() < 0.5:
                text = until(text, rng.randrange(1, len(text["lines"]) + 1))
            if rng.random() < 0.5:
                text = reordered(text, rng)
            if rng.random() < 0.3:
                text = with_default(text, rng)
            if rng.random() < 0.6 and len(text["fixed"]) > 0:
                text = with_budget(text, rng)
            elif rng.random() < 0.3 and len(text["fixed"]) > 0:
                text = {**text, "fixed": random_opening(rng)["fixed"]}
        kind = rng.choices([k for k, _ in kinds], [share for _, share in kinds])[0]
        if not at and length > SHORT and len(kinds) > 1 and rng.random() < 0.5:
            kind = "backward"  # the far places are those of long backward readings
        conversation = one_conversation(text, kind, rng, FreshNames(rng))
        shuffled = rng if not plain and rng.random() < 0.1 else None
        said = taught(conversation, shuffled, length - at)[0]
        spoken = np.array(said.words[: length - at], np.int16)
        own = sorted(set(spoken[IS_NAME[spoken]].tolist()))
        used += len(own)
        if used > NAME_COUNT and at:
            break
        fresh = names.some(len(own))
        spoken = _renamed(spoken, own, fresh)
        words[at : at + len(spoken)] = spoken
        meanings[at : at + len(spoken)] = said.meanings[: len(spoken)]
        at += len(spoken)
    return words, meanings


def _renamed(words: np.ndarray, old: Sequence[int], new: Sequence[str]) -> np.ndarray:
    table = np.arange(len(WORDS), dtype=np.int16)
    table[list(old)] = [INDEX[word] for word in new]
    renamed: np.ndarray = table[words]
    return renamed


def held_out(
    functions: Sequence[Text], length: int, rows: int, seed: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    """The same rows whenever asked, in equal parts of each kind of conversation."""
    rng = random.Random(seed)
    found = []
    for index in range(rows):
        function = functions[index * 7 % len(functions)]
        kinds = [(KINDS[index % 3][0], 1.0)]
        found.append(row(lambda _, f=function: f, length, rng, kinds=kinds, plain=True))  # type: ignore[misc]
    return np.stack([w for w, _ in found]), np.stack([m for _, m in found])


def held_out_made_up(length: int, rows: int, seed: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """The same rows of made-up functions whenever asked."""
    rng = random.Random(seed)
    found = [row(made_up, length, rng) for _ in range(rows)]
    return np.stack([w for w, _ in found]), np.stack([m for _, m in found])


class Feeder:
    """Processes that make rows; their length can be changed on the way."""

    def __init__(self, functions: Sequence[Text], workers: int, seed: int) -> None:
        context = mp.get_context("fork")
        self._length = context.Value("l", 128)
        self._queue: Any = context.Queue(maxsize=6 * workers)
        self._processes = [
            context.Process(
                target=_feed,
                args=(functions, self._length, self._queue, seed + index),
                daemon=True,
            )
            for index in range(workers)
        ]
        for process in self._processes:
            process.start()
        self.waited = 0

    def turn_to(self, length: int) -> None:
        """From now on rows of this length."""
        self._length.value = self._wanted = length
        self._ready: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}

    def batch(self, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The next rows, or in their place some short ones."""
        while True:
            try:
                item = self._queue.get_nowait()
            except queue.Empty:
                self.waited += 1
                item = self._queue.get(timeout=90)
            length, words, meanings = item
            if length == self._wanted:
                ready = self._ready.setdefault(words.shape[1], [])
                ready.append((words, meanings))
                if len(ready) == rows or len(words) > 1:
                    del self._ready[words.shape[1]]
                    return (
                        np.concatenate([pair[0] for pair in ready]),
                        np.concatenate([pair[1] for pair in ready]),
                    )

    def close(self) -> None:
        """Ends the processes."""
        for process in self._processes:
            process.terminate()


def _feed(functions: Sequence[Text], length: Any, out: Any, seed: int) -> None:
    os.environ["OMP_NUM_THREADS"] = "1"
    rng = random.Random(seed)

    def choose(rng: random.Random) -> Text:
        share = rng.random()
        if share < 0.1:
            return fragmented(rng)
        if share < 0.3:
            return waves(rng, max(500, wanted // LINE))
        if share < 0.5 or not functions:
            return made_up(rng, max(500, wanted // LINE))
        return max(rng.choices(functions, k=2), key=lambda f: len(f["lines"]))

    while True:
        wanted = int(length.value)
        short = wanted > SHORT and rng.random() < SHORT_SHARE
        count, size = (SHORT_ROWS, SHORT) if short else (1, wanted)
        made = [row(choose, size, rng) for _ in range(count)]
        out.put((wanted, np.stack([w for w, _ in made]), np.stack([m for _, m in made])))
