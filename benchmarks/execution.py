"""Execution of the embedded dataset's kernels on gfx90a and gfx942: numbers, bits, waits, speed.

    python benchmarks/execution.py answers --output FILE [--tiles N] [--limit N]
    python benchmarks/execution.py drop --mnemonic s_waitcnt|s_nop --output FILE [--limit N]
    python benchmarks/execution.py table FILE…

`answers` executes llc's own allocation in both modes, and the label, linear scan's and the best
known answer (on the split track spilling everywhere and splitting live ranges) in asynchronous
time; numbers against the reference, bits against llc's own. `drop` leaves out every executed
s_waitcnt (or s_nop) of llc's own code, one at a time, with the waves in both orders. Each result
is a line of FILE; a run that is started again goes on where it was. `table` sums up. Speed is wave
instructions in a second of processor time, without decoding.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator
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
from verilocc_bench.machine import fields
from verilocc_bench.machine.execution import Fault
from verilocc_bench.machine.special_decoding import NO_OPERATION

STEP_LIMIT = 2_000_000


def kernels(limit: int | None, tiles: int) -> Iterator[tuple[Row, AnswerExecutor, AnswerExecutor]]:
    """Each row with an executor in asynchronous time, and one without."""
    rows = [r for track in ("assign", "split") for r in load_rows("mini", track=track).rows]
    rows = [row for row in rows if row.arch != "sm_80"][:limit]
    for row in rows:
        problem = AllocationProblem.from_text(row.normalized, row.id)
        raw = load_raw_row("mini", row.id)
        kernel = backend_of(problem.target).read_raw(raw.content, problem, row.id)
        yield (
            row,
            AnswerExecutor.of_row(kernel, row, tiles=tiles, step_limit=STEP_LIMIT),
            AnswerExecutor.of_row(
                kernel, row, tiles=tiles, step_limit=STEP_LIMIT, asynchronous=False
            ),
        )


def answers_of(row: Row, problem: AllocationProblem) -> Iterator[tuple[str, Answer]]:
    if row.label is not None:
        yield "label", Answer(row.label)
    if row.best_label is not None:
        yield "best", Answer(row.best_label)
    models = ("linear-scan",) if row.label else ("spill-everywhere", "live-range-splitting")
    for model in models:
        try:
            answer = BUILT_IN[model].allocate(Request(problem))
        except VerilocError:
            continue
        yield model, answer


class Measurements:
    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.done = {tuple(json.loads(line)["key"]) for line in lines}

    def add(self, key: tuple[object, ...], **result: Any) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps({"key": key, **result}) + "\n")


def run_answers(options: argparse.Namespace) -> None:
    results = Measurements(options.output)
    for row, late, fast in kernels(options.limit, options.tiles):
        about = {"arch": row.arch, "kernel": row.kernel, "track": row.track}
        key = ("answers", row.id, options.tiles, "own")
        if key not in results.done:
            slow_result, fast_result = late.own, fast.own
            kernel, seconds = late.load(late.own_code()), []
            for asynchronous in (False, True):
                start = time.process_time()
                kernel.run(late.arguments, late.launch.grid, asynchronous=asynchronous)
                seconds.append(time.process_time() - start)
            same = all(
                slow_result.buffers[name].tobytes() == content.tobytes()
                for name, content in fast_result.buffers.items()
            )
            results.add(
                key, **about, outcome=slow_result.outcome, fast=fast_result.outcome, same=same,
                events=slow_result.event_count, instructions=fast_result.wave_instructions,
                seconds=seconds[0], asynchronous_seconds=seconds[1],
                error=max(c.error for c in fast_result.comparisons),
                tolerance=max(c.tolerance for c in fast_result.comparisons),
            )  # fmt: skip
        for name, answer in answers_of(row, late.kernel.problem):
            key = ("answers", row.id, options.tiles, name)
            if key in results.done:
                continue
            done = late.execute(answer)
            results.add(
                key, **about, outcome=done.outcome, same=done.same_bits, why=done.why,
                events=done.event_count,
            )  # fmt: skip


def run_drop(options: argparse.Namespace) -> None:
    results = Measurements(options.output)
    for row, late, _ in kernels(options.limit, options.tiles):
        kernel = late.load(late.own_code())
        arguments, grid = late.arguments, late.launch.grid
        right = kernel.run(arguments, grid, asynchronous=True)
        expected = [b"" if b is None else b.tobytes() for b in right.buffers]
        rows = kernel.program.rows
        for number, instruction in enumerate(kernel.program.instructions):
            key = ("drop", row.id, instruction.address, options.mnemonic)
            if instruction.mnemonic != options.mnemonic or not right.counts[number]:
                continue
            if key in results.done:
                continue
            kept = rows[number].copy()
            # As if it were not there: no wait, and no wait state.
            rows[number, fields.OPERATION], rows[number, fields.OFFSET] = NO_OPERATION, -1
            noticed, events, first, fault = False, 0, "", ""
            for reverse in (False, True):
                try:
                    done = kernel.run(
                        arguments, grid, asynchronous=True, step_limit=STEP_LIMIT, reverse=reverse
                    )
                except Fault as error:
                    noticed, fault = True, str(error)
                    break
                events += done.event_count
                first = first or "; ".join(str(event) for event in done.events[:1])
                got = [b"" if b is None else b.tobytes() for b in done.buffers]
                noticed = noticed or got != expected
                if noticed:
                    break
            rows[number] = kept
            results.add(
                key, arch=row.arch, kernel=row.kernel, text=instruction.text, noticed=noticed,
                events=events, first=first, fault=fault,
            )  # fmt: skip


def show_table(options: argparse.Namespace) -> None:
    found = [json.loads(line) for path in options.files for line in path.read_text().splitlines()]
    own = [r for r in found if r["key"][0] == "answers" and r["key"][3] == "own"]
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
    for mnemonic in ("s_waitcnt", "s_nop"):
        dropped = [r for r in found if r["key"][0] == "drop" and r["key"][3] == mnemonic]
        if dropped:
            noticed = [r for r in dropped if r["noticed"]]
            events = [r for r in dropped if r["events"] and not r["noticed"]]
            print(
                f"{mnemonic}: {len(dropped)} of {len({r['key'][1] for r in dropped})} kernels left "
                f"out, {len(noticed)} noticed by numbers or faults, {len(events)} more by events "
                f"alone, {len(dropped) - len(noticed) - len(events)} not"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    actions = parser.add_subparsers(dest="action", required=True)
    for name in ("answers", "drop"):
        action = actions.add_parser(name)
        action.add_argument("--output", type=Path, required=True)
        action.add_argument("--limit", type=int)
        action.add_argument("--tiles", type=int, default=1)
        if name == "drop":
            action.add_argument("--mnemonic", choices=("s_waitcnt", "s_nop"), required=True)
    actions.add_parser("table").add_argument("files", nargs="+", type=Path)
    options = parser.parse_args()
    if options.action == "table":
        show_table(options)
        return
    (run_answers if options.action == "answers" else run_drop)(options)


if __name__ == "__main__":
    main()
