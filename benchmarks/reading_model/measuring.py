"""What a reader gets wrong after the teacher's words, and what it says freely."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.reading_model.conversation import (
    BEGIN,
    INDEX,
    MEANINGS,
    TEACHERS,
    WORDS,
    Said,
    Shown,
    converse,
    fresh_names,
    script,
    shown_words,
)
from benchmarks.reading_model.listening import Listener, fits
from benchmarks.reading_model.network import Memory, Reader, layer_of_rows


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
        said.say("<begin>", 0)
        TEACHERS[form](said).begin(function["offered"], None)
        self.function, self.form, self.seed = function, form, seed
        self.words = said.words
        self.shown_before = len(said.words)
        self.names = fresh_names(random.Random(seed))
        self.name_words: dict[int, str] = {}
        self.script = script(function)
        self.waiting: list[int] = list(said.words)
        self.listener: Listener | None = None
        self.shown: Shown | None = None
        self.places: dict[int, str] = {}
        self.over = False
        self.why = ""
        self.at = 0

    def next(self, answer: int | None) -> int | None:
        """The word that comes next; None where the conversation is over."""
        if self.at >= len(self.words) and self.listener is not None and answer is not None:
            word = WORDS[answer] if answer < len(WORDS) else "<pad>"
            self.words.append(answer)
            try:
                done = self.listener.hear(word)
            except ValueError as error:
                self._end(str(error))
                return None
            if done:
                self._note()
        if self.at >= len(self.words) and self.listener is None:
            self._show()
        if self.over or self.at >= len(self.words):
            return None
        self.at += 1
        return self.words[self.at - 1]

    @property
    def speaks(self) -> bool:
        """Whether the next word is the model's."""
        return not self.over and self.at >= len(self.words) and self.listener is not None

    def _note(self) -> None:
        assert self.listener is not None
        assert self.shown is not None
        if self.shown.place in (0, 2) and self.listener.register[1:].isdigit():
            self.places.setdefault(self.shown.name, self.listener.register)
        self.listener = None

    def _show(self) -> None:
        shown = next(self.script, None)
        if shown is None:
            self._end("")
            return
        self.shown = shown
        word = self.name_words.get(shown.name) or self.name_words.setdefault(
            shown.name, self.names()
        )
        self.words += [INDEX[spoken] for spoken in shown_words(self.function, shown, word)]
        self.listener = Listener(self.form, self.function, shown, word)

    def _end(self, why: str) -> None:
        self.over, self.why = True, why

    def result(self) -> dict[str, Any]:
        """What was said, and what became of it."""
        whole = self.over and not self.why
        places = {n: (r[0], int(r[1:])) for n, r in self.places.items()}
        return {
            "id": self.function["id"],
            "form": self.form,
            "seed": self.seed,
            "whole": whole,
            "fits": whole and fits(self.function, places),
            "why": self.why if self.over else "no time or room left",
            "assignment": {f"%{name}": register for name, register in self.places.items()},
            "words": self.words,
        }


def converse_freely(
    reader: Reader,
    form: str,
    functions: Sequence[tuple[Mapping[str, Any], int]],
    length: int,
    seconds: float,
) -> list[dict[str, Any]]:
    """Whole functions, each word the likeliest; all conversations go on side by side."""
    speakers = [Speaker(function, form, seed) for function, seed in functions]
    memory = Memory(reader, len(speakers), length)
    answers: list[int] = [0] * len(speakers)
    end = time.time() + seconds
    device = reader.words.device
    for _ in range(length):
        inputs = [s.next(a) if not s.over else None for s, a in zip(speakers, answers, strict=True)]
        if all(s.over for s in speakers) or time.time() > end:
            break
        words = torch.tensor([BEGIN if i is None else i for i in inputs], device=device)
        answers = memory.read(words).argmax(-1).tolist()
    return [speaker.result() for speaker in speakers]


def small_enough(
    functions: Sequence[Mapping[str, Any]], form: str, length: int, copies: int
) -> list[tuple[Mapping[str, Any], int]]:
    """Functions whose conversation with the teacher ends within the length, each some times."""
    found = []
    for function in functions:
        _, _, whole = converse(function, form, fresh_names(random.Random(0)), limit=length)
        if whole:
            found += [(function, seed) for seed in range(copies)]
    return found
