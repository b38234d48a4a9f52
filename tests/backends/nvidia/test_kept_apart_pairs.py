"""What is kept apart in random short functions, by the hazards that the renamed code shows."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from functools import reduce
from itertools import combinations
from operator import or_

from benchmarks.timing_operations import registers_of
from tests.backends.nvidia.assembly import assemble, encoded
from tests.backends.nvidia.test_kept_apart import model_of
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.machine_live_ranges import MachineProblem
from verilocc_bench.backends.nvidia.distance_table import DistanceTable, PairKind, distance_table
from verilocc_bench.backends.nvidia.hazards import Hazard, HazardKind, find_hazards
from verilocc_bench.backends.nvidia.issue_distances import HORIZON, timed_accesses
from verilocc_bench.backends.nvidia.kept_apart import (
    ApartPair,
    kept_apart,
    machine_live_ranges,
    new_hazards,
)
from verilocc_bench.backends.nvidia.normalize import NormalizedSass, normalize_sass
from verilocc_bench.backends.nvidia.records import (
    RegisterReference,
    SassFunction,
    SassGuard,
    SassInstruction,
)

FORMS = """
MOV {one}, 0x1
IADD3 {one}, {one}, {one}, RZ
@{p} IADD3 {one}, {one}, {one}, RZ
IMAD.WIDE {two}, {one}, {one}, {two}
HMMA.16816.F32 {four}, {four}, {two}, {four}
ISETP.GE.AND {p}, PT, {one}, {one}, PT
UIADD3 {u}, {u}, 0x1, URZ
MOV {one}, {u}
LDG.E {one}, [{two}]
@{p} LDG.E.64 {two}, [{two}]
LDS {one}, [{one}]
STG.E [{two}], {one}
@{p} STS [{one}], {one}
MUFU.RCP {one}, {one}
SHFL.IDX {p}, {one}, {one}, {one}, 0x1f
DADD {two}, {two}, {two}
DSETP.GE.AND {p}, PT, {two}, {two}, PT
R2UR {u}, {one}
DEPBAR.LE SB0, 0x0
@!PT MOV {one}, {one}
P2R {one}, PR, {one}, 0xf
R2P PR, {one}, 0xf
""".strip().splitlines()
"""The last two name all predicates."""


class _Registers:
    """Registers by `str.format`: new ones as long as there are any, or the first few again."""

    def __init__(self, generator: random.Random, *, distinct: bool) -> None:
        self.generator, self.distinct = generator, distinct
        self.next = {"R": 4, "UR": 4, "P": 0}

    def __getitem__(self, kind: str) -> str:
        file = {"u": "UR", "p": "P"}.get(kind, "R")
        width = {"two": 2, "four": 4}.get(kind, 1)
        if not self.distinct:
            first = 0 if file == "P" else 4
            return f"{file}{first + width * self.generator.randrange((4 + first) // width)}"
        first = -(-self.next[file] // width) * width
        self.next[file] = first + width
        return f"{file}{first}"


def function_of(generator: random.Random, *, distinct: bool, loop: bool = False) -> SassFunction:
    """A function with random control words; `distinct` registers are each named once."""
    names = _Registers(generator, distinct=distinct)
    forms = FORMS[:-2] if distinct else FORMS
    lines = [] if distinct else [f"ISETP.GE.AND P{n}, PT, R4, R5, PT" for n in (0, 1, 2, 3, 5)]
    lines += ["L1:"] if loop else []
    lines += [generator.choice(forms).format_map(names) for _ in range(generator.randint(2, 5))]
    lines += ["@P5 BRA L(1)"] if loop else []

    def word(*_: object) -> int:
        found = generator.choice((0, 1, 2, 6, 15)) << 105
        found |= generator.choice((7, 7, 0, 1)) << 110 | generator.choice((7, 7, 0, 1)) << 113
        return found | generator.choice((0, 0, 0, 1, 2)) << 116

    return encoded(assemble("\n".join([*lines, "EXIT"])), word)


Renaming = dict[tuple[int, int], int]


def references(instruction: SassInstruction) -> list[tuple[int, RegisterReference]]:
    """The references by number, the guard, -1, among them."""
    found = list(enumerate((*instruction.definitions, *instruction.uses)))
    guard = instruction.guard
    if guard is not None:
        found.append((-1, RegisterReference(guard.file, guard.index, 1, 0)))
    return found


def drawn(function: SassFunction, generator: random.Random) -> Renaming:
    """A few references get the place of another one of their file, or one beside it."""
    every = [
        (index, number, reference)
        for index, instruction in enumerate(function.instructions)
        for number, reference in references(instruction)
    ]
    renaming = {}
    for index, number, reference in generator.sample(every, min(len(every), 2)):
        firsts = [other.first for _, _, other in every if other.file == reference.file]
        renaming[index, number] = max(generator.choice(firsts) + generator.choice((0, 0, 1, -1)), 0)
    return renaming


def rewritten(function: SassFunction, renaming: Mapping[tuple[int, int], int]) -> SassFunction:
    """The function with its references renamed."""
    instructions = []
    for index, old in enumerate(function.instructions):
        new = [
            replace(reference, first=renaming.get((index, number), reference.first))
            for number, reference in references(old)
        ]
        guard = old.guard
        if guard is not None:
            guard = SassGuard(guard.file, new.pop().first, guard.negated)
        count = len(old.definitions)
        definitions, uses = tuple(new[:count]), tuple(new[count:])
        instructions.append(replace(old, guard=guard, definitions=definitions, uses=uses))
    return replace(function, instructions=tuple(instructions))


def too_close(function: SassFunction, renaming: Renaming) -> list[Hazard]:
    """What comes too soon in a function without jumps, by adding up stall counts."""
    found = []
    timed = [timed_accesses(each) for each in function.instructions]
    stalls = [max(each.encoding >> 105 & 15, 1) for each in function.instructions]
    for first, second in combinations(range(len(timed)), 2):
        cycles = sum(stalls[first:second])
        for hazard, accesses in (
            (HazardKind.WRITE_AFTER_READ, timed[first].reads),
            (HazardKind.WRITE_AFTER_WRITE, timed[first].writes),
        ):
            leasts: dict[str, int] = {}
            for one in accesses:
                for other in timed[second].overwrites:
                    place, its = (
                        (
                            e.file,
                            renaming.get((index, e.reference), e.register - e.offset) + e.offset,
                        )
                        for index, e in ((first, one), (second, other))
                    )
                    kind = PairKind(hazard, one.access, other.access, one.file)
                    least = distance_table("sm_80").least(kind)
                    if place == its and cycles < min(least, HORIZON):
                        name = f"{place[0]}{place[1]}"
                        leasts[name] = max(least, leasts.get(name, 0))
            if leasts:
                names = tuple(sorted(leasts))
                found.append(Hazard(hazard, first, second, names, cycles, max(leasts.values())))
    return found


def order(hazard: Hazard) -> tuple[int, int, str, bool]:
    return hazard.later, hazard.earlier, hazard.kind.value, hazard.cycles is not None


def test_new_hazards_are_those_that_the_renamed_code_shows() -> None:
    """Each register is named once, so that none is there before."""
    kinds: defaultdict[tuple[str, bool], int] = defaultdict(int)
    for seed in range(300):
        generator = random.Random(seed)
        function = function_of(generator, distinct=True)
        assert new_hazards(function, {}) == ()
        for _ in range(4):
            renaming = drawn(function, generator)
            waits = [
                replace(hazard, registers=tuple(sorted(hazard.registers)))
                for hazard in find_hazards(rewritten(function, renaming))
            ]
            expected = sorted(waits + too_close(function, renaming), key=order)
            found = new_hazards(function, renaming)
            assert list(found) == expected, (seed, function, renaming)
            for hazard in found:
                kinds[hazard.kind.value, hazard.cycles is not None] += 1
    assert len(kinds) == 5  # true dependences need no distance
    assert min(kinds.values()) > 5, kinds


def test_what_the_timing_model_sees_destroyed_is_found() -> None:
    """On loops too, and by executions that share no code with the analysis."""
    destroyed = 0
    for seed in range(300):
        generator = random.Random(seed)
        function = function_of(generator, distinct=True, loop=bool(seed % 2))
        renaming = drawn(function, generator)
        model = model_of(function)
        if model.destroyed(registers_of(function, renaming)):
            assert new_hazards(function, renaming), (seed, function, renaming)
            destroyed += 1
    assert destroyed > 50


def test_no_permutation_meets_anything_new() -> None:
    """Quads of registers change places everywhere, so the same accesses meet as before."""
    for seed in range(300):
        generator = random.Random(seed)
        function = function_of(generator, distinct=False, loop=bool(seed % 2))
        quads = {file: generator.sample(range(4), 4) for file in ("R", "UR", "P")}
        renaming = {
            (index, number): 4 * quads[each.file][each.first // 4] + each.first % 4
            for index, instruction in enumerate(function.instructions)
            for number, each in references(instruction)
        }
        assert new_hazards(function, renaming) == ()


def lanes_of(pair: ApartPair, problem: NormalizedSass, plain: AllocationProblem) -> set[int]:
    """The lanes of a pair in the problem, without those that are not in it."""
    lanes, liveness = set(), plain.liveness
    for index, access in ((pair.earlier, pair.first), (pair.later, pair.second)):
        place = problem.places.get((index, access.reference))
        register = (access.file, access.register)
        if place is not None:
            lanes.add(liveness.lane_offsets[place.register] + place.first + access.offset)
        elif register in liveness.fixed_lanes:
            lanes.add(liveness.virtual_lane_count + liveness.fixed_lanes.index(register))
    return lanes


def collisions(problem: AllocationProblem) -> set[frozenset[int]]:
    """The lanes of one file of which one is defined where the other is in use."""
    live, defined = problem.liveness.live, problem.liveness.defined
    files = [c.files for c in problem.function.virtual_registers for _ in range(c.width)]
    virtual = len(files)
    files += [(file,) for file, _ in problem.liveness.fixed_lanes]
    return {
        frozenset((a, b))
        for a, b in combinations(range(len(files)), 2)
        if a < virtual and files[a] == files[b]
        if live[a] & defined[b] or live[b] & defined[a]
    }


def test_the_stricter_problem_keeps_these_pairs_apart_and_no_others() -> None:
    added = shared = 0
    for seed in range(120):
        generator = random.Random(seed)
        function = function_of(generator, distinct=False, loop=bool(seed % 2))
        normalized = normalize_sass(function, 255)
        plain = AllocationProblem(normalized.function)
        table = DistanceTable({}, {}) if seed % 3 else None  # without cells all are far apart
        pairs = [lanes_of(pair, normalized, plain) for pair in kept_apart(function, table)]
        ranges = machine_live_ranges(function, normalized, plain.liveness, table)
        strict = MachineProblem(plain, ranges)
        virtual = plain.liveness.virtual_lane_count
        expected = collisions(plain) | {
            frozenset(pair) for pair in pairs if len(pair) == 2 and min(pair) < virtual
        }
        assert collisions(strict) == expected, (seed, function)
        added += len(expected) - len(collisions(plain))
        shared += sum(points.bit_count() for points in ranges.in_use.values())
        assert not {frozenset(pair) for pair in ranges.apart} & collisions(plain)
        for lane, points in ranges.in_use.items():
            others = {other for pair in pairs if lane in pair for other in pair - {lane}}
            assert not points & plain.liveness.live[lane]
            assert not points & ~reduce(or_, (plain.liveness.defined[each] for each in others), 0)
    assert added > 300
    assert shared > 50
