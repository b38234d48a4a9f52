"""What answers for gfx90a and gfx942 are worth as machine code, beside the compiler's label.

python -m benchmarks.machine_code measure --measured FILE.jsonl [--dataset mini] [--split test]
                                          [--each N] [--most N] [--compiled N] [--answers …]
python -m benchmarks.machine_code report --measured FILE.jsonl …

`measure` asks `best` for registers, for machine code, and for machine code with compiled
answers, and takes all three and the label to machine code by `compare`. `--each` takes
the first rows by id of each architecture and family. It goes on from its file. `report`
prints the tables of docs/machine-code.md from any number of such files.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks.commands import run_command
from verilocc_bench.api import problems
from verilocc_bench.api.working import allocate, verify
from verilocc_bench.backends import ComparedAllocation, backend_of
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError

Record = dict[str, Any]

ARCHS = ("gfx90a", "gfx942")
LABEL, REGISTERS, MODEL, COMPILED = "llvm", "registers", "machine-code", "compiled"
ANSWERS = {REGISTERS: "`best`", MODEL: "machine-code", COMPILED: "compiled"}
METRICS = {
    "loop_waits": "waits",
    "loop_wait_states": "wait states",
    "loop_instructions": "instructions",
    "loop_register_moves": "register moves",
    "bank_conflicts": "bank conflicts",
    "loop_cycles": "llvm-mca's cycles",
}
TOLERANCE = {"loop_cycles": 0.005}


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    measuring = commands.add_parser("measure")
    measuring.set_defaults(action=_measure)
    measuring.add_argument("--each", type=int, help="rows of each architecture and family")
    measuring.add_argument("--answers", nargs="+", choices=list(ANSWERS), default=list(ANSWERS))
    measuring.add_argument("--dataset", default="mini")
    measuring.add_argument("--split", default="test")
    measuring.add_argument("--most", type=int, default=10**9, help="the most instructions of a row")
    measuring.add_argument("--measured", type=Path, required=True)
    measuring.add_argument("--compiled", type=int, default=16, metavar="N")
    reporting = commands.add_parser("report")
    reporting.set_defaults(action=_report)
    reporting.add_argument("--measured", type=Path, nargs="+", required=True)
    return run_command(parser, arguments)


def read(path: Path) -> list[Record]:
    """The records of a file, in order; none if it does not exist."""
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _rows(options: argparse.Namespace) -> list[problems.Problem]:
    """The labelled rows, by id."""
    found = [
        row
        for arch in ARCHS
        for row in problems.load_problems(options.dataset, split=options.split, arch=arch)
        if row.label is not None and row.function.instruction_count <= options.most
    ]
    return sorted(found, key=lambda row: row.id)


def _measure(options: argparse.Namespace) -> None:
    seen: dict[tuple[str, str], int] = {}
    rows = []
    for row in _rows(options):
        assert row.row is not None
        place = row.target.name, row.row.family
        seen[place] = seen.get(place, 0) + 1
        if options.each is None or seen[place] <= options.each:
            rows.append(row)
    # Small ones first: an interrupted run has seen most.
    rows.sort(key=lambda row: (row.function.instruction_count, row.id))
    known: dict[str, set[str]] = {}
    for each in read(options.measured):
        known.setdefault(each["id"], set()).update(each["metrics"])
    with options.measured.open("a", encoding="utf-8") as file:
        for row in tqdm(rows, unit="kernel"):
            wanted = set(options.answers) - known.get(row.id, set())
            if wanted:
                answers = [name for name in ANSWERS if name in wanted]
                own = measure(row, answers, options.compiled)
                record = {"id": row.id, "title": row.title, "arch": row.target.name, **own}
                file.write(json.dumps(record) + "\n")
                file.flush()


def measure(row: problems.Problem, answers: Sequence[str], compiled: int) -> Record:
    """The metrics of the label and of some answers of a row, and the seconds that each took."""
    assert row.label is not None
    assert row.row is not None
    settings: dict[str, dict[str, Any]] = {
        REGISTERS: {},
        MODEL: {"objective": "machine-code"},
        COMPILED: {"objective": "machine-code", "compiled": compiled},
    }
    seconds: dict[str, float] = {}
    sides = [ComparedAllocation(LABEL, Answer(row.label))]
    for name in answers:
        started = time.process_time()
        answer = allocate(row, "best", **settings[name])
        seconds[name] = round(time.process_time() - started, 2)
        assert verify(row, answer).valid
        sides.append(ComparedAllocation(name, answer))
    metrics = {}
    for first in range(0, len(sides), 2):
        pair = (sides[first], sides[min(first + 1, len(sides) - 1)])
        document = backend_of(row.target).compare(row.kernel(), pair, with_files=False).document
        for side in ("answer", "other"):
            metrics[document[side]["name"]] = document[side]["metrics"]
    return {
        "family": row.row.family,
        "instructions": row.function.instruction_count,
        "compiled": compiled,
        "seconds": seconds,
        "metrics": metrics,
    }


def _report(options: argparse.Namespace) -> None:
    records = [each for path in options.measured for each in read(path)]
    if not records:
        raise InputError("nothing is measured", source=options.measured[0])
    for lines in (summary(records), mixed(records)):
        print("\n".join(lines), end="\n\n")


def _pairs(records: Iterable[Record], answer: str, metric: str) -> Iterator[tuple[float, float]]:
    """(the label's figure, the answer's) of each kernel that has both."""
    for each in records:
        label = each["metrics"][LABEL][metric]
        own = each["metrics"].get(answer, {}).get(metric)
        if label is not None and own is not None:
            yield label, own


def verdict(label: float, own: float, metric: str) -> int:
    """-1, 0 or 1: the answer has less than the label, as much, or more."""
    if abs(own - label) <= TOLERANCE.get(metric, 0.0) * label:
        return 0
    return 1 if own > label else -1


def summary(records: list[Record]) -> list[str]:
    """The table of sums and of kernels with less, as much and more, for each answer."""
    lines = [
        "| answer | of loops | LLVM | answer | change | less | equal | more | no more |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for answer, title in ANSWERS.items():
        for metric, name in METRICS.items():
            pairs = list(_pairs(records, answer, metric))
            if not pairs:
                continue
            before, after = (sum(side) for side in zip(*pairs, strict=True))
            signs = [verdict(label, own, metric) for label, own in pairs]
            less, equal, more = (signs.count(sign) for sign in (-1, 0, 1))
            change = f"{(after / before - 1) * 100:+.1f} %" if before else "–"
            lines.append(
                f"| {title} | {name} | {before:,.0f} | {after:,.0f} | {change} | {less} | {equal} "
                f"| {more} | {100 * (less + equal) / len(pairs):.0f} % |"
            )
        waves = list(_pairs(records, answer, "waves"))
        if not waves:
            continue
        lost = sum(own < label for label, own in waves)
        gained = sum(own > label for label, own in waves)
        lines.append(
            f"| {title} | kernels with other waves | | | | {lost} fewer | | {gained} more | |"
        )
    return lines


def mixed(records: list[Record], answer: str = COMPILED) -> list[str]:
    """The kernels in which the answer has more of something than the label, with what differs."""
    lines = ["| kernel | instructions | worse | better |", "| --- | ---: | --- | --- |"]
    for each in sorted(records, key=lambda record: record["id"]):
        words: dict[int, list[str]] = {-1: [], 0: [], 1: []}
        for metric, name in METRICS.items():
            for label, own in _pairs([each], answer, metric):
                words[verdict(label, own, metric)].append(f"{name} {label:,.6g} → {own:,.6g}")
        if words[1]:
            title = f"`{each['id'][:8]}` {each['arch']} {each['family']}"
            worse, better = ", ".join(words[1]), ", ".join(words[-1])
            lines.append(f"| {title} | {each['instructions']:,} | {worse} | {better} |")
    return lines


if __name__ == "__main__":
    raise SystemExit(main())
