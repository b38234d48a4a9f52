"""What execution says of wrong answers that are lowered as if they were right.

    python benchmarks/executed_answers.py run --output FILE [--seconds N] [--rounds N] …
    python benchmarks/executed_answers.py table FILE…
    python benchmarks/executed_answers.py again FILE…

`run` mutates answers of the embedded dataset (gfx90a and gfx942) with the operators of the
self-test, asks the verifier, lowers each mutant whatever it said, executes it and compares
what it leaves in memory, bit for bit, with what the unchanged answer leaves. Each mutant is a
line of FILE; a run that is started again goes on where it was. `table` sums up.

Outcomes of a mutant: `not lowered` (no register of that name, an answer that is incomplete),
`refused by llc`, `not executable` (an opcode or operand that the interpreter does not have),
`fault`, `other numbers`, `same numbers`. A mutant with the same numbers is tried again with
other inputs and more tiles, then with asynchronous time; what is left is `same numbers`, with
what the verifier says. `same code` are those of them whose machine code is the same. `again`
makes these mutants anew and tries larger grids and other inputs.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tabulate import tabulate

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.backends import AmdgpuBackend
from verilocc_bench.backends.amdgpu.lower import lowered_input, run_llc_on, write_answer
from verilocc_bench.dataset import Row, load_raw_row, load_rows
from verilocc_bench.edits import Answer
from verilocc_bench.errors import InputError
from verilocc_bench.machine.execution import Fault, load_kernel
from verilocc_bench.references import Buffer, Launch, launch_for
from verilocc_bench.selftest.edit_mutate import EDIT_OPERATORS, mutate_edits
from verilocc_bench.selftest.mutate import OPERATORS, TARGETED, mutate_with
from verilocc_bench.selftest.random_edits import random_edits
from verilocc_bench.verification import Verifier

ARCHS = ("gfx90a", "gfx942")
STEP_FACTOR = 4
# Tiles in each dimension, and whether time is adversarial.
ONE_WAY = ((1, False),)
WAYS = ((1, False), (2, False), (1, True))
MORE_TILES = (3, 5)
ALL_OPERATORS = (*OPERATORS, *TARGETED, *EDIT_OPERATORS)
OUTCOMES = (
    "not lowered", "refused by llc", "not executable", "fault", "other numbers", "same numbers",
)  # fmt: skip


def memory_digest(row: Row, code: bytes) -> str:
    """A digest of all buffers after a run of one work-group."""
    return Subject(row, Answer({})).memory(code, 1)


@dataclass(frozen=True)
class Subject:
    """A row, its answer, and what that leaves in memory."""

    row: Row
    answer: Answer

    @cached_property
    def problem(self) -> AllocationProblem:
        return AllocationProblem.from_text(self.row.normalized)

    @cached_property
    def kernel(self) -> Any:
        content = load_raw_row("mini", self.row.id).content
        return AmdgpuBackend().read_raw(content, self.problem, self.row.id)

    @cached_property
    def verifier(self) -> Verifier:
        return Verifier(self.problem)

    def launch(self, tiles: int) -> Launch:
        parameters = json.loads(self.row.params)
        return launch_for(self.row.kernel, parameters, tiles=tiles, seed=tiles)

    def code(self, answer: Answer) -> bytes:
        lowered = write_answer(self.kernel, answer)
        return run_llc_on(self.kernel, lowered_input(lowered), "obj")

    def memory(self, code: bytes, tiles: int, *, asynchronous: bool = False) -> str:
        """A digest of all buffers after a run."""
        launch = self.launch(tiles)
        arguments = [a.initial if isinstance(a, Buffer) else a.value for a in launch.arguments]
        limit = STEP_FACTOR * self._steps.get(tiles, 10**8)
        execution = load_kernel(code, self.row.kernel).run(
            arguments,
            launch.grid,
            block=(64 * json.loads(self.row.params)["num_warps"], 1, 1),
            asynchronous=asynchronous,
            step_limit=limit,
        )
        self._steps.setdefault(tiles, execution.wave_instructions)
        digest = hashlib.sha256()
        for buffer in execution.buffers:
            digest.update(b"" if buffer is None else buffer.tobytes())
        return digest.hexdigest()

    def take_over(self, other: Subject) -> None:
        """Shares what another subject of the row has computed."""
        for name in ("problem", "kernel", "verifier", "_steps", "_own_memory"):
            self.__dict__[name] = getattr(other, name)

    @cached_property
    def _steps(self) -> dict[int, int]:
        return {}

    @cached_property
    def own_code(self) -> bytes:
        return self.code(self.answer)

    @cached_property
    def _own_memory(self) -> dict[int, str]:
        return {}

    def own_memory(self, tiles: int) -> str:
        if tiles not in self._own_memory:
            self._own_memory[tiles] = self.memory(self.own_code, tiles)
        return self._own_memory[tiles]

    def outcome(self, answer: Answer, *, once: bool) -> tuple[str, str]:
        """What became of an answer, and a word about it; with `once` after a single run."""
        try:
            code = self.code(answer)
        except InputError as error:
            refused = "llc: " in str(error)  # what llc says, located in the kernel
            return "refused by llc" if refused else "not lowered", str(error)[:160]
        except (KeyError, ValueError, IndexError, AssertionError) as error:
            return "not lowered", f"{type(error).__name__}: {error}"[:160]
        if code == self.own_code:
            return "same numbers", "same code"
        ways = ONE_WAY if once else WAYS
        for tiles, asynchronous in ways:
            how = f"{tiles} tiles, asynchronous" if asynchronous else f"{tiles} tiles"
            try:
                memory = self.memory(code, tiles, asynchronous=asynchronous)
            except Fault as error:
                return "fault", f"{how}: {error.kind}"
            except InputError as error:
                return "not executable", str(error)[:160]
            if memory != self.own_memory(tiles):
                return "other numbers", how
        return "same numbers", ""


@dataclass(frozen=True)
class Kernels:
    """The rows that are asked, and the right answers that are changed."""

    rows: tuple[Row, ...]

    @classmethod
    def of_mini(cls, wanted: set[str], largest: int) -> Kernels:
        rows = [
            row
            for track in ("assign", "split")
            for row in load_rows("mini", track=track).rows
            if row.arch in ARCHS
            and (not wanted or row.id in wanted)
            and len(row.normalized) <= largest
        ]
        return cls(tuple(sorted(rows, key=lambda row: len(row.normalized))))

    @cached_property
    def _subjects(self) -> dict[tuple[str, int], Subject | None]:
        return {}

    def subject(self, row: Row, operator: str, number: int) -> Subject | None:
        """A row with the answer that an operator changes in a round.

        Operators of edits change random edits of the label; on the split track all change what
        spilling everywhere gives, or splitting of live ranges, in turn.
        """
        has_label = row.label is not None
        variant = number if operator in EDIT_OPERATORS else -1
        variant = variant if has_label else number % 2
        if (row.id, variant) not in self._subjects:
            whole = self._subjects.get((row.id, -1 if has_label else 0))
            made = self._right_answer(row, variant, whole)
            if made is not None and whole is not None:
                made.take_over(whole)
                if made.memory(made.own_code, 1) != whole.own_memory(1):
                    print("RIGHT, YET OTHER NUMBERS", row.id, variant, flush=True)
            self._subjects[row.id, variant] = made
        return self._subjects[row.id, variant]

    def _right_answer(self, row: Row, variant: int, whole: Subject | None) -> Subject | None:
        if row.label is None:
            name = "live-range-splitting" if variant else "spill-everywhere"
            problem = AllocationProblem.from_text(row.normalized)
            return Subject(row, BUILT_IN[name].allocate(Request(problem)))
        if variant < 0:
            return Subject(row, Answer(row.label))
        whole = whole or self.subject(row, "swap", 0)
        assert whole is not None
        generator = random.Random(f"edits {variant} {row.id}")
        for _ in range(20):
            edited = random_edits(whole.problem, row.label, generator, 4)
            if edited is None or not whole.verifier.verify(edited).valid:
                continue
            try:
                whole.code(edited)
            except InputError:
                continue  # some edits are not lowered
            return Subject(row, edited)
        return None


def mutate(subject: Subject, operator: str, generator: random.Random) -> Answer | None:
    if operator in EDIT_OPERATORS:
        return mutate_edits(operator, subject.problem, subject.answer, generator)
    # The operators know the function's own registers alone.
    new = {f"%{number}" for number in subject.answer.edits.new}
    own = {n: r for n, r in subject.answer.assignment.items() if n not in new}
    mutant = mutate_with(operator, subject.problem, own, generator)
    if mutant is None:
        return None
    made = {n: r for n, r in subject.answer.assignment.items() if n in new}
    return Answer({**mutant, **made}, subject.answer.edits)


def run(options: argparse.Namespace) -> None:
    done: set[tuple[str, str, int]] = set()
    if options.output.exists():
        for line in options.output.read_text().splitlines():
            entry = json.loads(line)
            done.add((entry["row"], entry["operator"], entry["number"]))
    kernels = Kernels.of_mini(set(filter(None, options.rows.split(","))), options.largest)
    operators = options.operators.split(",") if options.operators else list(ALL_OPERATORS)
    end = time.monotonic() + options.seconds
    with options.output.open("a") as file:
        for number in range(options.first, options.first + options.rounds):
            for row in kernels.rows:
                for operator in operators:
                    if (row.id, operator, number) in done or time.monotonic() > end:
                        continue
                    subject = kernels.subject(row, operator, number)
                    if subject is None:
                        continue
                    text = f"{options.seed} {number} {row.id} {operator}"
                    mutant = mutate(subject, operator, random.Random(text))
                    entry = {
                        "row": row.id,
                        "arch": row.arch,
                        "kernel": row.kernel,
                        "operator": operator,
                        "number": number,
                    }
                    entry |= judged(subject, mutant)
                    file.write(json.dumps(entry) + "\n")
                    file.flush()


def judged(subject: Subject, mutant: Answer | None) -> dict[str, Any]:
    if mutant is None or mutant == subject.answer:
        return {"outcome": "none"}
    try:
        verdict = subject.verifier.verify(mutant)
    except InputError as error:
        return {"outcome": "none", "word": str(error)[:160]}
    kinds = sorted({finding.kind for finding in verdict.findings})
    began = time.monotonic()
    outcome, word = subject.outcome(mutant, once=verdict.valid)
    found = {"valid": verdict.valid, "kinds": kinds, "outcome": outcome, "word": word}
    if outcome == "same numbers" and not verdict.valid:
        changed = {
            name: [subject.answer.assignment.get(name), register]
            for name, register in mutant.assignment.items()
            if subject.answer.assignment.get(name) != register
        }
        found["changed"] = dict(list(changed.items())[:8])
        found["findings"] = [finding.message for finding in verdict.findings[:4]]
    return found | {"seconds": round(time.monotonic() - began, 2)}


def again(options: argparse.Namespace) -> None:
    """Tries the mutants with the same numbers, but other code, on larger grids."""
    entries = [json.loads(line) for path in options.files for line in path.open()]
    same = [
        e for e in entries
        if e["outcome"] == "same numbers" and not e["valid"] and e["word"] != "same code"
    ]  # fmt: skip
    kernels = Kernels.of_mini({e["row"] for e in same}, 10**9)
    rows = {row.id: row for row in kernels.rows}
    for entry in same:
        subject = kernels.subject(rows[entry["row"]], entry["operator"], entry["number"])
        assert subject is not None
        text = f"{options.seed} {entry['number']} {entry['row']} {entry['operator']}"
        mutant = mutate(subject, entry["operator"], random.Random(text))
        assert mutant is not None
        code = subject.code(mutant)
        found = ""
        for tiles in MORE_TILES:
            try:
                differs = subject.memory(code, tiles) != subject.own_memory(tiles)
            except Fault as error:
                differs, found = True, f"fault with {tiles} tiles: {error.kind}"
            if differs:
                found = found or f"other numbers with {tiles} tiles"
                break
        print(json.dumps(entry | {"again": found or "same numbers"}), flush=True)


def table(options: argparse.Namespace) -> None:
    entries = [json.loads(line) for path in options.files for line in path.open()]
    tried = [e for e in entries if e["outcome"] != "none"]
    wrong = [e for e in tried if not e["valid"]]
    print(f"{len(wrong)} wrong answers of {len({e['row'] for e in wrong})} kernels")
    counts: dict[str, Counter[str]] = {}
    for entry in wrong:
        counts.setdefault(entry["operator"], Counter())[entry["outcome"]] += 1
    lines = [[name, *(count[o] for o in OUTCOMES)] for name, count in sorted(counts.items())]
    lines.append(["all", *(sum(line[i + 1] for line in lines) for i in range(len(OUTCOMES)))])
    print(tabulate(lines, headers=["operator", *OUTCOMES], tablefmt="github"))
    same = [e for e in wrong if e["outcome"] == "same numbers"]
    print("\nsame numbers, by the verifier's findings:")
    by_kinds = Counter((" ".join(e["kinds"]), e["word"]) for e in same)
    print(tabulate([[*k, n] for k, n in by_kinds.most_common()], headers=["findings", "", "n"]))
    valid = [e for e in tried if e["valid"]]
    print(f"\n{len(valid)} mutants that are valid:", dict(Counter(e["outcome"] for e in valid)))
    for entry in valid:
        if entry["outcome"] in ("other numbers", "fault"):
            print("VALID, YET", json.dumps(entry))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("--output", type=Path, required=True)
    running.add_argument("--seconds", type=float, default=float("inf"))
    running.add_argument("--seed", type=int, default=0)
    running.add_argument("--rounds", type=int, default=4)
    running.add_argument("--first", type=int, default=0, help="the number of the first round")
    running.add_argument("--rows", default="")
    running.add_argument("--operators", default="", help="by default all")
    running.add_argument("--largest", type=int, default=10**9, help="characters of a function")
    commands.add_parser("table").add_argument("files", type=Path, nargs="+")
    trying = commands.add_parser("again")
    trying.add_argument("files", type=Path, nargs="+")
    trying.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    {"run": run, "table": table, "again": again}[options.command](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
