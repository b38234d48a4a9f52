"""What a reader gets wrong after the teacher's words, and what it says freely."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from benchmarks.reading_model.data import fits, rate
from benchmarks.reading_model.network import Memory, Reader, layer_of_rows
from verilocc_bench.model.reading.conversation import (
    MEANINGS,
    Conversation,
    FreshNames,
    Text,
    discuss,
)
from verilocc_bench.model.reading.talk import NoRoom, Speaker, WrongWord, converse

NO_TIME = "no time left"


class Stopped(Exception):
    """The model has no time left."""


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
        memory = Memory(reader, length)

        def read(words: Sequence[int], place: int) -> list[int]:
            if time.time() > end:
                raise Stopped(NO_TIME)
            read_now = torch.tensor(words, device=reader.words.device)
            numbers: list[int] = memory.read(read_now, place, temperature).tolist()
            return numbers

        try:
            converse(speaker, read, length)
        finally:
            said["count"] += len(speaker.words)
            said["refused"][kind] = said["refused"].get(kind, 0) + speaker.refused
            if speaker.refused or not speaker.over():
                said["words"].append(speaker.words)
        return speaker.answers

    why, places = "", {}
    try:
        places = discuss(text, names, speak)
    except (NoRoom, Stopped, WrongWord) as error:
        why = str(error)
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
