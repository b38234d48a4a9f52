"""Scores through the Python interface: tables, failures, comparisons, files."""

from __future__ import annotations

import gc
import json
from enum import Enum
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

import verilocc_bench as vb
from tests.command_line import CommandLine, without_times
from verilocc_bench.allocators import Request
from verilocc_bench.api.models import model_name
from verilocc_bench.api.object_revision import revision_of_object
from verilocc_bench.evaluation.fingerprints import UNKNOWN

SMALL: Any = {"arch": "gfx942", "limit": 1}


def by_linear_scan(problem: vb.AllocationProblem, seed: int) -> vb.Answer:
    return vb.allocate(problem, "linear-scan", seed=seed)


def crashes(_problem: vb.AllocationProblem, _seed: int) -> vb.Answer:
    raise LookupError("a reason")


class Everything:
    """An object that answers wrongly."""

    def allocate(self, request: Request) -> dict[str, str]:
        count = len(request.problem.function.virtual_registers)
        return {f"%{number}": "v0" for number in range(count)}


def test_a_function_scores_as_its_name_does() -> None:
    mine = vb.evaluate(by_linear_scan, **SMALL)
    built_in = vb.evaluate("linear-scan", **SMALL)
    assert mine.models == ("python:tests.api.test_evaluating:by_linear_scan",)
    for key in ("pass@1", "registers_ratio", "bank_conflicts"):
        own, other = (r.document["results"]["overall"][key] for r in (mine, built_in))
        assert own == other
    comparison = mine.compare(built_in)
    assert comparison.registers == {"fewer": 0, "equal": 2, "more": 0}
    assert comparison.solved["both"] == 2
    assert comparison.sign_test == 1.0
    assert len(comparison.to_pandas()) == 2
    assert "sign test" in repr(comparison)


def test_the_command_line_gives_the_same_document(tmp_path: Path, run: CommandLine) -> None:
    vb.evaluate("linear-scan", output_path=tmp_path / "own", **SMALL)
    arguments = ("--arch", "gfx942", "--limit", "1", "--output-path", tmp_path / "other")
    printed = run.json("evaluate", "--model", "linear-scan", *arguments)
    own, other = (vb.load_results(tmp_path / name).document for name in ("own", "other"))
    assert without_times(own) == without_times(other)
    assert without_times(printed) == without_times(other)


def test_failures_keep_their_traceback_and_the_command_shows_it(
    tmp_path: Path, run: CommandLine
) -> None:
    results = vb.evaluate(crashes, output_path=tmp_path, **SMALL)
    failures = results.failures()
    assert [failure.kind for failure in failures] == ["crashed", "crashed"]
    first = failures[0]
    assert first.message == "LookupError: a reason"
    assert first.traceback is not None
    assert 'raise LookupError("a reason")' in first.traceback
    assert "verilocc_bench/" not in first.traceback
    assert "see failures()" in str(results)
    lines = (tmp_path / "samples.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["traceback"] == first.traceback
    again = vb.evaluate(crashes, output_path=tmp_path, **SMALL)
    assert again.failures() == failures
    model = ("--model", results.models[0])
    arguments = ("--arch", "gfx942", "--limit", "1", "--output-path", tmp_path)
    said = run("evaluate", *model, *arguments).err
    assert f"see one: verilocc-bench failures {tmp_path} --id " in said
    out = run("failures", tmp_path).out
    assert out.count('raise LookupError("a reason")') == 1
    assert out.count("crashed: LookupError: a reason") == 2
    run.refuses(["failures", tmp_path, "--id", "nothing"], "nothing")
    assert len(run("failures", tmp_path, "--json").out.splitlines()) == 2


def test_a_wrong_answer_is_a_failure_with_its_first_finding() -> None:
    results = vb.evaluate([Everything(), "linear-scan"], **SMALL)
    assert len(results) == 2
    failures = results.failures()
    assert {failure.kind for failure in failures} == {"invalid"}
    assert {failure.model for failure in failures} == {results.models[0]}
    assert not results["linear-scan"].failures()
    assert repr(results["linear-scan"].failures()) == "no failures"
    assert "<table>" in results._repr_html_()
    assert set(results.to_pandas()["model"]) == set(results.models)
    with pytest.raises(vb.InputError, match="2 runs"):
        _ = results.document
    with pytest.raises(vb.InputError, match="'nobody'"):
        _ = results["nobody"]


def test_results_are_saved_and_loaded(tmp_path: Path) -> None:
    results = vb.evaluate(["linear-scan", "graph-coloring"], **SMALL)
    folders = results.folders
    results.save(tmp_path / "runs")
    again = vb.load_results(tmp_path / "runs")
    assert sorted(again.models) == sorted(results.models)
    assert str(again["linear-scan"]) == str(results["linear-scan"])
    with pytest.raises(vb.InputError, match="already"):
        results.save(tmp_path / "runs")
    with pytest.raises(vb.InputError, match="expected a folder"):
        vb.load_results(tmp_path)
    kept = results["linear-scan"]
    del results
    gc.collect()
    assert folders[0].exists()  # the part that is left needs its files
    del kept
    gc.collect()
    assert not folders[0].exists()


def test_a_damaged_file_of_samples_is_named(tmp_path: Path) -> None:
    vb.evaluate(crashes, output_path=tmp_path, **SMALL)
    path = tmp_path / "samples.jsonl"
    path.write_text('{"valid": false}\n')
    with pytest.raises(vb.InputError, match="expected a sample") as caught:
        vb.load_results(tmp_path).failures()
    assert (caught.value.source, caught.value.line) == (str(path), 1)


def test_what_cannot_be_asked() -> None:
    for arguments, told in (
        ({"model": "nothing"}, "unknown model"),
        ({"model": []}, "expected a model"),
        ({"model": ["best", "best"]}, "twice"),
        ({"model": "linear-scan", "budget": "large"}, "unknown budget"),
        ({"model": "linear-scan", "decoding": "guided", "wrong": 1}, "no setting 'wrong'"),
        ({"model": lambda _p, _s: {}, "jobs": 2}, "cannot be imported"),
    ):
        with pytest.raises(vb.InputError, match=told):
            vb.evaluate(**arguments)  # type: ignore[arg-type]


class Holding:
    """An object that answers by what it holds."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def allocate(self, request: Request) -> Any:
        return vb.allocate(load(request), "linear-scan") if self.held else {}


def load(request: Request) -> vb.Problem:
    return vb.load_problem(request.problem.id)


def stating(revision: str) -> Holding:
    made = Holding(object())
    vars(made)["revision"] = revision
    return made


def closed(held: Any) -> Any:
    return lambda problem, seed: {"%0": held}


class Kind(Enum):
    ONE, OTHER = "x", "y"


def test_what_a_model_holds_is_in_its_revision() -> None:
    for one, other in (
        (Holding(True), Holding(False)),
        (Holding({"a": [1, (2.5, b"x")]}), Holding({"a": [1, (2.5, b"y")]})),
        (Holding({"a": [1], "b": [2], "c": 3}), Holding({"a": [1], "b": [2], "c": 4})),
        (Holding([closed([1]), closed([2])]), Holding([closed([1]), closed([3])])),
        (Holding({1, 2}), Holding({1, 3})),
        (Holding(Kind.ONE), Holding(Kind.OTHER)),
        (Holding(by_linear_scan), Holding(crashes)),
        (Holding(Everything), Holding(Holding)),
        (Holding(True).allocate, Holding(False).allocate),
        (partial(crashes, _seed=1), partial(crashes, _seed=2)),
        (partial(crashes), partial(by_linear_scan)),
        (closed("v0"), closed("v1")),
        (lambda _p, _s: {}, lambda _p, _s: []),
        (stating("1"), stating("2")),
    ):
        first = revision_of_object(one)
        assert first == revision_of_object(one) != UNKNOWN
        assert first != revision_of_object(other), one
    assert model_name(partial(crashes)).endswith(":crashes")
    assert {revision_of_object(Holding(x)) for x in (object(), Random(1), {object()})} == {UNKNOWN}


def test_what_cannot_be_looked_into_is_asked_anew(tmp_path: Path) -> None:
    for held, share in (([object()], 1.0), ([], 0.0), ([object()], 1.0)):
        found = vb.evaluate(Holding(held), output_path=tmp_path, **SMALL)
        assert found.document["results"]["overall"]["pass@1"] == share


def test_the_revision_of_a_function_is_that_of_its_module() -> None:
    from verilocc_bench.api.models import allocator_of, settings_of
    from verilocc_bench.evaluation import resolve_model

    own = allocator_of(crashes, settings_of(crashes, {}))
    assert own.revision == resolve_model("python:tests.api.test_evaluating:crashes").revision
    assert allocator_of(Everything(), settings_of(Everything(), {})).revision != own.revision
