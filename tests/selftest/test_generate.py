"""Generated functions and answers are what the self-test needs of them."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import edit_function, edits_to_json, parse_edits
from verilocc_bench.errors import InputError
from verilocc_bench.ir import VirtualLanes, parse_function, print_function
from verilocc_bench.selftest.case_answers import random_answer
from verilocc_bench.selftest.edit_mutate import EDIT_OPERATORS, mutate_edits
from verilocc_bench.selftest.generate import random_function
from verilocc_bench.selftest.mutate import OPERATORS, TARGETED, mutate_with
from verilocc_bench.selftest.random_edits import random_edits
from verilocc_bench.targets import PUBLISHED, MaskChange, get_target
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.symbolic import SymbolicChecker


@pytest.mark.parametrize("target", PUBLISHED)
def test_functions_are_canonical_and_varied(target: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(200):
        function = random_function(seed, target=target)
        text = print_function(function)
        assert parse_function(text) == function
        assert AllocationProblem(function).normalized == text
        assert function == random_function(seed, target=target)
        for _, _, instruction in function.instructions():
            for use in instruction.uses:
                if use.tied_to is not None:
                    definition = instruction.definitions[use.tied_to].location
                    seen["tied"] += 1
                    seen["tied to another"] += definition != use.location and isinstance(
                        definition, VirtualLanes
                    )
            seen["constant"] += instruction.opcode in get_target(target).constant_opcodes
            seen["early"] += any(o.early_clobber for o in instruction.definitions)
            seen["guard"] += instruction.guard is not None
            change = get_target(target).mask_change(instruction)
            seen["widens"] += bool(change & MaskChange.WIDENS)
            seen["narrows"] += bool(change & MaskChange.NARROWS)
    wanted = {"tied", "tied to another", "constant", "early"}
    wanted |= {"guard"} if target == "sm_80" else {"widens", "narrows"}
    assert all(seen[feature] >= 20 for feature in wanted), seen


@pytest.mark.parametrize("target", PUBLISHED)
def test_most_functions_have_an_answer_and_edits_that_are_valid(target: str) -> None:
    answered = edited = valid = 0
    for seed in range(75):
        problem = AllocationProblem(random_function(seed, target=target))
        try:
            answer = random_answer(problem, random.Random(seed))
        except InputError:
            continue
        if not answer:
            continue
        answered += 1
        assert FastVerifier(problem).verify(answer).valid
        split = random_edits(problem, answer, random.Random(seed))
        if split is not None:
            edited += 1
            assert parse_edits(edits_to_json(split.edits)) == split.edits
            checker = SymbolicChecker(problem.function)
            valid += not checker.check(split.assignment, split.edits)
    assert answered > 40
    assert edited > answered / 2
    assert valid > 0.6 * edited


def test_every_operator_applies_somewhere() -> None:
    applied: Counter[str] = Counter()
    invalid = 0
    for seed in range(190):
        target = ("gfx90a", "sm_80")[seed % 2]
        calls = seed >= 150
        problem = AllocationProblem(random_function(seed, target=target, calls=calls))
        generator = random.Random(seed)
        answer = random_answer(problem, generator)
        if not answer:
            continue
        for name in (*OPERATORS, *TARGETED):
            before = dict(answer)
            applied[name] += mutate_with(name, problem, answer, generator) is not None
            assert answer == before
        edited = random_edits(problem, answer, generator, 3)
        for name in EDIT_OPERATORS if edited is not None else ():
            assert edited is not None
            mutant = mutate_edits(name, problem, edited, generator)
            applied[name] += mutant is not None
            if mutant is not None and name == "invalid_edit":
                _, findings = edit_function(problem.function, problem.target, mutant.edits)
                invalid += bool(findings)
    assert applied.keys() == OPERATORS.keys() | TARGETED.keys() | EDIT_OPERATORS.keys()
    assert all(count >= 3 for count in applied.values()), applied
    assert invalid == applied["invalid_edit"]


@pytest.mark.parametrize("target", PUBLISHED)
def test_functions_with_calls_are_canonical_and_destroy_registers(target: str) -> None:
    seen: Counter[str] = Counter()
    for seed in range(100):
        plain = random_function(seed, target=target, varied=seed % 2 == 1)
        function = random_function(seed, target=target, varied=seed % 2 == 1, calls=True)
        assert parse_function(print_function(function)) == function
        AllocationProblem(function)
        for (_, _, before), (_, _, after) in zip(
            plain.instructions(), function.instructions(), strict=True
        ):
            assert after.definitions[: len(before.definitions)] == before.definitions
            if not after.destroys:
                assert after == before
                continue
            seen["destroys"] += 1
            seen["defines one"] += len(after.definitions) > len(before.definitions)
            seen["reads one"] += len(after.uses) > len(before.uses)
            seen["guarded"] += after.guard is not None
        seen["two masks"] += len(function.masks()) > 1
    wanted = {"destroys", "defines one", "reads one", "two masks"}
    wanted |= {"guarded"} if target == "sm_80" else set()
    assert all(seen[feature] >= 10 for feature in wanted), seen
