"""What `candidates` says of bases, counted again without sets of bits, and which it offers."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.generated import random_function
from tests.model.test_prompts import SMALL, problem_of
from tests.model.test_register_state import count_idle, points, points_held
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import count_bank_conflicts
from verilocc_bench.ir import FixedUnits, Instruction, Operand
from verilocc_bench.model.prompts.candidates import CANDIDATES, OFFERED
from verilocc_bench.model.prompts.decision_features import DecisionFeatures, decision_order
from verilocc_bench.targets import TargetFile

AMD = [row for row in SMALL if row.arch != "sm_80"]
FEATURES = ("idle", "conflicts", "copies", "grows")
RANKED = ("grows", "conflicts", "idle")


def walk(
    problem: AllocationProblem, seed: int, part: int = 1
) -> Iterator[tuple[RegisterState, int]]:
    """States with the register that is next in each, low bases at random.

    Of `part` decisions one, and those that have to do with copies.
    """
    copied = {register_of(operand) for ends in copies(problem) for operand in ends}
    state, generator = RegisterState(problem), random.Random(seed)
    for place, register in enumerate(decision_order(problem)):
        if place % part == 0 or register in copied:
            yield state, register
        legal = list(state.legal(register))
        if legal:
            state.place(register, generator.choice(legal[:6]))


def copies(problem: AllocationProblem) -> list[tuple[Operand, Operand]]:
    """What each copy writes, and what it reads."""
    return [
        (instruction.definitions[0], instruction.uses[0])
        for _, _, instruction in problem.function.instructions()
        if instruction.opcode in problem.target.copy_opcodes
        and instruction.definitions
        and instruction.uses
    ]


def shown(state: RegisterState, register: int) -> dict[int, dict[str, int]]:
    """The features of each base that `candidates` offers, as its lines say."""
    placements = state.problem.placements
    names = placements.by_name[state.problem.function.virtual_registers[register]]
    view = CANDIDATES.make_viewer(state.problem)(state, register, state.legal(register))
    assert view.names == tuple(line.split()[0] for line in view.lines)
    found: dict[int, dict[str, int]] = {}
    for line in view.lines:
        match = re.fullmatch(r"(\w+)" + "".join(rf" {name} (\d+)" for name in FEATURES), line)
        assert match is not None
        found[names[match[1]]] = dict(zip(FEATURES, map(int, match.groups()[1:]), strict=True))
    assert len(found) == len(view.lines)
    return found


def sure_units(problem: AllocationProblem, name: str) -> int:
    """How many units of a file the pressure needs; AGPRs and VGPRs are one pressure together."""
    vector = set(problem.target.vector_files)
    if name not in vector:
        return problem.pressure.maximum[name]
    named = {file for file, _ in problem.liveness.fixed_lanes}
    for each in problem.function.virtual_registers:
        named |= set(each.files)
    return problem.pressure.maximum["vector"] if len(named & vector) == 1 else 0


def test_the_first_line_says_how_long_and_how_much_is_left() -> None:
    for row in (SMALL[0], SMALL[2]):
        problem = AllocationProblem.from_text(row.normalized)
        features, first_unit = DecisionFeatures(problem), problem.placements.first_unit
        for state, register in walk(problem, 2, part=5):
            head, lives, digits, spare, left = features.query_line(state, register).rsplit(" ", 4)
            register_class = problem.function.virtual_registers[register]
            assert head.startswith(f"%{register} {register_class.name} {register_class.width} ")
            assert (lives, spare) == ("lives", "spare")
            points_live = sum(len(points(live)) for live, _ in state.lifetimes(register))
            assert int(digits) == points_live.bit_length()
            rooms = [0]
            for name in register_class.files:
                used = [
                    u for u in range(budget(problem, name)) if state.is_used(first_unit[name] + u)
                ]
                top = features.top(state, name) - first_unit[name]
                assert top >= max(used, default=-1) + 1
                sure = sure_units(problem, name)
                assert top == max(max(used, default=-1) + 1, sure)
                rooms.append(budget(problem, name) - top)
            assert int(left) == max(rooms).bit_length()


def budget(problem: AllocationProblem, file: str) -> int:
    return problem.function.file(file).count


class Recount:
    """The features of the bases of one register, from its instructions and what is placed."""

    def __init__(self, state: RegisterState, register: int) -> None:
        self.state, self.register, self.problem = state, register, state.problem
        self.placed = dict(state.placed)
        self.width = self.problem.function.virtual_registers[register].width
        self.held = points_held(state)
        self.lives = [points(live) | points(defined) for live, defined in state.lifetimes(register)]
        features = DecisionFeatures(self.problem)
        self.tops = {f.name: features.top(state, f.name) for f in self.problem.function.files}
        self.copies = copies(self.problem)
        self.readers = [
            (10 ** self.problem.loop_depths[block], instruction)
            for block, _, instruction in self.problem.function.instructions()
            if any(register_of(operand) == register for operand in instruction.uses)
        ]

    def __call__(self, base: int) -> dict[str, int]:
        self.placed[self.register] = base
        count = len(self.problem.liveness.points)
        idle = (count_idle(own, self.held[u], count) for u, own in enumerate(self.lives, base))
        return {
            "idle": sum(idle).bit_length(),
            "conflicts": sum(w * self.waits(i) for w, i in self.readers).bit_length(),
            "copies": sum(self.is_needless(*ends) for ends in self.copies),
            "grows": max(0, base + self.width - self.tops[self.file(base).name]),
        }

    def waits(self, instruction: Instruction) -> int:
        """How many of three different vector sources, as far as placed, find their bank busy."""
        sources = dict.fromkeys(
            operand.location
            for operand in instruction.uses
            if not operand.implicit and operand.location.count == 1 and self.is_vector(operand)
        )
        if len(sources) != 3:
            return 0
        busy: Counter[tuple[str, int]] = Counter()
        for location in sources:
            unit = self.unit(Operand(location))
            if unit is not None:
                at = self.problem.placements.register(unit)
                busy[at.file, at.index % self.file(unit).banks] += 1
        return sum(max(0, count - self.problem.target.bank_ports) for count in busy.values())

    def is_needless(self, written: Operand, read: Operand) -> bool:
        """Whether a copy, of this register or to it, stays within one place."""
        mine = [register_of(operand) == self.register for operand in (written, read)]
        units = {self.unit(written), self.unit(read)}
        return sum(mine) == 1 and len(units) == 1 and None not in units

    def file(self, unit: int) -> TargetFile:
        return self.problem.target.file(self.problem.placements.register(unit).file)

    def is_vector(self, operand: Operand) -> bool:
        location = operand.location
        if isinstance(location, FixedUnits):
            return location.file in self.problem.target.vector_files
        files = self.problem.function.virtual_registers[location.register].files
        return bool(set(files) & set(self.problem.target.vector_files))

    def unit(self, operand: Operand) -> int | None:
        """The first unit of an operand; None where that is not placed."""
        location = operand.location
        if isinstance(location, FixedUnits):
            return self.problem.placements.first_unit[location.file] + location.first
        placed = self.placed.get(location.register)
        return None if placed is None else placed + location.first


def register_of(operand: Operand) -> int | None:
    location = operand.location
    return None if isinstance(location, FixedUnits) else location.register


def check(state: RegisterState, register: int) -> Counter[str]:
    """That the offers for a register are what they should be; which features they have."""
    legal = list(state.legal(register))
    offered = shown(state, register)
    assert list(offered) == [base for base in legal if base in offered]
    assert len(offered) <= OFFERED
    assert bool(offered) == bool(legal)
    recount = Recount(state, register)
    features = {base: recount(base) for base in legal}
    for base, said in offered.items():
        most = {"copies": 15, "grows": 63}
        assert said == {name: min(n, most.get(name, n)) for name, n in features[base].items()}
    if not legal:
        return Counter()
    assert legal[0] in offered
    # Of bases alike there is the first alone.
    alike: dict[tuple[int, ...], int] = {}
    for base in reversed(legal):
        alike[tuple(features[base].values())] = base
    assert set(offered) <= set(alike.values())
    # Of those that take registers not in use before the first three at most, and else all.
    firsts = [base for base in legal if base in alike.values()]
    growing = [base for base in firsts if features[base]["grows"]]
    open_to_choice = set(firsts) - set(growing[3:])
    assert set(offered) <= open_to_choice
    assert len(offered) == min(len(open_to_choice), OFFERED)
    # Among them the three lowest, the three best, and the three that spare most copies.
    rest = [base for base in firsts if base in open_to_choice]
    sparing = [base for base in rest if features[base]["copies"]]
    assert offered.keys() >= set(rest[:3])
    assert offered.keys() >= set(sorted(rest, key=lambda b: [features[b][n] for n in RANKED])[:3])
    assert offered.keys() >= set(sorted(sparing, key=lambda b: -features[b]["copies"])[:3])
    return Counter(name for each in offered.values() for name in FEATURES if each[name])


@pytest.mark.parametrize("row", [SMALL[0], SMALL[2], SMALL[4]], ids=lambda row: row.id)
def test_candidates_of_real_kernels(row) -> None:  # type: ignore[no-untyped-def]
    problem = AllocationProblem.from_text(row.normalized)
    found: Counter[str] = Counter()
    for state, register in walk(problem, 1, part=12):
        found += check(state, register)
    assert min(found[name] for name in ("idle", "conflicts", "grows")) >= 1
    assert found["copies"] >= (row.arch != "sm_80")


def test_candidates_of_generated_functions() -> None:
    found: Counter[str] = Counter()
    for seed in range(100):
        target = ("gfx942", "sm_80")[seed % 2]
        problem = AllocationProblem(random_function(seed, guarded=seed % 2 == 1, target=target))
        for state, register in walk(problem, seed):
            found += check(state, register)
    assert min(found[name] for name in ("idle", "conflicts", "grows")) > 10


def test_each_of_the_reasons_to_offer_a_base() -> None:
    """The higher a unit, the later it was last in use; bank 2 is busiest, then 1 and 3."""
    shorts = [f"%{number}=OP\nUSE %{number}" for number in range(3, 43)]
    lines = ["%0=OP", "%1=OP", "%2=OP", *shorts, "%43=OP", "FMA %43,%0,%1", "FMA %43,%0,%2"]
    lines += ["%44=COPY %43", "USE %44"]
    text = FMA.partition("bb0")[0].format(target="gfx942") + AMD_FILES.replace("v:64", "v:128")
    problem = problem_of(text + "\n".join(["bb0", *lines, ""]))
    state = RegisterState(problem)
    places = {0: 126, 1: 127, 2: 125, 44: 16, **{n: 3 * (n - 3) for n in range(3, 43)}}
    for register, base in places.items():
        state.place(register, base)
    check(state, 43)
    # The three lowest; the one that spares a copy; the least idle of a free bank; the least idle.
    assert set(shown(state, 43)) == {0, 1, 2} | {16} | {36, 84, 108} | {111, 114, 117}


def test_conflicts_are_those_of_the_analysis() -> None:
    """With all else placed, on AMD: those of the instructions that read a register, by base."""
    levels: Counter[int] = Counter()
    for row in AMD:
        problem, label = AllocationProblem.from_text(row.normalized), row.label
        assert label is not None
        classes, placements = problem.function.virtual_registers, problem.placements
        generator = random.Random(row.id)
        vector = [r for r, c in enumerate(classes) if set(c.files) & {"v", "a"}]
        for register in generator.sample(vector, 6):
            state = RegisterState(problem)
            for other, register_class in enumerate(classes):
                if other != register:
                    state.place(other, placements.by_name[register_class][label[f"%{other}"]])
            alone = readers_alone(problem, register)
            conflicts = DecisionFeatures(problem).conflicts(state, register)
            for base, name in state.legal(register).items():
                counted = count_bank_conflicts(alone, {**label, f"%{register}": name})
                # Two that wait at an instruction with three of one bank, one with two.
                assert conflicts(base) == (counted.any + counted.all).bit_length()
                levels[conflicts(base)] += 1
    assert levels[0] > 100
    assert len(levels) > 3


def readers_alone(problem: AllocationProblem, register: int) -> AllocationProblem:
    """A problem whose only instructions are those that read a register."""
    blocks = tuple(
        replace(
            block,
            instructions=tuple(
                instruction
                for instruction in block.instructions
                if any(register_of(operand) == register for operand in instruction.uses)
            ),
        )
        for block in problem.function.blocks
    )
    return AllocationProblem(replace(problem.function, blocks=blocks))


FMA = """\
verilocc-bench 1
target {target}
bb0->bb1
%0=OP
%1=OP
%2=OP
bb1->bb1,bb2
%3=FMA %0,%1,%2
%4=FMA %0,%0,%1
bb2
USE %3,%4
"""
AMD_FILES = "registers v:64 a:0 s:0 vcc:2=vcc_lo,vcc_hi\nclass V 1 v\n"
SM_80_FILES = "registers R:64 UR:0 P:0 UP:0\nclass R 1 R\n"


@pytest.mark.parametrize(
    ("target", "files", "banks", "some", "all_three"),
    [("gfx942", AMD_FILES, 4, 10, 20), ("sm_80", SM_80_FILES, 2, 0, 10)],
)
def test_conflicts_by_bank(target: str, files: str, banks: int, some: int, all_three: int) -> None:
    """In a loop, and three different sources: the second FMA has but two."""
    text = FMA.format(target=target).replace("bb0->", files + "bb0->")
    problem = problem_of(text)
    features, state = DecisionFeatures(problem), RegisterState(problem)
    for placed in (0, 1):
        counter = features.conflicts(state, 2)
        own = {counter(base) for base in range(20)}
        assert own == ({0} if not placed else {0, some.bit_length()})
        state.place(placed, 4 * placed)
    # %0 and %1 are in bank 0; %2 makes it three or leaves it at two.
    counter = features.conflicts(state, 2)
    counts = [all_three if base % banks == 0 else some for base in range(20)]
    assert [counter(base) for base in range(20)] == [count.bit_length() for count in counts]


def test_conflicts_with_own_registers_of_the_function() -> None:
    head = FMA.partition("bb0")[0].format(target="gfx942") + AMD_FILES
    problem = problem_of(f"{head}bb0(v4)\n%0=OP\n%1=OP\n%2=FMA v4,%0,%1\nUSE %2\n")
    features, state = DecisionFeatures(problem), RegisterState(problem)
    counter = features.conflicts(state, 1)
    assert [counter(base) for base in range(5, 9)] == [0, 0, 0, 1]
    state.place(0, 8)
    counter = features.conflicts(state, 1)
    assert [counter(base) for base in range(9, 13)] == [1, 1, 1, 2]
