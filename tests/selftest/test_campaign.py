"""The campaign finds what judges disagree about, and makes it small."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import AnswerLike, Edits, edit_function, parse_edits
from verilocc_bench.edits.findings import FindingKind, Verdict
from verilocc_bench.ir import (
    FixedUnits,
    Function,
    Instruction,
    Operand,
    parse_function,
    print_function,
)
from verilocc_bench.selftest.asked_judges import BoundedJudges
from verilocc_bench.selftest.campaign import Campaign, CampaignOutcome, Disagreement
from verilocc_bench.selftest.campaign_table import document, render
from verilocc_bench.selftest.case import Case
from verilocc_bench.selftest.shrink import shrink
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification import judges as judges_module
from verilocc_bench.verification import verifier as verifier_module
from verilocc_bench.verification.symbolic import SymbolicChecker
from verilocc_bench.verification.symbolic.checker import Judgement

pytestmark = pytest.mark.slow

MUTANTS = 20_000
"""A campaign that has not found a deliberate error by then does not look for it."""
SMALL_KERNEL = 52  # the seed of a campaign whose first kernel is one of the shortest


def found_by(seed: int, kind: str) -> Disagreement:
    """The first disagreement of a kind that a campaign finds."""

    def stop(outcome: CampaignOutcome) -> None:
        if outcome.kinds[kind]:
            raise KeyboardInterrupt

    outcome = Campaign(seed, mutants=MUTANTS).run(stop)
    found = [each for each in outcome.disagreements if each.kind == kind]
    assert found, outcome.kinds
    check(found[0])
    return found[0]


def check(disagreement: Disagreement) -> None:
    """What was shrunk is a canonical problem about which the judges still disagree."""
    function = disagreement.case.function
    assert parse_function(print_function(function)) == function
    opinion = BoundedJudges(AllocationProblem(function)).judge(disagreement.case)
    assert disagreement.kind in opinion.disagreements()


def with_each(function: Function, change: Callable[[Instruction], Instruction]) -> Function:
    return replace(
        function,
        blocks=tuple(
            replace(block, instructions=tuple(map(change, block.instructions)))
            for block in function.blocks
        ),
    )


def without_early_clobbers(function: Function) -> Function:
    def late(operands: tuple[Operand, ...]) -> tuple[Operand, ...]:
        return tuple(replace(operand, early_clobber=False) for operand in operands)

    return with_each(function, lambda i: replace(i, definitions=late(i.definitions)))


def without_destruction(function: Function) -> Function:
    return with_each(function, lambda i: replace(i, destroys=()))


def without_guards(function: Function) -> Function:
    return with_each(function, lambda i: replace(i, guard=None))


def one_path(function: Function) -> Function:
    """The first successor of every block alone."""
    blocks = tuple(replace(b, successors=b.successors[:1]) for b in function.blocks)
    return replace(function, blocks=blocks)


def fast_check_of(misread: Callable[[Function], Function]) -> Any:
    """A fast check that judges another function than it is given."""
    return lambda problem: FastVerifier(AllocationProblem(misread(problem.function)))


def checker_of(misread: Callable[[Function], Function]) -> Any:
    """A symbolic checker that judges another function than it is given."""
    return lambda function: SymbolicChecker(misread(function))


class NoFixedRegisters:
    """A fast check that does not see physical registers."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.fast = FastVerifier(problem)

    def verify(self, answer: AnswerLike, _findings: int | None = None) -> Verdict:
        verdict = self.fast.verify(answer)
        kept = tuple(
            f for f in verdict.findings if f.kind is not FindingKind.FIXED_REGISTER_CLOBBERED
        )
        return replace(verdict, findings=kept, valid=not kept)


class NoEdits(SymbolicChecker):
    """A checker that forgets the insertions."""

    def judge(
        self,
        assignment: Mapping[str, str],
        edits: Edits | None = None,
        findings: int | None = None,
    ) -> Judgement:
        if edits is not None and not edit_function(self.function, self.target, edits)[1]:
            edits = replace(edits, insertions=())
        return super().judge(assignment, edits, findings)


def test_judges_agree() -> None:
    outcome = Campaign(SMALL_KERNEL, load_rows("mini").rows, mutants=150).run()
    assert not outcome.kinds, render(outcome)
    assert outcome.mutants == 150
    assert outcome.kernels
    total = outcome.total
    assert total.shown > 10
    assert total.legality > 25
    assert total.valid > 37
    assert total.mutants == total.valid + total.legality + total.shown + total.not_shown
    assert total.not_shown < 0.2 * total.shown
    for judge in ("fast", "independent"):
        assert total.killed_shown[judge] == total.shown_to[judge] > 0
    assert "no disagreement" in render(outcome)


def test_the_outcome_follows_from_the_seed() -> None:
    def tallies(seed: int) -> Any:
        found = document(Campaign(seed, mutants=30).run(), seed)
        return {key: value for key, value in found.items() if key != "seconds"}

    assert tallies(5) == tallies(5)
    assert tallies(5)["operators"] != tallies(6)["operators"]


def operands(function: Function) -> list[Operand]:
    return [o for _, _, i in function.instructions() for o in i.definitions + i.uses]


def names_registers(case: Case) -> bool:
    function = case.function
    locations = [o.location for o in operands(function)] + list(function.live_ins)
    locations += [i.guard.location for _, _, i in function.instructions() if i.guard is not None]
    return bool(function.masks()) or any(isinstance(each, FixedUnits) for each in locations)


@pytest.mark.parametrize(
    ("judge", "kind", "seed", "most", "shows"),
    [
        (fast_check_of(without_early_clobbers), "fast accepts what value-walk rejects", 6, 4,
         lambda case: any(o.early_clobber for o in operands(case.function))),
        (NoFixedRegisters, "fast accepts what value-walk rejects", 11, 3, names_registers),
        (fast_check_of(without_destruction), "fast accepts what value-walk rejects", 12, 4,
         lambda case: [len(mask) for mask in case.function.masks()] == [1]),
        (checker_of(without_destruction), "independent accepts what value-walk rejects", 1, 4,
         lambda case: [len(mask) for mask in case.function.masks()] == [1]),
        (fast_check_of(without_guards), "fast accepts what independent rejects", 8, 4,
         lambda case: any(i.guard is not None for _, _, i in case.function.instructions())),
        (checker_of(one_path), "independent accepts what value-walk rejects", 12, 5,
         lambda case: any(len(block.successors) > 1 for block in case.function.blocks)),
        (NoEdits, "independent accepts what value-walk rejects", 4, 3,
         lambda case: case.edits is not None and len(case.edits.insertions) == 1),
    ],
    ids=["early clobbers", "fixed registers", "calls", "calls either", "guards", "meets", "edits"],
)  # fmt: skip
def test_a_deliberate_error_is_found_and_made_small(
    judge: Any, kind: str, seed: int, most: int, shows: Any
) -> None:
    place = (judges_module, "FastVerifier")
    if kind.startswith("independent"):
        place = (verifier_module, "SymbolicChecker")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*place, judge)
        found = found_by(seed, kind)
    assert found.case.function.instruction_count <= most
    assert shows(found.case)
    assert found.opinion.shown is not None or "value-walk" not in kind
    assert kind in str(found)


def test_shrinking_keeps_what_matters_and_its_edits_in_place() -> None:
    text = """verilocc-bench 1
target gfx942
registers v:8 a:4 s:8 vcc:2=vcc_lo,vcc_hi
class V 1 v
bb0->bb1
%0=OP
%1=OP %0
bb1->bb2
%2=OP %1
OP %0,%2
bb2
OP %0
OP %1,%2
"""
    edits = parse_edits(
        {
            "new": {"%3": "V"},
            "insert": [{"at": [1, 1], "move": [["%3", "%2"]]}],
            "replace": [[2, 1, 1, "%3"]],
        }
    )
    places = {"%0": "v0", "%1": "v1", "%2": "v2", "%3": "v3"}

    def holds(case: Case) -> bool:
        """%2's own definition and its replaced use are there."""
        opinion = BoundedJudges(AllocationProblem(case.function)).judge(case)
        uses = [o for _, _, i in case.function.instructions() for o in i.uses]
        assert case.edits is not None
        return not opinion.wrong and bool(case.edits.replacements) and bool(uses)

    small = shrink(Case(parse_function(text), places, edits), holds)
    assert small.function.instruction_count <= 2
    assert small.edits is not None
    assert len(small.edits.replacements) == 1


def test_the_command_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["selftest", "--mutants", "30", "--seed", str(SMALL_KERNEL)]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("operator")
    assert "no disagreement" in printed


def test_the_command_prints_json_and_says_where_judges_disagree(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judges_module, "FastVerifier", NoFixedRegisters)
    assert main(["selftest", "--mutants", "60", "--seed", str(SMALL_KERNEL), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["seed"] == SMALL_KERNEL
    assert found["total"]["mutants"] == 60
    assert found["disagreement_counts"]["fast accepts what independent rejects"] > 0
    first = found["disagreements"][0]
    function = parse_function(first["normalized"])
    assert first["answer"]["assignment"].keys() == {
        f"%{n}" for n in range(len(function.virtual_registers))
    }


def test_an_interrupted_campaign_keeps_what_it_has(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(outcome: CampaignOutcome) -> None:
        if outcome.mutants == 20:
            raise KeyboardInterrupt

    outcome = Campaign(1, mutants=100).run(interrupt)
    assert outcome.interrupted
    assert outcome.mutants == 20
    monkeypatch.setattr("verilocc_bench.cli.selftest_command._Progress", lambda *_: interrupt)
    assert main(["selftest", "--mutants", "100", "--seed", str(SMALL_KERNEL)]) == 130
    assert "20 answers" in capsys.readouterr().out


def test_seconds_end_a_campaign() -> None:
    outcome = Campaign(1, seconds=0.5).run()
    assert outcome.functions > 0
    assert outcome.mutants < 100_000
    assert outcome.seconds < 30
