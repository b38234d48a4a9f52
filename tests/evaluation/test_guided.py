"""Guided runs: attempts with the verifier in between."""

from __future__ import annotations

import pytest

from tests.command_line import CommandLine

MODULE = "python:tests.evaluation.allocators_for_tests"


@pytest.fixture(name="evaluate")
def _evaluate(run: CommandLine) -> CommandLine:
    return run.of("evaluate", "--limit", "1", "--arch", "gfx942")


def test_calls_to_success_are_counted(evaluate: CommandLine) -> None:
    options = ("--model", f"{MODULE}:Learner", "--samples", "5", "--decoding", "guided")
    document = evaluate.json(*options, "--verifier-calls", "4")
    assert document["config"]["decoding"] == "guided"
    assert document["config"]["options"]["verifier_calls"] == 4
    overall = document["results"]["overall"]
    # Sample i needs i + 1 calls, and no more than four are allowed.
    assert overall["pass@1"] == pytest.approx(4 / 5)
    assert overall["verifier_calls"] == pytest.approx((1 + 2 + 3 + 4) / 4)
    assert overall["success_by_calls"] == {
        "1": pytest.approx(0.2),
        "2": pytest.approx(0.4),
        "3": pytest.approx(0.6),
        "4": pytest.approx(0.8),
    }
    assert overall["failures"] == {"invalid": 2}
    assert overall["findings"] == {"missing": 2}
    assert [kernel["verifier_calls"] for kernel in document["kernels"]] == [1, 1]


@pytest.mark.slow
def test_resampling_tells_nothing_but_another_seed(evaluate: CommandLine) -> None:
    options = ("--model", f"{MODULE}:Forgetful", "--samples", "2", "--decoding", "guided")
    document = evaluate.json(*options, "--feedback", "resample")
    assert document["results"]["overall"]["verifier_calls"] == 3.0
    assert document["results"]["overall"]["pass@1"] == 1.0


@pytest.mark.slow
def test_free_runs_have_no_calls(evaluate: CommandLine) -> None:
    document = evaluate.json("--model", f"{MODULE}:Learner", "--samples", "2")
    overall = document["results"]["overall"]
    assert overall["verifier_calls"] is None
    assert overall["success_by_calls"] is None
    assert overall["pass@1"] == 0.5
    assert document["kernels"][0]["verifier_calls"] is None
    # A deterministic allocator is not asked twice.
    document = evaluate.json("--model", "linear-scan", "--decoding", "guided", "--samples", "3")
    overall = document["results"]["overall"]
    assert (overall["verifier_calls"], overall["samples"]) == (1.0, 6)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        (("--verifier-calls", "3"), "--decoding guided"),
        (("--decoding", "constrained"), "language models"),
        (("--decoding", "guided", "--feedback", "repair"), "language models"),
        (("--feedback", "repair"), "--decoding guided"),
        (("--sampling", "greedy", "--temperature", "1"), "--sampling random"),
        (("--decoding", "guided", "--verifier-calls", "0"), "1 or more"),
        (("--decoding", "whatever"), "--decoding"),
        (("--top-p", "nan"), "0.0001"),
        (("--temperature", "0.5"), "--temperature"),
        (("--no-resume",), "--no-resume"),
    ],
)
def test_options_that_contradict_each_other(
    options: tuple[str, ...], complaint: str, run: CommandLine
) -> None:
    run.refuses(["evaluate", "--model", "linear-scan", *options], complaint)
