"""Execution of the embedded dataset's kernels on gfx90a and gfx942: numbers, bits, waits, speed.

    python benchmarks/execution.py answers --output FILE [--tiles N] [--limit N]
        [--dataset NAME] [--splits NAME,…] [--sample N]
    python benchmarks/execution.py table FILE…

`answers` executes llc's own allocation in both modes, and the label, linear scan's and the best
known answer (on the split track spilling everywhere and splitting live ranges) in asynchronous
time; numbers against the reference, bits against llc's own. Each result is a line of FILE; a run
that is started again does only what FILE lacks. `table` sums up. Speed is wave instructions in a
second of processor time, without decoding.

The kernels are those of mini, or of another dataset: a name, or a folder that dataset_builders
made. `--sample N` takes N rows, in turn from each kernel, target and number format.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from tabulate import tabulate

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends import backend_of
from verilocc_bench.dataset import Row, load_raw_row, load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.errors import VerilocError
from verilocc_bench.execution import AnswerExecutor

STEP_LIMIT = 2_000_000


SplitRow = tuple[str, Row]
"""The name of a split, and one of its rows."""


def chosen_rows(dataset: str, splits: Sequence[str], sample: int | None) -> list[SplitRow]:
    """The rows of both AMD targets and tracks."""
    rows = [
        (split, row)
        for track in ("assign", "split")
        for split in splits
        for row in load_rows(dataset, split=split, track=track).rows
        if row.arch != "sm_80"
    ]
    if sample is None:
        return rows
    groups: dict[tuple[str, str, str], list[SplitRow]] = defaultdict(list)
    for split, row in sorted(rows, key=lambda pair: pair[1].id):
        parameters = json.loads(row.params)
        groups[row.kernel, row.arch, str(parameters.get("dtype"))].append((split, row))
    turns = zip_longest(*(groups[key] for key in sorted(groups)))
    return [row for turn in turns for row in turn if row is not None][:sample]


def kernels(
    rows: Sequence[SplitRow], tiles: int, dataset: str = "mini"
) -> Iterator[tuple[Row, AnswerExecutor, AnswerExecutor]]:
    """Each row with an executor in asynchronous time, and one without."""
    for split, row in rows:
        problem = AllocationProblem.from_text(row.normalized, row.id)
        raw = load_raw_row(dataset, row.id, split=split)
        kernel = backend_of(problem.target).read_raw(raw.content, problem, row.id)
        yield (
            row,
            AnswerExecutor.of_row(kernel, row, tiles=tiles, step_limit=STEP_LIMIT),
            AnswerExecutor.of_row(
                kernel, row, tiles=tiles, step_limit=STEP_LIMIT, asynchronous=False
            ),
        )


def names_of_answers(row: Row) -> list[str]:
    """The answers to a kernel besides llc's own."""
    known = [("label", row.label), ("best", row.best_label)]
    models = ("linear-scan",) if row.label else ("spill-everywhere", "live-range-splitting")
    return [*(name for name, answer in known if answer is not None), *models]


def answer_of(row: Row, name: str, problem: AllocationProblem) -> Answer | None:
    """One of these answers; None where an allocator finds none."""
    known = {"label": row.label, "best": row.best_label}.get(name)
    if known is not None:
        return Answer(known)
    try:
        return BUILT_IN[name].allocate(Request(problem))
    except VerilocError:
        return None


class Measurements:
    """The lines of a file by their keys. A line that was cut short is measured again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines(keepends=True) if path.exists() else []
        if lines and not lines[-1].endswith("\n"):
            path.write_text("".join(lines[:-1]))
            del lines[-1]
        self.done = {tuple(entry["key"]): entry for entry in map(json.loads, lines)}

    def add(self, key: tuple[object, ...], **result: Any) -> None:
        self.done[key] = {"key": key, **result}
        with self.path.open("a") as file:
            file.write(json.dumps(self.done[key]) + "\n")


def run_answers(options: argparse.Namespace) -> None:
    results = Measurements(options.output)
    rows = chosen_rows(options.dataset, options.splits.split(","), options.sample)[: options.limit]
    left = [pair for pair in rows if missing(results, pair[1], options.tiles)]
    for row, late, fast in kernels(left, options.tiles, options.dataset):
        about = {"arch": row.arch, "kernel": row.kernel, "track": row.track}
        about["dtype"] = json.loads(row.params).get("dtype")
        for name in missing(results, row, options.tiles):
            key = ("answers", row.id, options.tiles, name)
            if name == "own":
                fast.__dict__["own_code"] = late.own_code
                results.add(key, **about, **own_result(late, fast))
            elif name in missing(results, row, options.tiles):
                answer = answer_of(row, name, late.kernel.problem)
                if answer is None:
                    results.add(key, **about, outcome="no answer", same=None)
                    continue
                done = late.execute(answer)
                results.add(
                    key, **about, outcome=done.outcome, same=done.same_bits, why=done.why,
                    events=done.event_count,
                )  # fmt: skip


def missing(results: Measurements, row: Row, tiles: int) -> list[str]:
    """The answers that have not been executed; none besides llc's own where that does not run."""
    own = results.done.get(("answers", row.id, tiles, "own"))
    if own is not None and own["outcome"] in {"refused", "fault"}:
        return []
    names = ["own", *names_of_answers(row)]
    return [name for name in names if ("answers", row.id, tiles, name) not in results.done]


def own_result(late: AnswerExecutor, fast: AnswerExecutor) -> dict[str, Any]:
    """llc's own allocation in both modes."""
    slow_result, fast_result = late.own, fast.own
    if fast_result.outcome in {"refused", "fault"}:
        return {"outcome": fast_result.outcome, "why": fast_result.why}
    kernel, seconds = late.load(late.own_code), []
    for asynchronous in (False, True):
        start = time.process_time()
        launch = late.launch
        kernel.run(late.arguments, launch.grid, asynchronous=asynchronous, groups=launch.groups)
        seconds.append(time.process_time() - start)
    same = all(
        slow_result.buffers[name].tobytes() == content.tobytes()
        for name, content in fast_result.buffers.items()
    )
    opcodes = Counter(opcode_name(i.mnemonic) for i in kernel.program.instructions)
    worst = max(fast_result.comparisons, key=lambda c: c.error / max(c.tolerance, 1e-30))
    return {
        "outcome": slow_result.outcome, "fast": fast_result.outcome, "same": same,
        "why": slow_result.why, "events": slow_result.event_count,
        "instructions": fast_result.wave_instructions, "seconds": seconds[0],
        "asynchronous_seconds": seconds[1], "error": worst.error, "tolerance": worst.tolerance,
        "opcodes": dict(opcodes),
    }  # fmt: skip


def opcode_name(mnemonic: str) -> str:
    """An opcode without its encoding."""
    return re.sub("_(e32|e64|sdwa|dpp)$", "", mnemonic)


def show_table(options: argparse.Namespace) -> None:
    found = [json.loads(line) for path in options.files for line in path.read_text().splitlines()]
    every = [r for r in found if r["key"][0] == "answers" and r["key"][3] == "own"]
    own = [r for r in every if "error" in r]
    if every:
        summary(every, [r for r in found if r["key"][0] == "answers" and r["key"][3] != "own"])
    rows = []
    for r in own:
        others = [
            o for o in found
            if o["key"][:3] == r["key"][:3] and o["key"][3] != "own" and o["key"][0] == "answers"
        ]  # fmt: skip
        rows.append(
            (
                r["arch"], r["kernel"], r["key"][1], r["key"][2], r["outcome"],
                f"{r['error']:.1g}", f"{r['tolerance']:.0e}", r["events"], r["instructions"],
                round(r["instructions"] / max(r["seconds"], 1e-9) / 1000),
                round(r["instructions"] / max(r["asynchronous_seconds"], 1e-9) / 1000),
                ", ".join(o["key"][3] for o in others if o["same"]),
                ", ".join(f"{o['key'][3]}: {o['outcome']}" for o in others if not o["same"]),
            )
        )  # fmt: skip
    headers = ("arch", "kernel", "id", "tiles", "numbers", "error", "tolerance", "events",
               "instructions", "k/s", "k/s async", "same bits", "other bits")  # fmt: skip
    print(tabulate(rows, headers))
    total = sum(r["instructions"] for r in own)
    if own:
        for name in ("seconds", "asynchronous_seconds"):
            print(f"{total / sum(r[name] for r in own):,.0f} wave instructions a second ({name})")


def summary(own: list[dict[str, Any]], others: list[dict[str, Any]]) -> None:
    """Kernels, opcodes, outcomes."""
    print(len(own), "kernels;", dict(Counter((r["arch"], r["track"]) for r in own)))
    print(len({(r["kernel"], r.get("dtype")) for r in own}), "kernels by number format")
    print("llc's own:", dict(Counter(r["outcome"] for r in own)))
    ran = [r for r in own if "error" in r]
    print("same bits in both modes:", dict(Counter(r["same"] for r in ran)))
    print("events:", sum(r["events"] for r in ran))
    print("largest error by tolerance:", max(r["error"] / max(r["tolerance"], 1e-30) for r in ran))
    opcodes = Counter[str]()
    for r in ran:
        opcodes.update(r.get("opcodes", {}))
    print(len(opcodes), "opcodes in", sum(opcodes.values()), "instructions")
    for name in sorted({r["key"][3] for r in others}):
        of = [r for r in others if r["key"][3] == name]
        print(name, dict(Counter((r["outcome"], r["same"]) for r in of)))
    for r in [*own, *others]:
        if r["outcome"] not in {"right numbers", "no answer"} or r["same"] is False:
            print(r["key"], r["kernel"], r.get("dtype"), r["outcome"], r.get("why"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    actions = parser.add_subparsers(dest="action", required=True)
    answers = actions.add_parser("answers")
    answers.add_argument("--output", type=Path, required=True)
    answers.add_argument("--limit", type=int)
    answers.add_argument("--tiles", type=int, default=1)
    answers.add_argument("--dataset", default="mini")
    answers.add_argument("--splits", default="test")
    answers.add_argument("--sample", type=int)
    actions.add_parser("table").add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    (show_table if options.action == "table" else run_answers)(options)


if __name__ == "__main__":
    main()
