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
    WORDS,
    Conversation,
    FreshNames,
    NoFreeBlock,
    Text,
    discuss,
)
from benchmarks.reading_model.data import rate
from benchmarks.reading_model.listening import Listener, fits
from benchmarks.reading_model.network import Memory, Reader, layer_of_rows
from benchmarks.reading_model.teaching import Said, Teacher

BLOCK = 1024
"""Words of a draft at most."""
NO_TIME = "no time left"


class Stopped(Exception):
    """The model said a word that no answer has there, or has no time or room left."""


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


def spelled(counts: Mapping[str, Sequence[int]]) -> str:
    """Wrong words in percent, in all and by meaning."""
    parts = [f"{100 * rate(counts):.3f}%"]
    for name, (wrong, count) in counts.items():
        if name != "shown" and count:
            parts.append(f"{name} {100 * wrong / count:.2f}")
    return " ".join(parts)


class Speaker:
    """One conversation: the program shows, the model answers, the program takes note."""

    def __init__(self, conversation: Conversation) -> None:
        self.turns = conversation.turns
        self.teacher = Teacher(conversation)
        self.words = [INDEX[word] for word in conversation.opening]
        self.answers: list[list[str]] = []
        self.refused = 0
        self._show()

    def over(self) -> bool:
        """Whether all has been answered."""
        return len(self.answers) == len(self.turns)

    def _show(self) -> None:
        if not self.over():
            turn = self.turns[len(self.answers)]
            self.words += [INDEX[spoken] for spoken in turn.shown]
            self.listener = Listener(turn)

    def draft(self, count: int) -> list[int]:
        """Words that the teacher would go on with: a guess that the model's own words must meet."""
        self.teacher.said = Said()
        teacher = copy.deepcopy(self.teacher)
        words: list[int] = []
        spoken = len(self.listener.words)
        for index in range(len(self.answers), len(self.turns)):
            if len(words) >= count:
                break
            turn = self.turns[index]
            if index > len(self.answers):
                words += [INDEX[text] for text in turn.shown]
            teacher.said = Said()
            try:
                teacher.answer(turn)
            except (NoFreeBlock, KeyError):
                count = 0
            words += teacher.said.words[spoken:]
            spoken = 0
        return words

    def hear(self, answer: int) -> None:
        """Adds a word of the model, and what the program shows after it. Raises Stopped."""
        word = WORDS[answer] if answer < len(WORDS) else "<pad>"
        self.words.append(answer)
        try:
            done = self.listener.hear(word)
        except ValueError as error:
            raise Stopped(str(error)) from None
        if done:
            self.teacher.hear(self.turns[len(self.answers)], self.listener.words)
            self.answers.append(self.listener.words)
            self._show()


def converse_freely(
    reader: Reader, speaker: Speaker, *, length: int, end: float, temperature: float = 0.0
) -> None:
    """A whole conversation, each word the model's likeliest after those before. Raises Stopped.

    With a temperature a word is drawn by chance in its place.

    The model reads the teacher's next words in blocks, as a draft. A block counts up to the first
    word that is not the likeliest; there the model's own word stands, and the teacher drafts anew
    after it. So each word is the one that the model says when it reads word by word, but for
    rounding.
    """
    memory = Memory(reader, length)
    place, size = 0, BLOCK
    while not speaker.over():
        read = [*speaker.words[place:], *speaker.draft(size)][: length - place]
        if not read:
            raise Stopped("no room left")
        if time.time() > end:
            raise Stopped(NO_TIME)
        words = torch.tensor(read, device=reader.words.device)
        index = 0
        for index, said in enumerate(
            memory.read(words, place, temperature).tolist(), 1
        ):
            own = place + index == len(speaker.words)
            last = index == len(read)
            speaker.refused += own and (last or read[index] != said)
            if own:
                speaker.hear(said)
            if speaker.over() or last or read[index] != speaker.words[place + index]:
                break
        place += index
        size = min(2 * size, BLOCK) if index == len(read) else BLOCK // 8


def allocate_freely(
    reader: Reader,
    text: Text,
    seed: int,
    *,
    length: int,
    end: float,
    temperature: float = 0.0,
) -> dict[str, Any]:
    """All conversations about a function, until the time `end`; what was said and came of it.

    It keeps the words of the conversations in which the model and the teacher differ.
    """
    names = FreshNames(random.Random(seed)).of(text)
    said: dict[str, Any] = {"count": 0, "refused": {}, "words": []}

    def speak(conversation: Conversation) -> list[list[str]]:
        speaker = Speaker(conversation)
        kind = type(conversation).__name__
        try:
            converse_freely(reader, speaker, length=length, end=end, temperature=temperature)
        finally:
            said["count"] += len(speaker.words)
            said["refused"][kind] = said["refused"].get(kind, 0) + speaker.refused
            if speaker.refused or not speaker.over():
                said["words"].append(speaker.words)
        return speaker.answers

    why, places = "", {}
    try:
        places = discuss(text, names, speak)
    except (Stopped, ValueError, StopIteration) as error:  # also a register or a list that is none
        why = str(error) or type(error).__name__
    found = {name: places[word] for name, word in names.items() if word in places}
    files = text["registers"]
    return {
        "id": text["id"],
        "split": text["split"],
        "seed": seed,
        "whole": not why,
        "fits": not why and fits(text, found),
        "why": why,
        **said,
        "assignment": {f"%{name}": files[r[0]] + r[1:] for name, r in found.items()},
    }
