"""Prints tables of a run.

    python -m benchmarks.reading_model.evaluate RESULTS GENERATIONS [DATASET]

Wrong words by meaning over the tokens of each part, beside a copier and uniform choice on the same
rows; and whole functions of the small dataset, and of the test splits of a built one, spoken freely
and judged by the verifier.
"""

from __future__ import annotations

import gzip
import json
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import verilocc_bench as vb
from benchmarks.reading_model import conversation as c
from benchmarks.reading_model import data
from benchmarks.reading_model.extract import evaluated, tested
from benchmarks.reading_model.listening import fits

Counts = Mapping[str, Sequence[float]]


def rate(counts: Counts) -> float:
    """The share of wrong words among the model's own."""
    own = [pair for name, pair in counts.items() if name != "shown"]
    return sum(p[0] for p in own) / max(1, sum(p[1] for p in own))


def cells(counts: Counts) -> list[str]:
    """Percent wrong in all and by meaning."""
    found = [f"{100 * rate(counts):.3f}"]
    for name in c.MEANINGS[1:]:
        wrong, count = counts.get(name, (0, 0))
        found.append(f"{100 * wrong / count:.2f}" if count else "-")
    return found


def table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Prints a Markdown table."""
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads))
    for row in rows:
        print("| " + " | ".join(map(str, row)) + " |")
    print()


def copier(words: np.ndarray, meanings: np.ndarray, context: int) -> Counts:
    """Says what stood last after the same one or two words: it reads no more than that.

    `context` is how many of the last words must agree; with fewer agreeing it falls back.
    """
    wrong = np.zeros(len(c.MEANINGS), int)
    count = np.zeros(len(c.MEANINGS), int)
    for row, said in zip(words.tolist(), meanings.tolist(), strict=True):
        after: list[dict[tuple[int, ...], int]] = [{} for _ in range(context + 1)]
        for index in range(1, len(row)):
            guess = next(
                (
                    after[size][key]
                    for size in range(context, 0, -1)
                    if (key := tuple(row[max(0, index - size) : index])) in after[size]
                ),
                -1,
            )
            count[said[index]] += 1
            wrong[said[index]] += guess != row[index]
            for size in range(1, context + 1):
                after[size][tuple(row[max(0, index - size) : index])] = row[index]
    return {name: [int(wrong[i]), int(count[i])] for i, name in enumerate(c.MEANINGS)}


def uniform(words: np.ndarray, meanings: np.ndarray) -> Counts:
    """Chooses evenly among the words of the kind that is due (expected figures)."""
    registers = {f: c.COUNTS[f] for f in c.FILES}
    wrong = np.zeros(len(c.MEANINGS))
    count = np.zeros(len(c.MEANINGS), int)
    for row, said in zip(words, meanings, strict=True):
        for word, meaning in zip(row.tolist(), said.tolist(), strict=True):
            count[meaning] += 1
            text = c.WORDS[word]
            if meaning == c.LOCAL:
                choices = 2
            elif text[0] in registers and text[1:].isdigit():
                choices = registers[text[0]] + 1
            elif text == "-":
                choices = registers["v"] + 1
            elif text[:2] in ("T.", "O.", "Q.", "H."):
                choices = 4 if meaning == c.FORM else 6
            else:
                choices = c.NAME_COUNT
            wrong[meaning] += 1 - 1 / choices
    return {name: [float(wrong[i]), int(count[i])] for i, name in enumerate(c.MEANINGS)}


def first_unused(function: Mapping[str, Any]) -> dict[int, tuple[str, int]] | None:
    """The copier as an allocator: a known name as before, a new one on what was never used."""
    left = {file: set(units) for file, units in function["offered"].items()}
    places: dict[int, tuple[str, int]] = {}
    for shown in c.script(function):
        if shown.name in places or shown.place == 3:
            continue
        file, width, _ = function["kinds"][shown.name]
        step = c.size_for(file, width)
        fitting = (
            s
            for s in sorted(left[file])
            if s % step == 0 and set(range(s, s + width)) <= left[file]
        )
        start = next(fitting, None)
        if start is None:
            return None
        left[file] -= set(range(start, start + width))
        places[shown.name] = (file, start)
    return places


def _measured(name: str, minutes: str, more: Mapping[str, Any], counts: Counts) -> list[str]:
    words, own = more.get("tokens", 0), more.get("own", 0)
    return [name, minutes, f"{words / 1e6:.2f}", f"{own / 1e6:.2f}", *cells(counts)]


def rows_of(line: Mapping[str, Any]) -> Iterator[list[str]]:
    """The rows of one line of the results: a measure on the way, or those of the end."""
    name = line["name"]
    if "wrong" in line:
        yield _measured(name, f"{line['minutes']:.2f}", line, line["wrong"])
    for label in ("mini", "made_up"):
        if "end" in line:
            yield _measured(f"{name} **{label}**", "end", line["end"], line["end"][label])
    if "as_kept" in line:
        yield _measured(f"{name} **as kept, mini**", "end", {}, line["as_kept"])


def print_wrong_words(results: Path, functions: Sequence[Mapping[str, Any]]) -> None:
    """The table of wrong words, with a copier and uniform choice on the same rows."""
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    measured = [line for line in lines if "name" in line]
    rows = [row for line in measured for row in rows_of(line)]
    parts = [line["name"].rstrip("+").split(".") for line in measured]
    for form, length in sorted({(part[2], int(part[3])) for part in parts}):
        held = data.held_out(functions, form, length, 8, seed=11)
        blank = ["", "", ""]
        for context in (1, 2, 4):
            counts = copier(*held, context)
            rows.append([f"copier of {context}, {form} {length}", *blank, *cells(counts)])
        rows.append([f"uniform, {form} {length}", *blank, *cells(uniform(*held))])
    print("## Wrong words (percent), the teacher's words before\n")
    table(["part", "minutes", "M words", "M own", "wrong %", *c.MEANINGS[1:]], rows)


def agreement(function: Mapping[str, Any], sample: Mapping[str, Any]) -> float:
    """The share of the teacher's words before the first other word."""
    if "words" not in sample:
        return 1.0
    names = c.FreshNames(random.Random(sample["seed"]))
    taught, spoken = c.converse(function, sample["form"], names)[0].words, sample["words"]
    pairs = enumerate(zip(taught, spoken, strict=False))
    until = next((i for i, (x, y) in pairs if x != y), min(len(taught), len(spoken)))
    return until / len(taught)


def _vector_registers(verdict: vb.Verdict) -> int:
    assert verdict.registers_used is not None
    return verdict.registers_used["vector"]


def judged(
    problem: vb.Problem, function: Mapping[str, Any], samples: Sequence[Mapping[str, Any]]
) -> tuple[int, list[str]]:
    """How many samples are valid; the cells of a row."""
    ratios: list[float] = []
    reasons: Counter[str] = Counter()
    assert problem.label is not None
    compiled = _vector_registers(vb.verify(problem, problem.label))
    for sample in samples:
        if not sample["whole"]:
            reasons[sample["why"][:40]] += 1
            continue
        verdict = vb.verify(problem, sample["assignment"])
        if verdict.valid:
            ratios.append(_vector_registers(verdict) / compiled)
        else:
            reasons[verdict.findings[0].kind] += 1
    names = c.FreshNames(random.Random(samples[-1]["seed"]))
    words = c.converse(function, samples[-1]["form"], names)[0].words
    row = [
        problem.arch,
        problem.family or "-",
        problem.id[:8],
        str(len(function["lines"])),
        str(len(words)),
        f"{len(ratios)} of {len(samples)}",
        f"{np.mean(ratios):.2f}" if ratios else "-",
        " ".join(f"{agreement(function, sample):.2f}" for sample in samples),
        "; ".join(f"{kind} {count}" for kind, count in reasons.items()),
    ]
    return len(ratios), row


def print_conversations(
    generations: Path,
    functions: Sequence[Mapping[str, Any]],
    problems: Mapping[str, vb.Problem],
) -> None:
    """The table of whole functions, spoken freely, and the copier as an allocator."""
    by_id = {function["id"]: function for function in functions}
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    with gzip.open(generations, "rt") as stream:
        for line in stream:
            sample = json.loads(line)
            groups[sample["part"], sample.get("split", "mini"), sample["id"]].append(sample)
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    rows = []
    for (part, split, title), samples in groups.items():
        valid, row = judged(problems[title], by_id[title], samples)
        found[f"{part} {split}"].append((valid, len(samples)))
        rows.append([part, split, *row])
    print("## Whole functions, spoken freely\n")
    heads = "part,split,target,family,id,lines,words,valid,registers / compiler"
    table([*heads.split(","), "agrees with the teacher until", "else"], rows)
    for part, pairs in found.items():
        valid, count = (sum(column) for column in zip(*pairs, strict=True))
        some = sum(pair[0] > 0 for pair in pairs)
        print(f"{part}: {valid} of {count} samples valid; {some} of {len(pairs)} functions", end="")
        print(" at least once")
    right = [f for f in functions if (places := first_unused(f)) is not None and fits(f, places)]
    lines = ", ".join(f"{f['id'][:6]} ({len(f['lines'])} lines)" for f in right)
    print(f"the copier as an allocator: {len(right)} of {len(functions)} functions: {lines}")


def main(results: Path, generations: Path, *datasets: Path) -> None:
    """Prints all tables."""
    small = list(evaluated())
    problems = {problem.id: problem for problem in vb.load_problems("mini")}
    tests = [function for dataset in datasets for function in tested(dataset)]
    for dataset in datasets:
        for split in {function["split"] for function in tests} - {"sm_80"}:
            problems |= {p.id: p for p in vb.load_problems(dataset, split=split)}
    print_wrong_words(results, small)
    print_conversations(generations, [*small, *tests], problems)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
