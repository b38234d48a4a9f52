"""The small scope is complete, its judges agree, and faults planted in them are found."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.selftest.test_campaign import (
    NoFixedRegisters,
    checker_of,
    fast_check_of,
    one_path,
    without_destruction,
    without_early_clobbers,
    without_guards,
)
from verilocc_bench.cli import main
from verilocc_bench.errors import InputError
from verilocc_bench.ir import (
    Block,
    FixedUnits,
    Function,
    Guard,
    Instruction,
    Operand,
    VirtualLanes,
    parse_function,
    print_function,
)
from verilocc_bench.selftest.oracle import Oracle
from verilocc_bench.selftest.renumber import renumber
from verilocc_bench.selftest.small_scope import FAMILIES, Enumeration, EnumerationState
from verilocc_bench.selftest.small_scope import small_scope_judging as judging_module
from verilocc_bench.selftest.small_scope.grammar import Family, Grammar, RegisterKind
from verilocc_bench.selftest.small_scope.small_scope_judging import NOT_SHOWN, FunctionJudge
from verilocc_bench.verification.value_walk import ValueWalk

pytestmark = pytest.mark.slow

LANES = Family(
    name="test lanes",
    target="gfx942",
    budgets=(("v", 3),),
    kinds=(RegisterKind("v"), RegisterKind("v", 2)),
    registers=2,
    operands=2,
)
GUARDS = Family(
    name="test guards",
    target="sm_80",
    budgets=(("R", 2), ("P", 1)),
    kinds=(RegisterKind("R", most=2),),
    registers=2,
    operands=2,
    definitions=1,
    uses=1,
    early_clobbers=False,
    ties=False,
    undef_uses=False,
    guards=True,
    fixed=FixedUnits("P", 0, 1),
    fixed_operands=False,
)

ONE_FILE = Family(
    name="test one file",
    target="gfx942",
    budgets=(("v", 2),),
    kinds=(RegisterKind("v", most=2),),
    registers=2,
    operands=3,
    definitions=1,
    uses=1,
    ties=False,
    undef_uses=False,
    needed=(0,),
)


def texts_of(family: Family, instructions: int) -> list[str]:
    grammar = Grammar(family)
    return [
        print_function(function)
        for count in range(1, instructions + 1)
        for chunk in grammar.chunks(count)
        for function in grammar.functions(chunk)
    ]


ONE_BLOCK: list[Any] = [[()], [(0,)]]
TWO_BLOCKS: list[Any] = [[(1,), (0,)], [(1,), (1,)], [(0, 1), ()]]


def naive_texts(family: Family) -> set[str]:
    """The functions of up to two instructions and two operands: all, less those that break a rule.

    Over two registers of any kinds under any numbers, then numbered anew.
    """
    grammar = Grammar(family)
    found: set[str] = set()
    for kinds in itertools.product(range(len(family.kinds)), repeat=2):
        if any(kinds.count(number) > kind.most for number, kind in enumerate(family.kinds)):
            continue
        classes = tuple(grammar.classes[kind] for kind in kinds)
        empty = Function(family.target, grammar.files, (), classes, (), ())
        instructions = naive_instructions(family, empty)
        bodies: list[list[list[Instruction]]] = [[[each]] for each in instructions]
        for one, other in itertools.product(instructions, repeat=2):
            if len(one.definitions + one.uses + other.definitions + other.uses) <= family.operands:
                bodies += [[[one, other]], [[one], [other]]]
        for parts in bodies:
            if family.guards and not any(i.guard for part in parts for i in part):
                continue
            for edges in ONE_BLOCK if len(parts) == 1 else TWO_BLOCKS:
                blocks = tuple(Block(tuple(p), to) for p, to in zip(parts, edges, strict=True))
                found.add(print_function(renumber(replace(empty, blocks=blocks))[0]))
    return found


def naive_instructions(family: Family, function: Function) -> list[Instruction]:
    locations = [
        VirtualLanes(number, first, count)
        for number, each in enumerate(function.virtual_registers)
        for first, count in ((0, each.width), (0, 1), (1, 1))
        if first + count <= each.width
    ]
    marks = itertools.product((False, True), (False, True), (None, 0, 1))
    operands = [
        Operand(location, undef, early, False, tied)
        for location, (undef, early, tied) in itertools.product(dict.fromkeys(locations), marks)
    ]
    assert family.fixed is None or not family.fixed_operands
    guards = [None] if family.fixed is None else [None, *(Guard(family.fixed, n) for n in (0, 1))]
    found = [
        Instruction("OP", chosen[:definitions], chosen[definitions:], guard)
        for guard in guards
        for count in range(family.operands + 1)
        for chosen in itertools.product(operands, repeat=count)
        for definitions in range(count + 1)
    ]
    return [each for each in found if keeps_the_rules(family, function, each)]


def keeps_the_rules(family: Family, function: Function, instruction: Instruction) -> bool:
    definitions, uses = instruction.definitions, instruction.uses
    classes = function.virtual_registers

    def is_whole(operand: Operand) -> bool:
        location = operand.location
        assert isinstance(location, VirtualLanes)
        return location.count == classes[location.register].width

    may_be_early = family.early_clobbers and (uses or instruction.guard)
    return (
        bool(definitions or uses or instruction.guard)
        and len(definitions) <= family.definitions
        and len(uses) <= family.uses
        and not any(each.tied_to is not None for each in definitions)
        and not any(each.undef and is_whole(each) for each in definitions)
        and not any(each.early_clobber and not may_be_early for each in definitions)
        and not any(each.early_clobber for each in uses)
        and not any(each.undef and not (family.undef_uses and is_whole(each)) for each in uses)
        and all(
            each.tied_to is None
            or (
                family.ties
                and each.tied_to < len(definitions)
                and definitions[each.tied_to].location.count == each.location.count
            )
            for each in uses
        )
    )


@pytest.mark.parametrize("family", [LANES, GUARDS], ids=["lanes", "guards"])
def test_every_function_is_there_once(family: Family) -> None:
    enumerated = texts_of(family, 2)
    assert len(set(enumerated)) == len(enumerated) > 300
    assert set(enumerated) == naive_texts(family)


def test_parts_are_in_one_order_and_have_functions_that_can_be_read() -> None:
    for family in FAMILIES.values():
        grammar = Grammar(family)
        chunks = list(grammar.chunks(1))
        assert chunks == list(Grammar(family).chunks(1))
        for chunk in chunks[:: len(chunks) // 3 + 1]:
            for function in grammar.functions(chunk):
                assert parse_function(print_function(function)) == function


@pytest.mark.parametrize(
    ("names", "functions", "answers"),
    [
        ("four-operands guarded-lanes destroyed-guards", 128, 1728),
        pytest.param("guards destroyed", 264, 3496, marks=pytest.mark.exhaustive),
    ],
)
def test_judges_agree_on_the_smallest_functions(names: str, functions: int, answers: int) -> None:
    families = [FAMILIES[name] for name in names.split()]
    enumeration = Enumeration(families, instructions=1, smt=True)
    total = enumeration.run().total
    assert enumeration.complete
    assert not total.disagreements, total.told
    counts = total.counts
    assert (counts["functions"], counts["answers"]) == (functions, answers)
    kinds = ("illegal", "tied", "wrong values", "valid")
    assert counts["answers"] == sum(counts[kind] for kind in kinds)
    assert counts["shown"] == counts["wrong values"] > 40
    assert set(total.accepted.values()) == {counts["valid"]}
    assert set(total.accepted) == {"fast", "independent", "oracle", "smt"}
    assert 0 < len(total.questions) < 40


def test_an_answer_is_idle_where_an_instruction_that_never_acts_is_all_that_is_wrong() -> None:
    text = """verilocc-bench 1
target sm_80
registers R:2 UR:0 P:1 UP:0
class R 1 R
class P 1 P
bb0->bb0,bb1
@%0:P OP
bb1
@%0 %1,%2=OP
"""
    judge = FunctionJudge(smt=False)
    judge.judge(parse_function(text))
    assert not judge.outcome.disagreements, judge.outcome.told
    assert judge.outcome.counts["idle"] == judge.outcome.counts["wrong values"] == 2
    assert judge.outcome.counts["valid"] == 2
    text = text.replace("@%0 %1", "@!%0 %1")
    judge.judge(parse_function(text))
    assert judge.outcome.counts["idle"] == judge.outcome.counts["shown"] == 2


@pytest.mark.parametrize(
    ("careless", "family", "kind", "shown"),
    [
        (fast_check_of(without_early_clobbers), ONE_FILE, "fast accepts what independent rejects",
         "&"),
        (NoFixedRegisters, replace(FAMILIES["fixed"], kinds=(RegisterKind("v"),), registers=1),
         "fast accepts what oracle rejects", ""),
        (fast_check_of(without_guards), replace(GUARDS, operands=3, budgets=(("R", 1), ("P", 1))),
         "oracle accepts what fast rejects", "@"),
        (fast_check_of(without_destruction), FAMILIES["destroyed-fixed"],
         "fast accepts what oracle rejects", "mask"),
        (checker_of(one_path), ONE_FILE, "independent accepts what oracle rejects", "bb1"),
    ],
    ids=["early clobbers", "fixed registers", "guards", "destruction", "joins"],
)  # fmt: skip
def test_a_careless_judge_is_found(
    careless: Any, family: Family, kind: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = "SymbolicChecker" if kind.startswith("independent") else "FastVerifier"
    monkeypatch.setattr(judging_module, judge, careless)
    assert shown in found(family, kind)


def test_careless_oracles_and_idle_value_walks_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Oracle, "_keeps_ties", lambda *_: True)
    assert "~0" in found(LANES, "oracle accepts what smt rejects")
    monkeypatch.setattr(ValueWalk, "run", lambda *_: None)
    assert found(ONE_FILE, NOT_SHOWN)


def found(family: Family, kind: str) -> str:
    """What is told of the first disagreement of a kind."""

    def stop(state: EnumerationState) -> None:
        if state.total.disagreements[kind]:
            raise KeyboardInterrupt

    enumeration = Enumeration([family], smt=family is LANES)
    state = enumeration.run(progress=stop)
    assert enumeration.interrupted, state.total.disagreements
    told = [text for each, text in state.total.told if each == kind]
    assert told
    return told[0]


def test_an_interrupted_run_goes_on_and_counts_the_same(tmp_path: Path) -> None:
    path, families = tmp_path / "states" / "state.json", [FAMILIES["destroyed-guards"], GUARDS]
    seen: list[int] = []
    while True:
        run = Enumeration(families, instructions=1, state_path=path)
        if run.complete:
            break

        def interrupt(state: EnumerationState) -> None:
            seen.append(state.done)
            if state.done % 40 == 0:
                raise KeyboardInterrupt

        run.run(progress=interrupt)
    assert len(seen) == len(set(seen)) == len(run.chunks) > 100
    whole = Enumeration(families, instructions=1)
    assert run.state.families == whole.run(jobs=2).families


def test_a_state_of_another_scope_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    Enumeration([GUARDS], instructions=1, state_path=path).run()
    with pytest.raises(InputError, match=r"state\.json: the state of another scope"):
        Enumeration([GUARDS], instructions=2, state_path=path)
    for damage in ("[]", '{"format": 1}', path.read_text().replace('"answers": ', '"answers": "x')):
        path.write_text(damage)
        with pytest.raises(InputError, match="expected"):
            Enumeration([GUARDS], instructions=1, state_path=path)


SMALL = ["selftest", "--small-scope", "--families", "guarded-lanes", "--instructions", "1"]


def test_the_command_prints_a_table_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.json"
    assert main([*SMALL, "--resume", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "guarded-lanes" in printed
    assert "512 answers to 32 functions; no disagreement" in printed
    assert main([*SMALL, "--resume", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["complete"]
    assert document["total"]["answers"] == 512
    monkeypatch.setattr(Oracle, "judge", lambda *_: True)
    assert main([*SMALL, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document["total"]["disagreement_counts"]["oracle accepts what fast rejects"] == 320
    assert "oracle accepts what" in document["disagreements"][0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--small-scope", "--seconds", "3"], "--seconds is not with --small-scope"),
        (["--resume", "x"], "--resume is for --small-scope"),
        (["--small-scope", "--families", "x"], "no family 'x'; there are lanes, "),
        (["--small-scope", "--instructions", "4"], "expected 1 to 3, not 4"),
    ],
)
def test_options_that_do_not_fit(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["selftest", *options]) == 2
    assert message in capsys.readouterr().err
