"""Bounds as JSON: what is read back is proved again, and nothing malformed gets through."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.analysis.bounds import PARITIES
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds import (
    BoundKind,
    LowerBound,
    check_certificate,
    lower_bound,
    search,
)
from verilocc_bench.analysis.lower_bounds.json_form import from_json, to_json
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.ir import parse_function
from verilocc_bench.selftest.generate import random_function

HEAD = "verilocc-bench 1\ntarget gfx942\nregisters v:16 a:8 s:8 vcc:2=vcc_lo,vcc_hi\n"
CLASSES = "class V 1 v\nclass V2 2 v/2\n"


def through_text(bound: LowerBound, problem: AllocationProblem) -> LowerBound:
    return from_json(json.loads(json.dumps(to_json(bound))), problem)


def _problem() -> AllocationProblem:
    return AllocationProblem(parse_function(HEAD + CLASSES + PARITIES, canonical=False))


@pytest.mark.parametrize("kind", [BoundKind.BLOCKS, BoundKind.RESIDUE_SCHEDULE])
def test_a_proof_by_a_solver_comes_back(kind: BoundKind, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ortools", reason="the extra 'exact' is not installed")
    if kind is BoundKind.RESIDUE_SCHEDULE:
        monkeypatch.setattr(search, "refute_by_blocks", lambda *_: None)
    problem = _problem()
    bound = lower_bound(problem)
    assert bound.kind is kind
    untimed = tuple(replace(each, deterministic_time=0.0) for each in bound.refutations)
    assert through_text(bound, problem) == replace(bound, refutations=untimed)
    assert all(refutation.solver for refutation in bound.refutations)
    check_certificate(problem, through_text(bound, problem))


@pytest.mark.parametrize("target", ["gfx90a", "sm_80"])
def test_every_bound_comes_back_and_is_proved(target: str) -> None:
    fixed = 0
    for seed in range(60):
        problem = AllocationProblem(random_function(seed, target=target))
        bound = lower_bound(problem, solver=False)
        again = through_text(bound, problem)
        check_certificate(problem, again)
        # Only which of two points of an early clobber is meant is not in the text.
        assert to_json(again) == to_json(bound)
        assert _without_points(again) == _without_points(bound)
        fixed += any(c.fixed for r in bound.refutations for c in r.cliques)
        higher = replace(again, value=again.value + 1)
        with pytest.raises(InputError, match="no refutation covers"):
            check_certificate(problem, higher)
    assert fixed or target == "sm_80"


def _without_points(bound: LowerBound) -> LowerBound:
    return replace(
        bound,
        refutations=tuple(
            replace(r, cliques=tuple(replace(c, point=0) for c in r.cliques))
            for r in bound.refutations
        ),
    )


def test_what_refutations_share_stands_once() -> None:
    row = next(row for row in load_rows("mini").rows if row.id == "3846ca71116af583")
    problem = AllocationProblem.from_text(row.normalized)
    bound = lower_bound(problem, solver=False)
    assert len(bound.refutations) > 10
    document = to_json(bound)
    assert len(document["cliques"]) == len(document["refutations"]) == 1
    assert len(json.dumps(document, separators=(",", ":"))) < 1000


def _edit(*path: Any, value: Any) -> Callable[[Any], None]:
    def edit(document: Any) -> None:
        *outer, last = path
        for key in outer:
            document = document[key]
        document[last] = value

    return edit


LONG = "x" * 39 + "yz"
OBJECT = "expected an object with {!r}, as bounds have it"
SHAPES = "expected shapes that give numbers of units by register file"


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_edit("group", value="w"), "there is no group of files 'w'"),
        (_edit("value", value=True), OBJECT.format("value")),
        (_edit("value", value=-1), "'value' is -1: expected no negative number"),
        (_edit("kind", value=LONG), f"there is no kind {LONG[:40]!r} of bound"),
        (_edit("kind", value="placement"),
         "its kind is placement, but its refutations have the kind pressure"),
        (_edit("cliques", value={}), OBJECT.format("cliques")),
        (_edit("cliques", 0, value=7), OBJECT.format("at")),
        (_edit("cliques", 0, "at", value=[0, 99]), "there is no point [0, 99]"),
        (_edit("cliques", 0, "at", value=[0]), "there is no point [0]"),
        (_edit("cliques", 0, "at", value=[[], 0]), "there is no point [[], 0]"),
        (_edit("cliques", 0, "at", value=[1, 2, 3, 4, 5]), "there is no point [1, 2, 3, 4]"),
        (_edit("cliques", 0, "lanes", value={"-1": [0]}), "there is no virtual register '-1'"),
        (_edit("cliques", 0, "lanes", value={LONG: [0]}),
         f"there is no virtual register {LONG[:40]!r}"),
        (_edit("cliques", 0, "lanes", value={"1" * 10: [0]}),
         "there is no virtual register '1111111111'"),
        (_edit("cliques", 0, "lanes", value={"0": [0.5]}), "expected a list of numbers for '0'"),
        (_edit("cliques", 0, "lanes", value={LONG: "x"}),
         f"expected a list of numbers for {LONG[:40]!r}"),
        (_edit("cliques", 0, "fixed", value=[]), OBJECT.format("fixed")),
        (_edit("refutations", 0, "cliques", value=[9]), "there is no clique 9"),
        (_edit("refutations", 0, "cliques", value=[1]), "there is no clique 1"),
        (_edit("refutations", 0, "cliques", value=[-1]), "there is no clique -1"),
        (_edit("refutations", 0, "cliques", value=[LONG]), f"there is no clique {LONG[:40]}"),
        (_edit("refutations", 0, "solver", value=3), OBJECT.format("solver")),
        (_edit("refutations", 0, "shapes", value=[{"w": 1}]), SHAPES),
        (_edit("refutations", 0, "shapes", value=[7]), SHAPES),
        (_edit("refutations", 0, "shapes", value=[{"v": -1}]),
         "'v' is -1: expected no negative number"),
        (_edit("refutations", 0, "shapes", value=[{"v": 257}]),
         "a shape has 257 units of v: there are fewer"),
    ],
)  # fmt: skip
def test_malformed_documents(edit: Callable[[Any], None], message: str) -> None:
    problem = _problem()
    document = to_json(lower_bound(problem, VECTOR, solver=False))
    edit(document)
    with pytest.raises(InputError) as error:
        from_json(document, problem)
    assert str(error.value) == f"bound of {problem.id}: {message}"


@pytest.mark.parametrize("document", [None, [], "{}", {}, {"group": "vector"}])
def test_what_is_no_bound_at_all(document: Any) -> None:
    with pytest.raises(InputError, match="as bounds have it"):
        from_json(document, _problem())


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (_edit("cliques", 0, "lanes", "99", value=[0]), "no lane 0 of %99"),
        (_edit("cliques", 0, "lanes", "0", value=[0, 0]), "names a lane twice"),
        (_edit("cliques", 0, "fixed", value={"v": [3]}), "does not name v3"),
        (_edit("refutations", value=[]), "no refutation covers"),
        (_edit("refutations", 0, "cliques", value=[]), "expected a contradiction"),
    ],
)
def test_what_can_be_read_and_proves_nothing(edit: Callable[[Any], None], message: str) -> None:
    problem = _problem()
    document = to_json(lower_bound(problem, solver=False))
    edit(document)
    if not document["refutations"]:
        document["kind"] = "pressure"
    with pytest.raises(InputError, match=message):
        check_certificate(problem, from_json(document, problem))


def test_documents_at_the_limits_are_read() -> None:
    problem = _problem()
    document = to_json(lower_bound(problem, VECTOR, solver=False))
    shape = {"v": 256, "a": 256, "s": 102, "vcc": 2}
    document["refutations"][0]["shapes"] = [shape]
    document["cliques"][0]["lanes"] = {"1" * 9: [0]}
    bound = from_json(document, problem)
    assert bound.refutations[0].shape == tuple(shape.items())
    assert bound.refutations[0].cliques[0].lanes == ((111_111_111, 0),)


def test_the_strongest_kind_is_the_last_in_order() -> None:
    problem = _problem()
    document = to_json(lower_bound(problem, VECTOR, solver=False))
    (entry,) = document["refutations"]
    for weak, strong in (
        ("pressure", "blocks"),
        ("residues", "placement"),
        ("pressure", "residues"),
    ):
        for kinds in ((weak, strong), (strong, weak)):
            document["refutations"] = [{**entry, "kind": kind} for kind in kinds]
            assert from_json({**document, "kind": strong}, problem).kind == strong
            with pytest.raises(InputError, match=f"its refutations have the kind {strong}"):
                from_json({**document, "kind": weak}, problem)
