"""Answers for sm_80 that run by the compiler's own rules, and the judges that say so.

python -m benchmarks.runnable answers [--dataset mini] [--limit N] --measured FILE.jsonl
python -m benchmarks.runnable mutants [--dataset mini] [--each N] --measured FILE.jsonl

`answers` asks `best` with and without `--runnable` about all sm_80 rows. It prints a
table: the registers beside ptxas's own, what `lower` says, and what the timing model
says. `mutants` recolours one virtual register of an answer at a time, so that it stays
valid but meets another where the machine is not done with it, and asks both judges of
timing; one of four has nothing planted in it. With `--anywhere` a register goes to any
place at which the answer stays valid, whatever the analysis of timing says of it. Both
commands go on from `--measured`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from benchmarks.commands import run_command
from benchmarks.timing_model import TimingModel
from benchmarks.timing_operations import registers_of
from verilocc_bench.allocators.linear_scan import linear_scan
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis.machine_live_ranges import MachineProblem
from verilocc_bench.api import problems
from verilocc_bench.api.working import allocate, verify
from verilocc_bench.backends.nvidia.distance_table import distance_table
from verilocc_bench.backends.nvidia.kept_apart import ApartPair, kept_apart
from verilocc_bench.backends.nvidia.kernel import SassKernel, machine_problem
from verilocc_bench.backends.nvidia.lower import write_answer
from verilocc_bench.backends.nvidia.write_back import LoweredCubin, renaming_of
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment, PhysicalRegister

Record = dict[str, Any]
KINDS = ("write-after-read", "write-after-write", "read-after-write")
WALKS = 3
"""The number of further assignments that are made of each by moves that do no harm."""

PLANTED = 0.75
"""The share of mutants with a fault."""


def main(arguments: list[str] | None = None) -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    answers = commands.add_parser("answers")
    answers.set_defaults(action=_answers)
    mutants = commands.add_parser("mutants")
    mutants.add_argument("--each", type=int, default=800, help="mutants of each kernel")
    mutants.add_argument("--anywhere", action="store_true", help="plant nothing on purpose")
    mutants.set_defaults(action=_mutants)
    for each in (answers, mutants):
        each.add_argument("--dataset", default="mini")
        each.add_argument("--split", default="test")
        each.add_argument("--limit", type=int)
        each.add_argument("--measured", type=Path, required=True)
    return run_command(parser, arguments)


def _measure(
    options: argparse.Namespace, measure: Callable[[problems.Problem], Record]
) -> list[Record]:
    """The records of all rows, those that are there already not made again."""
    rows = problems.load_problems(options.dataset, split=options.split, arch="sm_80")
    path: Path = options.measured
    known: dict[str, Record] = {}
    if path.is_file():
        lines = path.read_text(encoding="utf-8").splitlines()
        known = {each["id"]: each for each in map(json.loads, lines)}
    with path.open("a", encoding="utf-8") as file:
        for row in tqdm(rows[: options.limit], unit="kernel"):
            if row.id not in known:
                known[row.id] = {"id": row.id, "title": row.title, **measure(row)}
                file.write(json.dumps(known[row.id]) + "\n")
                file.flush()
    return [known[row.id] for row in rows[: options.limit]]


def _distances() -> dict[tuple[str, str, str, str], int]:
    cells = distance_table("sm_80").cells.items()
    return {(kind.hazard.value, *kind[1:]): cell.cycles for kind, cell in cells}


# Answers


def _answers(options: argparse.Namespace) -> None:
    records = _measure(options, _answer)
    print("| kernel | instructions | ptxas | `best` | `best --runnable` | lower | timing model |")
    print("|---|---|---|---|---|---|---|")
    for each in records:
        print(
            f"| {each['title']} | {each['instructions']} | {each['compiler']} | {each['plain']} "
            f"({each['plain_hazards']} hazards) | {each['runnable']} | {each['verdict']} "
            f"| {each['destroyed']} values destroyed |"
        )


def _answer(row: problems.Problem) -> Record:
    kernel: SassKernel = row.kernel()
    assert row.label is not None
    compiler = verify(row, row.label)
    plain, runnable = allocate(row, "best"), allocate(row, "best", runnable=True)
    lowered = {name: write_answer(kernel, a) for name, a in (("a", plain), ("b", runnable))}
    model = TimingModel(kernel.code.function, _distances())
    return {
        "instructions": len(kernel.code.function.instructions),
        "compiler": _registers(compiler.registers_used),
        "plain": _registers(verify(row, plain).registers_used),
        "plain_hazards": len(lowered["a"].hazards),
        "plain_destroyed": _destroyed(model, lowered["a"]),
        "runnable": _registers(verify(row, runnable).registers_used),
        "hazards": len(lowered["b"].hazards),
        "verdict": lowered["b"].verdict.value,
        "destroyed": _destroyed(model, lowered["b"]),
        "cleared": lowered["b"].cleared_reuse_marks,
    }


def _destroyed(model: TimingModel, lowered: LoweredCubin) -> int:
    return len(model.destroyed(registers_of(lowered.function)))


def _registers(used: Mapping[str, int] | None) -> int:
    """The registers of a valid answer in the scored file."""
    assert used is not None
    return used["R"]


# Mutants


def _mutants(options: argparse.Namespace) -> None:
    records = _measure(
        options, partial(_judged_mutants, each=options.each, anywhere=options.anywhere)
    )
    total: Counter[str] = Counter()
    for each in records:
        total.update(each["counts"])
    print("| planted | mutants | killed by the analysis | by the timing model | by both |")
    print("|---|---|---|---|---|")
    planted = sorted({key.split("|")[0] for key in total})
    for name in planted:
        counts = {key.split("|")[1]: n for key, n in total.items() if key.split("|")[0] == name}
        both, analysis, model = (counts.get(key, 0) for key in ("both", "analysis", "model"))
        of = sum(counts.values())
        print(f"| {name} | {of:,} | {both + analysis:,} | {both + model:,} | {both:,} |")
    for example in (e for each in records for e in each["model_alone"]):
        print("the timing model alone:", example, file=sys.stderr)


class _KeptApartLanes:
    """A kernel's lanes and pairs as arrays, for many assignments."""

    def __init__(self, kernel: SassKernel) -> None:
        self.kernel = kernel
        self.problem = kernel.problem
        self.machine: MachineProblem = machine_problem(kernel)
        normalized = kernel.code.normalized
        self.pairs: list[tuple[str, int, int]] = []
        seen = set()
        for pair in kept_apart(kernel.code.function):
            a, b = (
                normalized.places.get((index, access.reference))
                for index, access in ((pair.earlier, pair.first), (pair.later, pair.second))
            )
            if a is None or b is None or a.register == b.register:
                continue
            offsets = self.problem.liveness.lane_offsets
            one = offsets[a.register] + a.first + pair.first.offset
            other = offsets[b.register] + b.first + pair.second.offset
            key = (_name(pair), one, other)
            if key not in seen:
                seen.add(key)
                self.pairs.append(key)
        self._owners = [
            (number, offset)
            for number, each in enumerate(self.problem.function.virtual_registers)
            for offset in range(each.width)
        ]
        self.first = np.array([one for _, one, _ in self.pairs], np.int64)
        self.second = np.array([other for _, _, other in self.pairs], np.int64)

    def units(self, assignment: Assignment) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The unit of each lane of the virtual registers."""
        placements, classes = self.problem.placements, self.problem.function.virtual_registers
        return np.array(
            [
                placements.unit(assignment[number]) + offset
                for number, each in enumerate(classes)
                for offset in range(each.width)
            ],
            np.int64,
        )

    def meets(self, assignment: Assignment) -> bool:
        """True if two lanes that are kept apart meet."""
        units = self.units(assignment)
        return bool((units[self.first] == units[self.second]).any())

    def owner(self, lane: int) -> tuple[int, int]:
        """The virtual register of a lane, and its offset there."""
        return self._owners[lane]


def _name(pair: ApartPair) -> str:
    return f"{pair.hazard.value}, {'no wait' if pair.cycles is None else 'too close'}"


def _judged_mutants(row: problems.Problem, each: int, *, anywhere: bool) -> Record:
    lanes = _KeptApartLanes(row.kernel())
    code = lanes.kernel.code
    model = TimingModel(code.function, _distances())
    bases = [code.normalized.assignment]
    with contextlib.suppress(AllocationFailed):
        bases.append(linear_scan(lanes.machine))
    chance = random.Random(row.id)
    bases += [_walked(lanes, base, chance) for base in bases for _ in range(WALKS)]
    counts: Counter[str] = Counter()
    alone: list[str] = []
    moves = _anywhere if anywhere else _recolourings
    for planted, mutant in moves(lanes, bases, chance, each):
        analysis = lanes.meets(mutant)
        renaming = renaming_of(code.function, code.normalized, mutant)
        destroyed = model.destroyed(registers_of(code.function, renaming))
        said = ("neither", "model", "analysis", "both")[2 * analysis + bool(destroyed)]
        counts[f"{planted}|{said}"] += 1
        if said == "model":
            alone.append(f"{row.id}: {destroyed[0]}")
    return {"counts": dict(counts), "model_alone": alone[:5], "executed": model.executed}


def _anywhere(
    lanes: _KeptApartLanes, bases: Sequence[Assignment], chance: random.Random, count: int
) -> Iterator[tuple[str, Assignment]]:
    """Valid assignments that differ from a base in the place of one virtual register."""
    moves = [_Moves(lanes, base) for base in bases]
    for _ in range(count):
        moved = chance.choice(moves).moved_anywhere(chance)
        if moved is not None:
            yield "anywhere", moved


def _recolourings(
    lanes: _KeptApartLanes, bases: Sequence[Assignment], chance: random.Random, count: int
) -> Iterator[tuple[str, Assignment]]:
    """Valid assignments that differ from a base in one virtual register, most with a fault.

    The kinds of faults take turns while they have more. No fault comes twice.
    """
    by_kind: dict[str, list[tuple[int, int]]] = {}
    for kind, one, other in lanes.pairs:
        by_kind.setdefault(kind, []).append((one, other))
    seen: set[tuple[int, int, int]] = set()
    collides = [_Moves(lanes, base) for base in bases]
    harmless = [_Moves(lanes, base, machine=True) for base in bases]
    turns = deque(
        (kind, _planted(collides, pairs, chance, seen)) for kind, pairs in sorted(by_kind.items())
    )
    left = round(count * PLANTED)
    while left and turns:
        kind, mutants = turns.popleft()
        mutant = next(mutants, None)
        if mutant is not None:
            turns.append((kind, mutants))
            left -= 1
            yield kind, mutant
    for _ in range(count - round(count * PLANTED)):
        moved = chance.choice(harmless).moved_anywhere(chance)
        if moved is not None:
            yield "nothing", moved


def _planted(
    moves: Sequence[_Moves],
    pairs: Sequence[tuple[int, int]],
    chance: random.Random,
    seen: set[tuple[int, int, int]],
) -> Iterator[Assignment]:
    """The moves that make lanes of a pair meet, but those seen, in a random order."""
    ways = 2 * len(moves)
    for number in chance.sample(range(ways * len(pairs)), ways * len(pairs)):
        pair, way = divmod(number, ways)
        chosen, turned = divmod(way, 2)
        lane, other = pairs[pair][:: -1 if turned else 1]
        move = moves[chosen].onto(lane, other)
        if move is not None and (chosen, *move) not in seen:
            seen.add((chosen, *move))
            yield moves[chosen].moved(*move)


def _walked(lanes: _KeptApartLanes, base: Assignment, chance: random.Random) -> Assignment:
    """An assignment that runs too, as many moves away from another as that has registers."""
    state = RegisterState(lanes.machine)
    placements = lanes.problem.placements
    for register, place in base.items():
        state.place(register, placements.unit(place))
    for register in chance.choices(range(len(base)), k=len(base)):
        unit = state.placed[register]
        state.evict(register)
        state.place(register, chance.choice([*state.legal(register)] or [unit]))
    return {register: placements.register(unit) for register, unit in state.placed.items()}


class _Moves:
    """Moves of single registers of an assignment that keep it valid."""

    def __init__(self, lanes: _KeptApartLanes, base: Assignment, *, machine: bool = False) -> None:
        self.lanes, self.base = lanes, base
        self._known: dict[int, frozenset[int]] = {}
        self.state = RegisterState(lanes.machine if machine else lanes.problem)
        for register, place in base.items():
            self.state.place(register, lanes.problem.placements.unit(place))

    def onto(self, lane: int, other: int) -> tuple[int, int] | None:
        """The register of `lane` and the base at which it meets `other`, if that is valid."""
        register, offset = self.lanes.owner(lane)
        its_register, its_offset = self.lanes.owner(other)
        base = self._unit(its_register) + its_offset - offset
        return (register, base) if base in self._others(register) else None

    def moved_anywhere(self, chance: random.Random) -> Assignment | None:
        """The assignment with some register at another base."""
        register = chance.randrange(len(self.base))
        others = self._others(register)
        return self.moved(register, chance.choice(sorted(others))) if others else None

    def moved(self, register: int, base: int) -> Assignment:
        """The assignment with a register at this base."""
        place: PhysicalRegister = self.lanes.problem.placements.register(base)
        return {**self.base, register: place}

    def _unit(self, register: int) -> int:
        return self.lanes.problem.placements.unit(self.base[register])

    def _others(self, register: int) -> frozenset[int]:
        """The other bases at which a register may lie."""
        if register not in self._known:
            unit = self._unit(register)
            self.state.evict(register)
            self._known[register] = frozenset(self.state.legal(register)) - {unit}
            self.state.place(register, unit)
        return self._known[register]


if __name__ == "__main__":
    sys.exit(main())
