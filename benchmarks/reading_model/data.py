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

from benchmarks.reading_model.made_up import fragmented, made_up, random_opening, waves, with_budget
from verilocc_bench.model.reading.conversation import (
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
    discuss,
    loops_of,
)
from verilocc_bench.model.reading.teaching import taught

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
"""A line of a made-up function takes at least this number of words."""
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


def fits(text: Text, places: Mapping[int, str]) -> bool:
    """Whether each name has registers of its own from its first place to its last and in loops."""
    names = FreshNames(random.Random(0)).of(text)
    registers = {names[name]: register for name, register in places.items()}
    conversations: list[Backward] = []

    def speak(conversation: Conversation) -> list[list[str]]:
        if isinstance(conversation, Backward):
            conversations.append(conversation)
            return []
        return answers(conversation)

    discuss(text, names, speak)
    held: dict[tuple[str, int], str] = {}
    fixed = set(text["fixed"])
    for turn in conversations[0].turns[1:]:
        mark, word = turn.shown
        if word not in registers:
            return False
        file, start = registers[word][0], int(registers[word][1:])
        for unit in range(start, start + int(mark.lstrip("*~").split()[0])):
            if (
                held.setdefault((file, unit), word) != word
                or f"{file}{unit}" in fixed
                or unit >= text["budget"].get(file, 0)
            ):
                return False
            if turn.ask == "free":
                del held[file, unit]
    return True


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
