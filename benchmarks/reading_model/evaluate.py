"""Prints tables of a run.

    python -m benchmarks.reading_model.evaluate RESULTS GENERATIONS [DATASET]

Wrong words by meaning over the tokens of each part, beside a copier and uniform choice on the same
rows; and whole functions of the small dataset, and of the test splits of a built one, spoken freely
and judged by the verifier.
"""

from __future__ import annotations

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import verilocc_bench as vb
from benchmarks.reading_model import data
from benchmarks.reading_model.extract import evaluated, tested, unseen
from verilocc_bench.model.reading import conversation as c

Counts = Mapping[str, Sequence[float]]


def cells(counts: Counts) -> list[str]:
    """Percent wrong in all and by meaning."""
    found = [f"{100 * data.rate(counts):.3f}"]
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
    kinds = sum(word[0].isdigit() for word in c.WORDS)
    due = {c.MARK: 2 * kinds, c.BACK: 2, c.AROUND: 1 + kinds, c.OPENING: 256, c.FORM: 4}
    wrong = np.zeros(len(c.MEANINGS))
    count = np.zeros(len(c.MEANINGS), int)
    for row, said in zip(words, meanings, strict=True):
        for word, meaning in zip(row.tolist(), said.tolist(), strict=True):
            count[meaning] += 1
            text = c.WORDS[word]
            file = text[0] if c.is_register(text) else "v"
            role = text[0] in c.ROLES and text[1] == "."
            choices = due.get(meaning, 6 if role else c.COUNTS[file] + 1)
            wrong[meaning] += 1 - 1 / (c.NAME_COUNT if text[0] == "n" else choices)
    return {name: [float(wrong[i]), int(count[i])] for i, name in enumerate(c.MEANINGS)}


def _measured(name: str, minutes: str, more: Mapping[str, Any], counts: Counts) -> list[str]:
    words, own = more.get("tokens", 0), more.get("own", 0)
    return [name, minutes, f"{words / 1e6:.2f}", f"{own / 1e6:.2f}", *cells(counts)]


def rows_of(line: Mapping[str, Any]) -> Iterator[list[str]]:
    """The rows of one line of the results: a measure on the way, or those of the end."""
    name = line["name"]
    if "wrong" in line:
        yield _measured(name, f"{line.get('minutes', 0):.2f}", line, line["wrong"])
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
    lengths = {min(data.MEASURED, int(line["name"])) for line in measured if line["name"].isdigit()}
    for length in sorted(lengths):
        held = data.held_out(functions, length, 9, seed=11)
        blank = ["", "", ""]
        rows += [
            [f"copier of {context}, {length}", *blank, *cells(copier(*held, context))]
            for context in (1, 2, 4)
        ]
        rows.append([f"uniform, {length}", *blank, *cells(uniform(*held))])
    print("## Wrong words (percent), the teacher's words before\n")
    table(["part", "minutes", "M words", "M own", "wrong %", *c.MEANINGS[1:]], rows)


def _vector_registers(verdict: vb.Verdict) -> int:
    assert verdict.registers_used is not None
    return verdict.registers_used["vector"]


def judged(problem: vb.Problem, sample: Mapping[str, Any]) -> tuple[bool, str, str]:
    """Whether an answer is valid, its vector registers against the compiler's, or what is wrong."""
    if not sample["whole"]:
        return False, "-", sample["why"][:40]
    verdict = vb.verify(problem, sample["assignment"])
    if not verdict.valid:
        return False, "-", "; ".join(finding.kind for finding in verdict.findings[:3])
    assert problem.label is not None
    compiled = _vector_registers(vb.verify(problem, problem.label))
    return True, f"{_vector_registers(verdict) / compiled:.2f}", ""


def print_conversations(
    generations: Path,
    functions: Sequence[Mapping[str, Any]],
    problems: Mapping[str, vb.Problem],
) -> None:
    """The table of whole functions, spoken freely, and the copier as an allocator."""
    by_id = {function["id"]: function for function in functions}
    tally: dict[str, Counter[str]] = defaultdict(Counter)
    ratios: dict[str, list[float]] = defaultdict(list)
    rows = []
    with gzip.open(generations, "rt") as stream:
        for sample in map(json.loads, stream):
            title, split = sample["id"], sample["split"]
            problem, function = problems[title], by_id[title]
            valid, ratio, why = judged(problem, sample)
            counts = tally[split + " by chance" * bool(sample["seed"])]
            counts["asked"] += 1
            counts["valid"] += valid
            if valid:
                ratios[split].append(float(ratio))
            if sample["seed"]:
                tally[f"{split} by chance, one of the tries"][title] |= valid
            others = " ".join(map(str, sample["refused"].values()))
            about = [problem.arch, problem.family or "-", title[:8], len(function["lines"])]
            rows.append([split, *about, sample["count"], valid, ratio, others, why])
    print("## Whole functions, spoken freely\n")
    heads = "split,target,family,id,lines,words,valid,registers / compiler,other words,else"
    table(heads.split(","), rows)
    all_of = Counter(function["split"] for function in functions)
    for part, counts in tally.items():
        if "asked" in counts:
            of = f"{counts['asked']} asked, of {all_of[part.split()[0]]}"
            print(f"{part}: {counts['valid']} valid of {of}")
        else:
            print(f"{part}: {sum(counts.values())} of {len(counts)} valid")
    for split, found in ratios.items():
        print(f"{split}: {np.exp(np.log(found).mean()):.2f} times the compiler's vector registers")


def main(results: Path, generations: Path, *datasets: Path) -> None:
    """Prints all tables."""
    small = [*evaluated(), *unseen()]
    problems = {problem.id: problem for problem in vb.load_problems("mini")}
    tests = [function for dataset in datasets for function in tested(dataset)]
    for dataset in datasets:
        for split in {function["split"] for function in tests}:
            problems |= {p.id: p for p in vb.load_problems(dataset, split=split)}
    print_wrong_words(results, [f for f in small if f["split"] == "mini"])
    print_conversations(generations, [*small, *tests], problems)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
