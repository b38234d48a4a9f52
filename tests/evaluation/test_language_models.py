"""Language models through the public door: every prompt format and decoding, here and over HTTP."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.model.http_server import Asked, FakeServer, Say
from verilocc_bench.cli import main
from verilocc_bench.evaluation.schema import read_results

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SMALL = ["--arch", "gfx942", "--family", "gemm", "--limit", "1"]


GUIDED = ("--prompt-format", "whole", "--max-tokens", "20", "--decoding", "guided")
GUIDED += ("--verifier-calls", "2")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of the example's tiny model, which has learned nothing."""
    folder = tmp_path_factory.mktemp("models") / "tiny"
    runpy.run_path(str(EXAMPLES / "language_model" / "make_tiny_model.py"))["make_tiny_model"](
        folder, 0
    )
    return str(folder)


def evaluate(model: str, tmp_path: Path, *options: str, status: int = 0) -> dict[str, Any]:
    arguments = ["evaluate", "--model", model, *SMALL, "--output-path", str(tmp_path)]
    assert main([*arguments, *options]) == status
    return read_results(tmp_path / "results.json")


@pytest.mark.parametrize(
    "case",
    [
        (("--prompt-format", "whole", "--max-tokens", "60"), "text", 0.0),
        (("--prompt-format", "window", "--max-tokens", "20", "--few-shot", "1"), "state", 0.0),
        (("--prompt-format", "window", "--decoding", "constrained"), "state", 1.0),
        (GUIDED, "text", 0.0),
    ],
    ids=lambda case: " ".join(case[0]),
)
def test_every_format_and_decoding(
    case: tuple[tuple[str, ...], str, float],
    model: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Nothing is asked of the network."""
    options, assistance, valid = case
    readme = (EXAMPLES / "language_model" / "README.md").read_text()
    assert "--model tiny-model --prompt-format window --decoding constrained" in readme
    connections: list[object] = []
    monkeypatch.setattr("socket.socket.connect", lambda *asked: connections.append(asked))
    monkeypatch.setattr("socket.getaddrinfo", lambda *asked, **_: connections.append(asked))
    document = evaluate(model, tmp_path, *options)
    assert not connections
    overall, config = document["results"]["overall"], document["config"]
    assert config["assistance"] == overall["assistance"] == assistance
    assert config["prompt"]["format"] == options[1]
    assert overall["pass@1"] == valid
    assert overall["totals"]["completion_tokens"] > 0
    if not valid:
        assert overall["failures"] == {"unparsable": 1}
        assert sum(overall["unparsable"].values()) == 1
    if config["decoding"] == "guided":
        assert overall["success_by_calls"] == {"1": 0.0, "2": 0.0}
    assert f"assistance: {assistance}" in capsys.readouterr().out or assistance == "text"


@pytest.mark.exhaustive
def test_priority_samples_are_unique_and_resume(model: str, tmp_path: Path) -> None:
    options = ["--prompt-format", "window", "--decoding", "constrained"]
    options += ["--sampling", "priority"]
    evaluate(model, tmp_path / "a", *options, "--samples", "1")
    evaluate(model, tmp_path / "a", *options, "--samples", "2", "--k", "1,2")
    evaluate(model, tmp_path / "b", *options, "--samples", "2", "--k", "1,2")
    answers = [(tmp_path / name / "answers.jsonl").read_text() for name in "ab"]
    assert answers[0] == answers[1]
    assert len(set(answers[0].splitlines())) == 2


def test_an_endpoint_that_goes_away_and_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reply = runpy.run_path(str(EXAMPLES / "http" / "toy_server.py"))["reply"]
    away = False

    def answer(asked: Asked) -> Say:
        return Say(length=1) if away else Say(body=reply(asked.path, asked.body))

    options = ["--model-name", "first-free", "--prompt-format", "window", "--window-registers", "1"]
    options += ["--retries", "0", "--samples", "2"]
    with FakeServer(answer).running() as server:
        whole = evaluate(server.address, tmp_path / "whole", *options)
        assert whole["results"]["overall"]["pass@1"] == 1.0
        away = True
        broken = evaluate(server.address, tmp_path / "broken", *options, status=69)
        overall = broken["results"]["overall"]
        assert (overall["infrastructure_failures"], overall["samples"]) == (2, 0)
        assert (overall["pass@1"], overall["failures"]) == (None, {})
        # The terminal's width decides where lines end.
        assert "give the same command again" in " ".join(capsys.readouterr().out.split())
        away = False
        mended = evaluate(server.address, tmp_path / "broken", *options)
    assert mended["kernels"] == whole["kernels"]
    files = [(tmp_path / name / "answers.jsonl").read_text() for name in ("whole", "broken")]
    assert files[0] == files[1]
