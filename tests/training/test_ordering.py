"""Blocks in another order: the same function under other names, by both verifiers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from random import Random

import pytest

from tests.training.small import allocated, check_as_good
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.ir import Function, parse_function, print_function
from verilocc_bench.training.ordering import draw_order, reorder, reordered
from verilocc_bench.verification import FastVerifier, IndependentVerifier
from verilocc_bench.views import parse_label, problem_of

ARCHS = ("gfx90a", "gfx942", "sm_80")
ROWS = sorted(load_rows("mini").rows, key=lambda row: (row.n_instructions, row.id))

HEAD = """\
verilocc-bench 1
target gfx942
registers v:8 a:0 s:16 vcc:2=vcc_lo,vcc_hi
reserved s15
class V 1 v
class V2 2 v/2
"""
DIAMOND = f"""{HEAD}\
bb0(v0)->bb2,bb1
%0=COPY v0
%1:V2=IMPLICIT_DEF
bb1->bb3
%2=V_ADD_U32 %0,%1.0
S_BRANCH
bb2->bb3
%2=V_SUB_U32 %0,%1.1
bb3
DS_WRITE_B32 %2
"""
OTHER = f"""{HEAD}\
bb0(v0)->bb1,bb3
%0=COPY v0
%1:V2=IMPLICIT_DEF
bb1->bb2
%2=V_SUB_U32 %0,%1.1
bb2
DS_WRITE_B32 %2
bb3->bb2
%2=V_ADD_U32 %0,%1.0
S_BRANCH
"""


def rows_of(arch: str) -> list[Row]:
    """Two kernels of an architecture with several blocks, a short and a longer one."""
    found = [row for row in ROWS if row.arch == arch and "\nbb4" in row.normalized]
    return found[:5:4]


def label_of(row: Row) -> dict[str, str]:
    found = parse_label("compiler").answer(row)
    assert found is not None
    return found


def leads_on(function: Function, order: tuple[int, ...]) -> bool:
    """Whether each block that the entry leads to comes after one of its predecessors."""
    led, pending = {0}, [0]
    while pending:
        fresh = set(function.blocks[pending.pop()].successors) - led
        led |= fresh
        pending += fresh
    told = {0}
    for block in order:
        if block in led and block not in told:
            return False
        told.update(function.blocks[block].successors)
    return True


def check_same_function(
    problem: AllocationProblem, other: AllocationProblem, order: tuple[int, ...]
) -> None:
    # It is a normal form: read strictly, it is the same bytes and the same function.
    text = other.normalized
    read = parse_function(text)
    assert read == other.function
    assert print_function(read) == text
    assert AllocationProblem.from_text(text).normalized == text
    # Put back it is the same bytes as before.
    back, _ = reorder(other, {}, sorted(range(len(order)), key=order.__getitem__))
    assert back.normalized == problem.normalized
    assert other.loop_depths == tuple(problem.loop_depths[block] for block in order)
    assert other.pressure.maximum == problem.pressure.maximum
    if any(each.guard is not None for _, _, each in problem.function.instructions()):
        # Of the states that guards allow at a point pressure takes one, in case of doubt by the
        # numbers of lanes: so the count there, a lower bound, may be another.
        return
    for group, curve in problem.pressure.curves.items():
        assert sorted(other.pressure.curves[group]) == sorted(curve)


def lifetimes(
    problem: AllocationProblem, numbers: Mapping[int, int], places: Mapping[int, int]
) -> dict[tuple[int, int], Counter[tuple[int, int, bool]]]:
    """Where each lane of each register is live and defined, under these numbers and places."""
    liveness = problem.liveness
    found: dict[tuple[int, int], Counter[tuple[int, int, bool]]] = {}
    for register, kind in enumerate(problem.function.virtual_registers):
        for lane in range(kind.width):
            at = liveness.lane_offsets[register] + lane
            found[numbers[register], lane] = Counter(
                (places[block], index, bool(liveness.defined[at] >> point & 1))
                for point, (block, index) in enumerate(liveness.points)
                if liveness.live[at] >> point & 1
            )
    return found


def check_same_answer(
    problem: AllocationProblem,
    answer: Mapping[str, str],
    other: AllocationProblem,
    found: Mapping[str, str],
) -> None:
    before, after = check_as_good(problem, answer, other, found)
    assert after.registers_used == before.registers_used
    assert after.occupancy == before.occupancy
    assert sorted(found.values()) == sorted(answer.values())


@pytest.mark.parametrize("arch", ARCHS)
def test_labels_stay_valid_and_the_same(arch: str) -> None:
    for row in rows_of(arch):
        problem, answer = problem_of(row), label_of(row)
        order = draw_order(problem.function, Random(row.id))
        assert leads_on(problem.function, order)
        other, found = reorder(problem, answer, order)
        check_same_function(problem, other, order)
        check_same_answer(problem, answer, other, found)


@pytest.mark.parametrize("arch", ARCHS)
def test_wrong_answers_stay_wrong(arch: str) -> None:
    row = rows_of(arch)[0]
    problem, answer = problem_of(row), label_of(row)
    generator = Random(arch)
    verdicts = []
    for _, other, found, wrong in wrong_ones(problem, answer, generator):
        before = FastVerifier(problem).verify(wrong).valid
        verdicts.append(before)
        assert FastVerifier(other).verify(found).valid == before
        assert IndependentVerifier(other).verify(found).valid == before
    assert verdicts.count(False) >= 4


def wrong_ones(
    problem: AllocationProblem, answer: dict[str, str], generator: Random
) -> Iterator[tuple[int, AllocationProblem, dict[str, str], dict[str, str]]]:
    """Answers that were changed at a place or two, mostly for the worse, each in some order."""
    classes = problem.function.virtual_registers
    for number in range(12):
        wrong = dict(answer)
        for _ in range(1 + number % 2):
            register = generator.randrange(len(classes))
            legal = set(problem.placements.legal[classes[register]].values())
            wrong[f"%{register}"] = generator.choice(sorted(legal.intersection(answer.values())))
        if number == 4:
            del wrong["%1"]
        if number == 8:
            wrong["%99999"] = "v0"
        other, found = reorder(problem, wrong, draw_order(problem.function, generator))
        yield number, other, found, wrong


@pytest.mark.parametrize("target", ARCHS)
def test_generated_functions(target: str) -> None:
    """Guards, irreducible loops, blocks that nothing leads to, values that are never written."""
    checked = moved = unreachable = 0
    for seed, problem, answer in allocated(target, 60):
        count = len(problem.function.blocks)
        order = draw_order(problem.function, Random(seed))
        assert leads_on(problem.function, order)
        other, found = reorder(problem, answer, order)
        check_same_function(problem, other, order)
        tags = {f"%{n}": str(n) for n in range(len(problem.function.virtual_registers))}
        numbers = {int(t): int(key[1:]) for key, t in reorder(problem, tags, order)[1].items()}
        registers, blocks = range(len(numbers)), range(count)
        assert lifetimes(other, {n: n for n in registers}, {n: n for n in blocks}) == lifetimes(
            problem, numbers, {old: new for new, old in enumerate(order)}
        )
        if FastVerifier(problem).verify(answer).valid:
            check_same_answer(problem, answer, other, found)
            checked += 1
        moved += order != tuple(range(count))
        named = {s for block in problem.function.blocks for s in block.successors}
        unreachable += len(named | {0}) < count
    assert min(checked, moved, unreachable) > 4


def test_a_diamond_by_hand() -> None:
    problem = AllocationProblem.from_text(DIAMOND)
    other, found = reorder(problem, {"%0": "v0", "%1": "v2", "%2": "v1", "%9": "v7"}, (0, 2, 3, 1))
    assert other.normalized == OTHER
    assert found == {"%0": "v0", "%1": "v2", "%2": "v1", "%9": "v7"}


def test_registers_are_numbered_anew_and_the_answer_goes_along() -> None:
    text = DIAMOND.replace("%2=V_ADD_U32 %0,%1.0", "%2=V_MOV %0\n%3=V_ADD_U32 %2,%1.0")
    text = text.replace("%2=V_SUB", "%3=V_SUB").replace("B32 %2\n", "B32 %3\n")
    problem = AllocationProblem.from_text(text)
    answer = {"%0": "v0", "%1": "v2", "%2": "v4", "%3": "v1"}
    other, found = reorder(problem, answer, (0, 2, 3, 1))
    assert found == {"%0": "v0", "%1": "v2", "%2": "v1", "%3": "v4"}
    assert list(found) == sorted(found)
    check_same_function(problem, other, (0, 2, 3, 1))


@pytest.mark.parametrize("order", [(1, 0, 2, 3), (0, 1, 2), (0, 1, 2, 2), (0, 1, 2, 4)])
def test_what_is_no_order(order: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="4 blocks"):
        reorder(AllocationProblem.from_text(DIAMOND), {}, order)


def test_all_orders_are_found_each_once() -> None:
    problem = AllocationProblem.from_text(DIAMOND)
    orders = {draw_order(problem.function, Random(seed)) for seed in range(100)}
    # The join comes after one side at least.
    assert orders == {(0, 1, 2, 3), (0, 2, 1, 3), (0, 1, 3, 2), (0, 2, 3, 1)}
    texts = [each.problem.normalized for each in reordered(problem, {}, 9, 0)]
    assert texts[0] == DIAMOND
    assert len(texts) == len(set(texts)) == 4


def test_one_block_has_one_order() -> None:
    row = next(row for row in ROWS if "\nbb1" not in row.normalized)
    first, *others = reordered(problem_of(row), label_of(row), 5, 3)
    assert first.problem.normalized == row.normalized
    assert first.answer == label_of(row)
    assert first.seed == 3
    assert not others


def test_same_seed_same_orders() -> None:
    row = rows_of("sm_80")[0]

    def texts(seed: int) -> list[str]:
        found = reordered(problem_of(row), label_of(row), 2, seed)
        return [each.problem.normalized for each in found]

    assert texts(1) == texts(1)
    assert texts(1) != texts(2)
    assert len(set(texts(1))) == 3


def test_the_order_that_is_there_is_one_of_them() -> None:
    # The embedded kernels all have orders that could have been drawn.
    for row in ROWS:
        function = parse_function(row.normalized)
        assert leads_on(function, tuple(range(len(function.blocks))))
