"""Corruptions of valid answers: random ones, and one for every kind of finding.

An operator changes an answer in place. The operators in `TARGETED` aim at one
kind of finding, and raise NotApplicable if the function gives no opportunity.
Each costs at most one walk over the function.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import TypeVar

from verilocc_bench.analysis import AllocationProblem, parse_register_name
from verilocc_bench.ir import FixedUnits, Instruction, PhysicalRegister, VirtualLanes

_T = TypeVar("_T")

MutableAssignment = dict[str, str]
Operator = Callable[[AllocationProblem, MutableAssignment, random.Random], None]


def _numbered(name: str) -> tuple[str, int] | None:
    letters = name.rstrip("0123456789")
    return (letters, int(name[len(letters) :])) if letters != name else None


def _pick(answer: MutableAssignment, generator: random.Random) -> str:
    return generator.choice(list(answer))


def swap(_: AllocationProblem, answer: MutableAssignment, generator: random.Random) -> None:
    """Two virtual registers exchange their registers."""
    a, b = _pick(answer, generator), _pick(answer, generator)
    answer[a], answer[b] = answer[b], answer[a]


def swap_in_class(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """Two virtual registers of one class exchange their registers."""
    a = _pick(answer, generator)
    classes = problem.function.virtual_registers
    same = [f"%{n}" for n, c in enumerate(classes) if c == classes[int(a[1:])]]
    b = generator.choice(same)
    answer[a], answer[b] = answer[b], answer[a]


def shift(_: AllocationProblem, answer: MutableAssignment, generator: random.Random) -> None:
    """A register moves by an even distance."""
    key = _pick(answer, generator)
    if base := _numbered(answer[key]):
        distance = generator.choice((-8, -4, -2, 2, 4, 8))
        answer[key] = f"{base[0]}{max(0, base[1] + distance)}"


def misalign(_: AllocationProblem, answer: MutableAssignment, generator: random.Random) -> None:
    """A register moves by one."""
    key = _pick(answer, generator)
    if base := _numbered(answer[key]):
        answer[key] = f"{base[0]}{base[1] + 1}"


def wrong_file(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A register moves to another file."""
    key = _pick(answer, generator)
    name = answer[key]
    base = _numbered(name)
    index = str(base[1]) if base else "0"
    answer[key] = generator.choice(problem.target.files).name + index


def drop(_: AllocationProblem, answer: MutableAssignment, generator: random.Random) -> None:
    """A virtual register loses its entry."""
    del answer[_pick(answer, generator)]


def overlap(_: AllocationProblem, answer: MutableAssignment, generator: random.Random) -> None:
    """A virtual register takes the register of another."""
    answer[_pick(answer, generator)] = answer[_pick(answer, generator)]


def place_anywhere(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A virtual register takes any base that its class allows."""
    key = _pick(answer, generator)
    register_class = problem.function.virtual_registers[int(key[1:])]
    answer[key] = generator.choice(list(problem.placements.legal[register_class].values()))


def over_budget(_: AllocationProblem, answer: MutableAssignment, generator: random.Random) -> None:
    """A register moves beyond the end of its file."""
    key = _pick(answer, generator)
    if base := _numbered(answer[key]):
        answer[key] = f"{base[0]}{generator.choice((7, 63, 101, 102, 128, 255, 256, 511, 1000))}"


def invent(_: AllocationProblem, answer: MutableAssignment, generator: random.Random) -> None:
    """The answer names a register that no assembler knows, or an unknown virtual register."""
    if generator.random() < 0.5:
        answer[_pick(answer, generator)] = generator.choice(
            (
                "",
                "v",
                "v-1",
                "v01",
                "x3",
                "exec",
                "m0",
                "V4",
                "v4 ",
                "vcc_mid",
                "٣",
                "RZ",
                "PT",
                "R01",
            )
        )
    else:
        answer[generator.choice((f"%{len(answer)}", "%-1", "0", "%01", ""))] = "v0"


OPERATORS: dict[str, Operator] = {
    operator.__name__: operator
    for operator in (
        swap,
        swap_in_class,
        shift,
        misalign,
        wrong_file,
        drop,
        overlap,
        place_anywhere,
        over_budget,
        invent,
    )
}


class NotApplicable(Exception):
    """The function has nothing that the operator could break."""


def missing(_: AllocationProblem, answer: MutableAssignment, generator: random.Random) -> None:
    """A virtual register loses its entry."""
    del answer[_pick(answer, generator)]


def unknown_virtual_register(
    _: AllocationProblem, answer: MutableAssignment, __: random.Random
) -> None:
    """The answer has one virtual register too many."""
    answer[f"%{len(answer)}"] = next(iter(answer.values()))


def unknown_physical_register(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A register moves just beyond the end of a file of the hardware."""
    file = generator.choice([file for file in problem.target.files if not file.unit_names])
    answer[_pick(answer, generator)] = f"{file.name}{file.count}"


def wrong_class(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A register moves to a file outside its class, within the budget."""
    key = _pick(answer, generator)
    files = problem.function.virtual_registers[int(key[1:])].files
    others = [f for f in problem.function.files if f.name not in files and f.count]
    if not others:
        raise NotApplicable
    file = generator.choice(others)
    answer[key] = file.unit_name(generator.randrange(file.count))


def misaligned(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A tuple moves by one unit, off its alignment."""
    classes = problem.function.virtual_registers
    key = choose([k for k in answer if classes[int(k[1:])].width > 1], generator)
    base = _numbered(answer[key])
    if base is None:
        raise NotApplicable
    answer[key] = f"{base[0]}{base[1] + generator.choice((1, -1)) if base[1] else 1}"


def reserved(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A virtual register takes a reserved register."""
    units = choose(problem.function.reserved, generator)
    classes = problem.function.virtual_registers
    key = choose([k for k in answer if units.file in classes[int(k[1:])].files], generator)
    answer[key] = problem.function.file(units.file).unit_name(units.first)


def beyond_budget(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A tuple ends one unit beyond the budget."""
    key = _pick(answer, generator)
    register_class = problem.function.virtual_registers[int(key[1:])]
    file = problem.function.file(choose(register_class.files, generator))
    first = file.count - register_class.width + 1
    if file.unit_names or first < 0:
        raise NotApplicable
    answer[key] = file.unit_name(first)


def live_overlap(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """Two operands of one instruction share a register."""
    several = [i for _, _, i in problem.function.instructions() if len(_virtual(i)) > 1]
    instruction = choose(several, generator)
    first, second = generator.sample(_virtual(instruction), 2)
    _put(problem, answer, first, _where(problem, answer, second))


def fixed_register(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A virtual register takes a physical register that the function names."""
    named = [
        location
        for _, _, instruction in problem.function.instructions()
        for operand in instruction.definitions + instruction.uses
        if isinstance(location := operand.location, FixedUnits)
    ]
    units = choose([*named, *problem.function.live_ins], generator)
    classes = problem.function.virtual_registers
    key = choose([k for k in answer if units.file in classes[int(k[1:])].files], generator)
    lane = VirtualLanes(int(key[1:]), generator.randrange(classes[int(key[1:])].width), 1)
    _put(problem, answer, lane, PhysicalRegister(units.file, units.first))


def destroyed_register(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A register takes a unit that an instruction destroys; if possible it lives across that."""
    calls = [
        (problem.liveness.after[block][index], instruction.destroys)
        for block, index, instruction in problem.function.instructions()
        if instruction.destroys
    ]
    point, mask = choose(calls, generator)
    units = generator.choice(mask)
    classes, liveness = problem.function.virtual_registers, problem.liveness
    lanes = [
        (VirtualLanes(number, lane, 1), liveness.live[first + lane] >> point & 1)
        for number, first in enumerate(liveness.lane_offsets)
        if units.file in classes[number].files and f"%{number}" in answer
        for lane in range(classes[number].width)
    ]
    across = [lane for lane, alive in lanes if alive]
    lane = choose(across or [lane for lane, _ in lanes], generator)
    unit = units.first + generator.randrange(units.count)
    _put(problem, answer, lane, PhysicalRegister(units.file, unit))


def early_clobber(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """An early clobber takes the register of a use of its instruction, if possible the last."""
    pairs: list[tuple[VirtualLanes, VirtualLanes]] = []
    last: list[tuple[VirtualLanes, VirtualLanes]] = []
    liveness = problem.liveness
    for block, index, instruction in problem.function.instructions():
        for operand in instruction.definitions:
            if not operand.early_clobber or not isinstance(operand.location, VirtualLanes):
                continue
            for use in instruction.uses:
                if isinstance(use.location, VirtualLanes) and not use.undef:
                    pair = operand.location, use.location
                    pairs.append(pair)
                    lane = liveness.lane_offsets[use.location.register] + use.location.first
                    if not liveness.live[lane] >> liveness.after[block][index] & 1:
                        last.append(pair)
    written, read = choose(last or pairs, generator)
    _put(problem, answer, written, _where(problem, answer, read))


def tied_mismatch(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """One of two tied registers goes elsewhere."""
    tied = [
        use.location
        for _, _, instruction in problem.function.instructions()
        for use in instruction.uses
        if use.tied_to is not None
        and use.location != instruction.definitions[use.tied_to].location
        and isinstance(use.location, VirtualLanes)
    ]
    key = f"%{choose(tied, generator).register}"
    register_class = problem.function.virtual_registers[int(key[1:])]
    answer[key] = generator.choice(list(problem.placements.legal[register_class].values()))


def one_unit_over(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> None:
    """A register shares one unit with another: the edge of a tuple."""
    classes = problem.function.virtual_registers
    first, second = _pick(answer, generator), _pick(answer, generator)
    width, other = classes[int(first[1:])].width, classes[int(second[1:])].width
    lane = VirtualLanes(int(first[1:]), generator.choice((0, width - 1)), 1)
    edge = VirtualLanes(int(second[1:]), generator.choice((0, other - 1)), 1)
    _put(problem, answer, lane, _where(problem, answer, edge))


TARGETED: dict[str, Operator] = {
    operator.__name__: operator
    for operator in (
        missing,
        unknown_virtual_register,
        unknown_physical_register,
        wrong_class,
        misaligned,
        reserved,
        beyond_budget,
        live_overlap,
        fixed_register,
        destroyed_register,
        early_clobber,
        tied_mismatch,
        one_unit_over,
    )
}


def choose(options: Sequence[_T], generator: random.Random) -> _T:
    """One of the options. Raises NotApplicable without options."""
    if not options:
        raise NotApplicable
    return generator.choice(options)


def _virtual(instruction: Instruction) -> list[VirtualLanes]:
    operands = instruction.definitions + instruction.uses
    return [o.location for o in operands if isinstance(o.location, VirtualLanes)]


def _where(
    problem: AllocationProblem, answer: MutableAssignment, lanes: VirtualLanes
) -> PhysicalRegister:
    """The unit of the first of these lanes."""
    base = parse_register_name(problem.target, answer[f"%{lanes.register}"])
    if base is None:
        raise NotApplicable
    return PhysicalRegister(base.file, base.index + lanes.first)


def _put(
    problem: AllocationProblem,
    answer: MutableAssignment,
    lanes: VirtualLanes,
    unit: PhysicalRegister,
) -> None:
    """Moves a register so that these lanes cover a unit. Raises NotApplicable if it cannot."""
    register_class = problem.function.virtual_registers[lanes.register]
    first = problem.placements.unit(unit)
    legal = problem.placements.legal[register_class]
    bases = [b for b in (first - lanes.first, first - lanes.first - lanes.count + 1) if b in legal]
    if not bases:
        raise NotApplicable
    answer[f"%{lanes.register}"] = legal[bases[0]]


def mutate_with(
    name: str, problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> MutableAssignment | None:
    """The answer after one operator, or None if the operator does not apply."""
    mutant = dict(answer)
    try:
        (OPERATORS | TARGETED)[name](problem, mutant, generator)
    except NotApplicable:
        return None
    return mutant
