"""Corruptions of valid answers."""

from __future__ import annotations

import random
from collections.abc import Callable

from verilocc_bench.analysis import AllocationProblem

Answer = dict[str, str]
Operator = Callable[[AllocationProblem, Answer, random.Random], None]


def _numbered(name: str) -> tuple[str, int] | None:
    letters = name.rstrip("0123456789")
    return (letters, int(name[len(letters) :])) if letters != name else None


def _pick(answer: Answer, generator: random.Random) -> str:
    return generator.choice(list(answer))


def swap(_: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """Two virtual registers exchange their registers."""
    a, b = _pick(answer, generator), _pick(answer, generator)
    answer[a], answer[b] = answer[b], answer[a]


def swap_in_class(problem: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """Two virtual registers of one class exchange their registers."""
    a = _pick(answer, generator)
    classes = problem.function.virtual_registers
    same = [f"%{n}" for n, c in enumerate(classes) if c == classes[int(a[1:])]]
    b = generator.choice(same)
    answer[a], answer[b] = answer[b], answer[a]


def shift(_: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """A register moves by an even distance."""
    key = _pick(answer, generator)
    if base := _numbered(answer[key]):
        distance = generator.choice((-8, -4, -2, 2, 4, 8))
        answer[key] = f"{base[0]}{max(0, base[1] + distance)}"


def misalign(_: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """A register moves by one."""
    key = _pick(answer, generator)
    if base := _numbered(answer[key]):
        answer[key] = f"{base[0]}{base[1] + 1}"


def wrong_file(problem: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """A register moves to another file."""
    key = _pick(answer, generator)
    name = answer[key]
    base = _numbered(name)
    index = str(base[1]) if base else "0"
    answer[key] = generator.choice(problem.target.files).name + index


def drop(_: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """A virtual register gets nothing."""
    del answer[_pick(answer, generator)]


def overlap(_: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """A virtual register takes the register of another."""
    answer[_pick(answer, generator)] = answer[_pick(answer, generator)]


def place_anywhere(problem: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """A virtual register takes any base that its class allows."""
    key = _pick(answer, generator)
    register_class = problem.function.virtual_registers[int(key[1:])]
    answer[key] = generator.choice(list(problem.placements.legal[register_class].values()))


def over_budget(_: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """A register beyond the end of its file."""
    key = _pick(answer, generator)
    if base := _numbered(answer[key]):
        answer[key] = f"{base[0]}{generator.choice((7, 63, 101, 102, 128, 255, 256, 511, 1000))}"


def invent(_: AllocationProblem, answer: Answer, generator: random.Random) -> None:
    """A name that no assembler knows, or a virtual register that does not exist."""
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


def mutate(
    problem: AllocationProblem, answer: Answer, generator: random.Random
) -> tuple[str, Answer]:
    """The name of an operator and the answer after it (now and then the same answer)."""
    name = generator.choice(list(OPERATORS))
    mutant = dict(answer)
    OPERATORS[name](problem, mutant, generator)
    return name, mutant
