"""Ejection: where a register fits nowhere, what is in its way is asked about again."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tests.model.test_prompts import SMALL, TIGHT, problem_of
from verilocc_bench.allocators.ejection import LOOKED_AT, Ejection
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import AnswerLike
from verilocc_bench.verification import FastVerifier, IndependentVerifier

HEAD = TIGHT.partition("class S")[0].replace("v:2", "v:4")


def is_valid(problem: AllocationProblem, answer: AnswerLike | None) -> bool:
    """What both verifiers say."""
    assert answer is not None
    said = {kind(problem).verify(answer).valid for kind in (FastVerifier, IndependentVerifier)}
    assert len(said) == 1
    return said.pop()


def test_what_has_given_way_is_not_placed() -> None:
    """%2 of four lanes takes the places of %0 and %1; then %0 has none, and %1 none either."""
    text = HEAD + "class V4 4 v/2\nbb0\n%0=OP\n%1=OP\n%2:V4=OP\nUSE %0,%1,%2\n"
    problem = problem_of(text)
    search = Ejection(RegisterState(problem), [0, 1, 2])
    assert not run(search, 1)
    assert (search.register, len(search.state.placed)) == (0, 1)


def widest_first(problem: AllocationProblem) -> list[int]:
    classes = problem.function.virtual_registers
    return sorted(range(len(classes)), key=lambda register: (-classes[register].width, register))


def random_tight_problem(generator: random.Random) -> AllocationProblem:
    """Straight code whose values end at random; few registers."""
    lines, live = [], []
    for register in range(generator.randint(4, 7)):
        each = generator.choice(("V", "V", "V2", "V4"))
        dying = [other for other in live if generator.random() < 0.35]
        live = [other for other in live if other not in dying] + [register]
        uses = ",".join(f"%{other}" for other in dying)
        lines.append(f"%{register}:{each}=OP {uses}".rstrip())
    lines.append("USE " + ",".join(f"%{register}" for register in live))
    head = HEAD.replace("v:4", f"v:{generator.randint(4, 9)}")
    return problem_of(f"{head}class V2 2 v/2\nclass V4 4 v/2\nbb0\n" + "\n".join(lines) + "\n")


def exists(state: RegisterState, order: Sequence[int]) -> bool:
    """Whether what is left can be placed: every way is tried."""
    if not order:
        return True
    for base in state.legal(order[0]):
        state.place(order[0], base)
        if exists(state, order[1:]):
            return True
        state.evict(order[0])
    return False


def run(
    search: Ejection, limit: int, choose: Callable[[list[int]], int] = lambda bases: bases[0]
) -> bool:
    """Whether all find a place within so many dead ends."""
    while search.register is not None:
        choices = list(search.choices())
        if choices:
            search.take(choose(choices))
        elif search.steps == limit or not search.eject():
            return False
    return True


def named(state: RegisterState) -> dict[str, str]:
    classes, placements = state.problem.function.virtual_registers, state.problem.placements
    return {f"%{r}": placements.legal[classes[r]][base] for r, base in state.placed.items()}


def test_assignments_are_found_where_there_are_any() -> None:
    """In whatever order; never where every way fails."""
    found: Counter[tuple[bool, bool]] = Counter()
    ejected = 0
    for seed in range(90):
        generator = random.Random(seed)
        problem = random_tight_problem(generator)
        order = list(range(len(problem.function.virtual_registers)))
        generator.shuffle(order)
        search = Ejection(RegisterState(problem), order)
        complete = run(search, 50)
        if complete:
            assert is_valid(problem, named(search.state))
            ejected += search.steps > 0
        else:
            assert search.steps == 50
        found[exists(RegisterState(problem), order), complete] += 1
    assert found[False, True] == 0
    assert found[False, False] > 4
    assert found[True, True] > 20 * found[True, False]
    assert ejected > 2


def test_real_kernels_at_a_tight_budget() -> None:
    """Any base at random, with no more than one vector register to spare."""
    ejections = 0
    for row in (row for row in SMALL if row.arch != "sm_80"):
        pressure = AllocationProblem.from_text(row.normalized).pressure.maximum["vector"]
        text = row.normalized.replace("registers v:256 a:256", f"registers v:{pressure + 1} a:0")
        problem = problem_of(text)
        for seed in range(3):
            search = Ejection(RegisterState(problem), widest_first(problem))
            assert run(search, 1_000, random.Random(seed).choice)
            assert is_valid(problem, named(search.state))
            ejections += search.steps
    assert ejections > 20


class Witness:
    """Keeps its own count of dead ends, and says what an ejection must do."""

    def __init__(self, search: Ejection, order: Sequence[int]) -> None:
        self.search, self.order = search, order
        self.dead_ends: Counter[int] = Counter()
        self.not_the_lightest = 0

    def check(self) -> bool:
        """Ejects; whether there was something to eject."""
        search, register = self.search, self.search.register
        assert register is not None
        state = search.state
        before, blockers = dict(state.placed), state.blockers(register)
        steps = search.steps
        assert search.eject() == bool(blockers)
        assert search.steps == steps + bool(blockers)
        if not blockers:
            assert dict(state.placed) == before
            return False
        self.dead_ends[register] += 1

        (base,) = [b for r, b in state.placed.items() if r not in before]
        self._check_choice(before, register, base, blockers)
        gone = before.keys() - state.placed.keys()
        assert gone == blockers[base]
        assert state.placed == {r: b for r, b in before.items() if r not in gone} | {register: base}
        assert search.register == next(r for r in self.order if r in gone)
        return True

    def _check_choice(
        self, before: Mapping[int, int], register: int, base: int, blockers: Mapping[int, set[int]]
    ) -> None:
        """Of what is light enough to be looked at, the first that leaves least without a place."""
        weights = {b: sum(map(self._weight, others)) for b, others in blockers.items()}
        left = {b: self._homeless(before, register, b, blockers[b]) for b in blockers}
        lighter = [b for b in weights if weights[b] < weights[base]]
        assert len(lighter) < LOOKED_AT
        assert all(left[b] > left[base] for b in lighter)
        # What has fewer than so many that are as light is surely looked at.
        sure = [b for b in weights if sum(w <= weights[b] for w in weights.values()) <= LOOKED_AT]
        assert all(left[b] >= left[base] for b in sure)
        self.not_the_lightest += bool(lighter)

    def _homeless(
        self, before: Mapping[int, int], register: int, base: int, others: set[int]
    ) -> int:
        """On a state that is built anew."""
        state = RegisterState(self.search.state.problem)
        for other, its_base in before.items():
            if other not in others:
                state.place(other, its_base)
        state.place(register, base)
        homeless = 0
        for other in sorted(others, key=self.order.index):
            bases = list(state.legal(other))
            if bases:
                state.place(other, bases[0])
            else:
                homeless += self._weight(other)
        return homeless

    def _weight(self, register: int) -> int:
        state = self.search.state
        lives = (live | defined for live, defined in state.lifetimes(register))
        return sum(map(int.bit_count, lives)) * (1 + self.dead_ends[register])


def test_the_lightest_give_way_and_come_next() -> None:
    heavier = several = looked = 0
    for seed in range(120):
        generator = random.Random(seed)
        problem = random_tight_problem(generator)
        order = widest_first(problem)
        generator.shuffle(order)
        search = Ejection(RegisterState(problem), order)
        witness = Witness(search, order)
        while search.register is not None and search.steps < 12:
            choices = list(search.choices())
            if choices:
                search.take(generator.choice(choices))
                continue
            count = len(search.state.placed)
            assert witness.check()
            several += len(search.state.placed) < count
        looked += witness.not_the_lightest
        heavier += max(witness.dead_ends.values(), default=0) > 1
        if search.register is None:
            assert len(search.state.placed) == len(order)
    assert heavier > 20
    assert several > 8
    assert looked > 2
