"""Lanes whose first mention in a loop may leave them as they are: a guard, or a jump past it."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from tests.model.notes.speaker import read, speak
from verilocc_bench.allocators import FailureKind, Request, answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.model.notes.attempt import NotesAttempt
from verilocc_bench.model.notes.lane_lives import NOWHERE_WRITTEN, lane_lives
from verilocc_bench.model.notes.mentions import refuse_unspeakable
from verilocc_bench.model.notes.notes_ledger import noted_assignment
from verilocc_bench.model.notes.notes_window import NoBlockLeft
from verilocc_bench.verification import Verifier

HEAD = "verilocc-bench 1\ntarget sm_80\nregisters R:{} UR:4 P:4 UP:2\nclass R 1 R\nclass P 1 P\n"
LOOP = """bb0->bb1
%0=MOV
%1:P=ISETP %0
bb1->bb1,bb2
{}
@%1 BRA
bb2
STG %0
"""


def problem_of(body: str, registers: int = 8) -> AllocationProblem:
    text = HEAD.format(registers) + body
    return AllocationProblem(parse_function(text, canonical=False))


def answer_of_the_rule(problem: AllocationProblem) -> dict[str, str]:
    """The rule's answer. Raises NoBlockLeft at a dead end."""
    reading = read(problem.function)
    for window in reading:
        speak(window)
    return answer_from_assignment(problem, noted_assignment(reading.ledger))


def guarded_function(seed: int) -> str:
    """A function that mentions each register first by a write, perhaps a guarded one."""
    generator = random.Random(seed)
    count = generator.randint(3, 7)
    names: dict[str, list[str]] = {"": ["%0"], ":P": ["%1"]}

    def instruction() -> str:
        guard = generator.choice(("", "@{} ", "@!{} ")).format(generator.choice(names[":P"]))
        read, kind = generator.choice(names[""]), generator.choice(("", "", ":P"))
        what = generator.random()
        if what < 0.4:
            return f"{guard}STG {read}"
        if what < 0.6:
            return f"{guard}{generator.choice(names[kind])}=OP {read}"
        names[kind].append(f"%{sum(map(len, names.values()))}")
        return f"{guard}{names[kind][-1]}{kind}=OP {read}"

    lines = [f"bb0->bb{generator.choice((1, 1, 2))}", "%0=OP", "%1:P=OP"]
    for block in range(1, count):
        targets = {block + 1, generator.randrange(1, count)} if block + 1 < count else set()
        arrow = "->" + ",".join(f"bb{target}" for target in sorted(targets)) if targets else ""
        lines.append(f"bb{block}{arrow}")
        lines += [instruction() for _ in range(generator.randint(1, 5))]
        if len(targets) == 2:
            lines.append(f"@{generator.choice(names[':P'])} BRA")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("registers", [4, 20])
def test_an_answer_of_the_rule_is_right(registers: int) -> None:
    found = 0
    for seed in range(60):
        problem = problem_of(guarded_function(seed), registers)
        with suppress(NoBlockLeft):
            answer = answer_of_the_rule(problem)
            verdict = Verifier(problem).verify(answer)
            assert verdict.valid, (seed, problem.normalized, verdict.findings[0])
            found += 1
    assert found > 20


GUARDED = "%2:P=ISETP %0\n%3=IADD3 %0\nSTG %3\n@%2 %4=LDS\n{}"
COME_AROUND = {
    "read where the guard does not hold": (GUARDED.format("STG %4"), True),
    "read under the same guard": (GUARDED.format("@%2 STG %4"), False),
    "read under the other guard": (GUARDED.format("@!%2 STG %4"), True),
    "never read": (GUARDED.format("STG %3"), False),
    "written anew before it is read": (GUARDED.format("%4=MOV\nSTG %4"), False),
    "the guard is written anew": (GUARDED.format("%2=ISETP\n@%2 STG %4"), True),
}


@pytest.mark.parametrize(("body", "around"), COME_AROUND.values(), ids=COME_AROUND)
def test_what_comes_around_a_loop(body: str, around: bool) -> None:
    function = problem_of(LOOP.format(body)).function
    loop = (2, function.instruction_count - 2)
    lives = lane_lives(function, [loop], [])
    assert (lives[4, 0].begin == NOWHERE_WRITTEN) is around
    assert lane_lives(function, [], [])[4, 0].begin == lives[4, 0].first


def test_a_write_that_a_jump_goes_past() -> None:
    body = (
        "bb0->bb1\n%0=MOV\n%1:P=ISETP %0\nbb1->bb2,bb3\n%2=IADD3 %0\nSTG %2\n@%1 BRA\n"
        "bb2->bb3\n%3=LDS %0\nbb3->bb1,bb4\nSTG %3\n@%1 BRA\nbb4\nSTG %0\n"
    )
    problem = problem_of(body)
    answer = answer_of_the_rule(problem)
    assert answer["%2"] != answer["%3"]
    assert Verifier(problem).verify(answer).valid


def test_a_guard_that_nothing_has_written_keeps_its_register_from_the_entry() -> None:
    problem = problem_of("bb0\n%0:P=ISETP\n@%0 STG\n@%1:P STG\n@%1 STG\n")
    answer = answer_of_the_rule(problem)
    assert answer["%0"] != answer["%1"]
    assert Verifier(problem).verify(answer).valid


def test_a_tie_of_two_virtual_registers_is_refused() -> None:
    problem = problem_of("bb0\n%0=MOV\n%1=OP %0~0\nSTG %1\n")
    word = r"no word for a tie of two virtual registers \(OP\)"
    with pytest.raises(InputError, match=word):
        refuse_unspeakable(problem.function)
    attempt = NotesAttempt(0, Request(problem), 0.0, 0)
    assert not attempt.goes_on
    response = attempt.response()
    assert response.answer is None
    assert response.failure is FailureKind.NO_ANSWER
