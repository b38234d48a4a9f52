"""Cuts functions out of the normalized text: what the program shows a model of them.

A function becomes a plain dictionary: the budget's counts, the physical registers that the text
names, in its order, the class that the header gives first, and by line its distinct names in the
order of the text, with the class where the text has one; the blocks with their successors.
Nothing but the text is read. Functions to learn from and to test are of sweep groups that have no
kernel in the small dataset.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import verilocc_bench as vb
from benchmarks.reading_model.conversation import (
    FILES,
    INDEX,
    NAME_COUNT,
    WORDS,
    Conversation,
    FreshNames,
    discuss,
    name_numbers,
)
from benchmarks.reading_model.teaching import taught
from dataset_builders.sweeps.registry import sweep_named
from dataset_builders.sweeps.splits import TRAINING

NAMED_AS = {**{file: file for file in FILES}, "R": "v", "UR": "a", "P": "s", "UP": "u"}
"""The conversation's names of files; those of sm_80 stand as AMD's."""
UNSEEN = ("sm_80", "sm_90")
BLOCK = re.compile(r"bb(\d+)(?:\((.*)\))?(?:->(.*))?$")
LINE = re.compile(r"(?:@!?(\S+) )?(?:(\S*)=)?(\S+)(?: ([^^]*))?(?: ?\^m\d+)?$")
NAME = re.compile(r"%(\d+)(?::([^!&~]+))?")
UNITS = re.compile(r"([A-Za-z]+)(?:(\d+)|\[(\d+):(\d+)\])$")


def cut(text: str) -> dict[str, Any] | None:
    """The dictionary of a text; None if there is no word for some class."""
    head, _, body = text.partition("\nbb0")
    classes: dict[str, str] = {}
    budget: dict[str, int] = {}
    fixed: list[str] = []
    files: dict[str, str] = {}
    for line in head.splitlines():
        first, *words = line.split()
        if first == "registers":
            for word in words:
                file, _, count = word.partition(":")
                if file in NAMED_AS:
                    files[NAMED_AS[file]] = file
                    budget[NAMED_AS[file]] = int(count)
        elif first in ("reserved", "mask"):
            fixed += [unit for word in words for unit in _units(word)]
        elif first == "class":
            of = [
                NAMED_AS.get(base, base) for base in re.findall(r"[a-zA-Z]+", " ".join(words[2:]))
            ]
            classes[words[0]] = " ".join([words[1], *sorted(set(of))])
            if classes[words[0]] not in INDEX:
                return None
    lines: list[list[Any]] = []
    blocks: list[list[Any]] = []
    for line in f"bb0{body}".splitlines():
        if block := BLOCK.match(line):
            live, after = block[2] or "", block[3] or ""
            blocks.append([len(lines), int(block[1]), [int(n) for n in re.findall(r"\d+", after)]])
            fixed += [unit for word in live.split(",") for unit in _units(word)]
            continue
        parts = LINE.match(line)
        assert parts is not None, line
        names: dict[int, Any] = {}
        for operand in ",".join(filter(None, (parts[1], parts[2], parts[4]))).split(","):
            fixed += _units(operand)
            if name := NAME.search(operand):
                number = int(name[1])
                names.setdefault(number, [number, _class(name[2], classes)] if name[2] else number)
        lines.append(list(names.values()))
    return {
        "budget": budget,
        "fixed": fixed,
        "default": next(iter(classes.values())),
        "lines": lines,
        "blocks": blocks,
        "registers": files,
    }


def _class(spelled: str, classes: dict[str, str]) -> str:
    """The class that stands before some lanes; its name may have dots, as theirs."""
    found = [name for name in classes if f"{spelled}.".startswith(f"{name}.")]
    return classes[max(found, key=len)]


def _units(word: str) -> list[str]:
    """The physical registers that a word of the text names, one by one."""
    units = UNITS.match(word.strip("+!&@").split("~")[0])
    if units is None or units[1] not in NAMED_AS:
        return []
    first, last = (int(units[2]),) * 2 if units[2] else (int(units[3]), int(units[4]))
    return [f"{NAMED_AS[units[1]]}{unit}" for unit in range(first, last + 1)]


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
    found = cut(problem.normalized)
    if found is not None:
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
