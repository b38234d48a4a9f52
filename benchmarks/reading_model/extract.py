"""Writes the functions to learn from and to test, as they are cut out of the normalized text.

They are of sweep groups that have no kernel in the small dataset.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import verilocc_bench as vb
from dataset_builders.sweeps.registry import sweep_named
from dataset_builders.sweeps.splits import TRAINING
from verilocc_bench.errors import InputError
from verilocc_bench.model.reading.conversation import (
    NAME_COUNT,
    WORDS,
    Conversation,
    FreshNames,
    discuss,
    name_numbers,
)
from verilocc_bench.model.reading.cut import cut
from verilocc_bench.model.reading.teaching import taught

UNSEEN = ("sm_80", "sm_90")


def evaluated(split: str = "mini") -> Iterator[dict[str, Any]]:
    """The functions of the small embedded dataset: `mini`, for AMD targets, `sm_80` or `sm_90`."""
    for problem in vb.load_problems("mini"):
        if problem.arch == split or (split == "mini" and problem.arch.startswith("gfx")):
            yield from _described(problem, split)


def unseen() -> Iterator[dict[str, Any]]:
    """Those for targets that nothing is learnt of."""
    for split in UNSEEN:
        yield from evaluated(split)


def _described(problem: vb.Problem, split: str) -> Iterator[dict[str, Any]]:
    with suppress(InputError):
        found = cut(problem.normalized)
        about = {"id": problem.id, "target": problem.arch, "family": problem.family}
        yield about | {"split": split} | found | lengths(found)


def lengths(text: dict[str, Any]) -> dict[str, Any]:
    """How many words a teacher's conversations have, in all and at most; whether they end."""
    spoken: list[int] = []
    whole = True

    def speak(conversation: Conversation) -> list[list[str]]:
        nonlocal whole
        said, answers, ends = taught(conversation)
        spoken.append(len(said.words))
        whole &= ends
        return [[WORDS[word] for word in answer] for answer in answers]

    count = len(name_numbers(text))
    if count > NAME_COUNT:
        return {"names": count, "spoken": 0, "longest": 0, "whole": False}
    discuss(text, FreshNames(random.Random(0)).of(text), speak)
    return {"names": count, "spoken": sum(spoken), "longest": max(spoken), "whole": whole}


def built(dataset: Path, choose: Callable[[str], bool]) -> Iterator[dict[str, Any]]:
    """Functions of some splits of a built dataset that are of no group of the evaluated ones."""
    held_out = {problem.id for problem in vb.load_problems("mini")}
    groups = {point.group for point in sweep_named("mini").points()}
    rows = list(map(json.loads, (dataset / "rows.jsonl").read_text().splitlines()))
    may = {row["id"] for row in rows if row["group"] not in groups} - held_out
    for split in dict.fromkeys(row["split"] for row in rows if choose(row["split"])):
        for problem in vb.load_problems(dataset, split=split, arch=["gfx90a", "gfx942"]):
            if problem.id in may:
                yield from _described(problem, split)


def training(dataset: Path) -> Iterator[dict[str, Any]]:
    """The functions that may be learnt from."""
    return built(dataset, lambda split: split in TRAINING)


def tested(dataset: Path) -> Iterator[dict[str, Any]]:
    """The functions of the test splits."""
    return built(dataset, lambda split: split not in TRAINING)


def write(path: Path, functions: Iterable[dict[str, Any]]) -> int:
    """Writes functions as compressed JSON lines; returns their number."""
    count = 0
    with gzip.open(path, "wt", compresslevel=9) as stream:
        for function in functions:
            stream.write(json.dumps(function, separators=(",", ":")) + "\n")
            count += 1
    return count


if __name__ == "__main__":
    out, dataset = Path(sys.argv[1]), Path(sys.argv[2])
    print(write(out / "mini.jsonl.gz", evaluated()))
    print(write(out / "train.jsonl.gz", training(dataset)))
    print(write(out / "test.jsonl.gz", [*unseen(), *tested(dataset)]))
