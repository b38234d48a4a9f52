"""Language models through the public door: every prompt format and decoding, here and over HTTP."""

from __future__ import annotations

import json
import os
import runpy
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

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
    capsys: pytest.CaptureFixture[str],
) -> None:
    options, assistance, valid = case
    document = evaluate(model, tmp_path, *options)
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


def test_priority_samples_are_unique_and_resume(
    model: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--prompt-format", "window", "--decoding", "constrained"]
    options += ["--sampling", "priority"]
    evaluate(model, tmp_path / "a", *options, "--samples", "1")
    evaluate(model, tmp_path / "a", *options, "--samples", "2", "--k", "1,2")
    evaluate(model, tmp_path / "b", *options, "--samples", "2", "--k", "1,2")
    answers = [(tmp_path / name / "answers.jsonl").read_text() for name in "ab"]
    assert answers[0] == answers[1]
    assert len(set(answers[0].splitlines())) == 2
    capsys.readouterr()


def test_an_endpoint_that_goes_away_and_comes_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server = EXAMPLES / "http" / "toy_server.py"

    def start(port: int) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, str(server), "--port", str(port)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, process.stdout.readline().split()[-1]

    def stop(process: subprocess.Popen[str]) -> None:
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    process, address = start(0)
    port = int(address.removesuffix("/v1").rsplit(":", 1)[1]) if address else 0
    options = ["--model-name", "first-free", "--prompt-format", "window", "--window-registers", "1"]
    options += ["--retries", "0", "--samples", "2"]
    try:
        whole = evaluate(address, tmp_path / "whole", *options)
        assert whole["results"]["overall"]["pass@1"] == 1.0
    finally:
        stop(process)
    broken = evaluate(address, tmp_path / "broken", *options, status=69)
    overall = broken["results"]["overall"]
    assert (overall["infrastructure_failures"], overall["samples"]) == (2, 0)
    assert overall["pass@1"] is None
    assert overall["failures"] == {}
    # The terminal's width decides where lines end.
    assert "give the same command again" in " ".join(capsys.readouterr().out.split())
    for _ in range(50):
        process, again = start(port)
        if again == address:
            break
        time.sleep(0.1)
    try:
        mended = evaluate(address, tmp_path / "broken", *options)
    finally:
        stop(process)
    assert mended["kernels"] == whole["kernels"]
    files = [(tmp_path / name / "answers.jsonl").read_text() for name in ("whole", "broken")]
    assert files[0] == files[1]
    capsys.readouterr()


def test_nothing_is_asked_of_the_network(model: str, tmp_path: Path) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "home")}
    # Whatever goes out meets a proxy that is not there.
    environment |= {"https_proxy": "http://127.0.0.1:9", "http_proxy": "http://127.0.0.1:9"}
    options = ["--prompt-format", "whole", "--max-tokens", "5", "--json"]
    command = [sys.executable, "-m", "verilocc_bench", "evaluate", "--model", model, *SMALL]
    found = subprocess.run(
        [*command, *options], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(found.stdout)["results"]["overall"]["n"] == 1
