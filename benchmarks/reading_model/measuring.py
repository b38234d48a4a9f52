"""What a reader gets wrong after the teacher's words, and what it says freely."""

from __future__ import annotations

import copy
import random
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.reading_model.conversation import (
    INDEX,
    MEANINGS,
    SHOWN,
    TEACHERS,
    WORDS,
    FreshNames,
    NoFreeBlock,
    Said,
    shown_words,
)
from benchmarks.reading_model.listening import Listener, fits
from benchmarks.reading_model.network import Memory, Reader, layer_of_rows

BLOCK = 1024
"""Words of a draft at most."""


@torch.inference_mode()  # type: ignore[untyped-decorator]
def wrong_words(
    reader: Reader, rows: tuple[np.ndarray, np.ndarray], batch: int
) -> dict[str, list[int]]:
    """By meaning: the model's words that are not the teacher's, and all; the teacher's before."""
    wrong = np.zeros(len(MEANINGS), np.int64)
    count = np.zeros(len(MEANINGS), np.int64)
    fast, reader.run = reader.run, partial(layer_of_rows, reader.shape)
    for start in range(0, len(rows[0]), batch):
        words = torch.from_numpy(rows[0][start : start + batch]).long().to(reader.words.device)
        meanings = rows[1][start : start + batch, 1:]
        said = reader(words[:, :-1]).argmax(-1)
        missed = (said != words[:, 1:]).cpu().numpy()
        count += np.bincount(meanings.ravel(), minlength=len(MEANINGS))
        wrong += np.bincount(meanings[missed], minlength=len(MEANINGS))
    reader.run = fast
    return {MEANINGS[i]: [int(wrong[i]), int(count[i])] for i in range(len(MEANINGS))}


def rate(counts: Mapping[str, Sequence[int]]) -> float:
    """The share of wrong words among the model's own."""
    own = [pair for name, pair in counts.items() if name != "shown"]
    return sum(pair[0] for pair in own) / max(1, sum(pair[1] for pair in own))


def spelled(counts: Mapping[str, Sequence[int]]) -> str:
    """Wrong words in percent, in all and by meaning."""
    parts = [f"{100 * rate(counts):.3f}%"]
    for name, (wrong, count) in counts.items():
        if name != "shown" and count:
            parts.append(f"{name} {100 * wrong / count:.2f}")
    return " ".join(parts)


class Speaker:
    """One free conversation: the program shows names, the model answers, the program takes note."""

    def __init__(self, function: Mapping[str, Any], form: str, seed: int) -> None:
        said = Said()
        said.say("<begin>", SHOWN)
        self.teacher = TEACHERS[form](said)
        self.teacher.begin(function["offered"], None)
        self.function, self.form, self.seed = function, form, seed
        self.words = said.words
        self.script = list(FreshNames(random.Random(seed)).name(function))
        self.at = 0
        self.places: dict[int, str] = {}
        self.refused = 0
        self.over = False
        self.why = "no time or room left"
        self._show()

    def _show(self) -> None:
        if self.at == len(self.script):
            self._end("")
            return
        shown, word = self.script[self.at]
        self.words += [INDEX[spoken] for spoken in shown_words(self.function, shown, word)]
        self.listener = Listener(self.form, self.function, shown, word)
        self.answer: list[str] = []

    def draft(self, count: int) -> list[int]:
        """Words that the teacher would go on with: a guess that the model's own words must meet."""
        teacher = copy.deepcopy(self.teacher)
        words: list[int] = []
        spoken = len(self.answer)
        for index in range(self.at, len(self.script)):
            if len(words) >= count:
                break
            shown, word = self.script[index]
            if index > self.at:
                words += [INDEX[text] for text in shown_words(self.function, shown, word)]
            teacher.said = Said()
            try:
                teacher.answer(shown, self.function["kinds"][shown.name], word)
            except (NoFreeBlock, KeyError):
                count = 0
            words += teacher.said.words[spoken:]
            spoken = 0
        return words

    def hear(self, answer: int) -> None:
        """Adds a word of the model, and what the program shows after it."""
        word = WORDS[answer] if answer < len(WORDS) else "<pad>"
        self.words.append(answer)
        self.answer.append(word)
        try:
            done = self.listener.hear(word)
        except ValueError as error:
            self._end(str(error))
            return
        if done:
            shown = self.script[self.at][0]
            if shown.place in (0, 2) and self.listener.register[1:].isdigit():
                self.places.setdefault(shown.name, self.listener.register)
            self.teacher.hear(shown, self.answer)
            self.at += 1
            self._show()

    def _end(self, why: str) -> None:
        self.over, self.why = True, why

    def result(self) -> dict[str, Any]:
        """What was said, and what became of it; its words where they are not the teacher's."""
        whole = self.over and not self.why
        places = {n: (r[0], int(r[1:])) for n, r in self.places.items()}
        files = self.function["registers"]
        result = {
            "id": self.function["id"],
            "form": self.form,
            "seed": self.seed,
            "whole": whole,
            "fits": whole and fits(self.function, places),
            "why": self.why,
            "count": len(self.words),
            "refused": self.refused,
            "assignment": {f"%{n}": f"{files[f]}{u}" for n, (f, u) in places.items()},
        }
        if self.refused or not whole:
            result["words"] = self.words
        return result


def converse_freely(
    reader: Reader, form: str, function: Mapping[str, Any], seed: int, *, length: int, end: float
) -> dict[str, Any]:
    """A whole function, each word the model's likeliest after those before, until the time `end`.

    The model reads the teacher's next words in blocks, as a draft. A block counts up to the first
    word that is not the likeliest; there the model's own word stands, and the teacher drafts anew
    after it. So each word is the one that the model says when it reads word by word, but for
    rounding.
    """
    speaker = Speaker(function, form, seed)
    memory = Memory(reader, length)
    place, size = 0, BLOCK
    while place < length and time.time() < end:
        read = [*speaker.words[place:], *speaker.draft(size)][: length - place]
        words = torch.tensor(read, device=reader.words.device)
        index = 0
        for index, said in enumerate(memory.read(words, place).tolist(), 1):
            own = place + index == len(speaker.words)
            if own:
                speaker.hear(said)
            last = index == len(read)
            speaker.refused += own and (last or read[index] != said)
            if speaker.over or last or read[index] != speaker.words[place + index]:
                break
        if speaker.over:
            break
        place += index
        size = min(2 * size, BLOCK) if index == len(read) else BLOCK // 8
    return speaker.result()
