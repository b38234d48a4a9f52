"""Runs of a language model that are killed: no completion is lost, and none is asked for twice."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine
from tests.evaluation.test_resuming import content
from tests.model.http_server import Asked, FakeServer, Say, chat_reply
from verilocc_bench.cli import main
from verilocc_bench.model.transcripts import read_transcripts

pytestmark = pytest.mark.slow

CONCURRENCY, SAMPLES = 2, 3
SMALL = ["--arch", "gfx942", "--family", "gemm", "--limit", "1", "--model-name", "m"]
WINDOWS = [*SMALL, "--prompt-format", "window", "--concurrency", str(CONCURRENCY)]
WINDOWS += ["--samples", str(SAMPLES), "--price", "2,10"]


def test_a_run_that_is_killed_asks_nothing_twice(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked, enough = Counter[str](), math.inf
    killed = threading.Event()

    def answer(ask: Asked) -> Say:
        asked[f"{ask.body['seed']} {ask.body['messages'][-1]['content']}"] += 1
        if asked.total() >= enough:
            killed.wait(timeout=300)
        return chat_reply("<think>so</think>{}")

    with FakeServer(answer).running() as server:
        arguments = ["evaluate", "--model", server.address, *WINDOWS, "--output-path"]
        assert main([*arguments, str(tmp_path / "whole")]) == 0
        whole, kills = asked.copy(), 2
        asked.clear()
        command = [sys.executable, "-m", "verilocc_bench", *arguments, str(tmp_path / "killed")]
        for kill in range(1, kills + 1):
            killed.clear()
            how = signal.SIGINT if kill == kills else signal.SIGKILL
            enough = kill * whole.total() // (kills + 1)
            process = subprocess.Popen(command, env=os.environ, stderr=subprocess.PIPE, text=True)
            while process.poll() is None and asked.total() < enough:
                time.sleep(0.01)
            assert process.poll() is None
            process.send_signal(how)
            _, errors = process.communicate()
            killed.set()
        assert f"of {SAMPLES} samples are kept: the same command goes on" in errors
        enough = math.inf
        assert main([*arguments, str(tmp_path / "killed")]) == 0
        assert asked.keys() == whole.keys()
        assert asked.total() <= whole.total() + kills * CONCURRENCY
        asked.clear()
        assert main([*arguments, str(tmp_path / "killed")]) == 0
        assert not asked
    assert content(tmp_path / "whole") == content(tmp_path / "killed")
    said = [read_transcripts(tmp_path / name) for name in ("whole", "killed")]
    assert said[0].keys() == said[1].keys()
    for key, exchanges in said[0].items():
        assert [e.prompt for e in exchanges] == [e.prompt for e in said[1][key]]
        assert {e.completion for e in said[1][key]} == {"<think>so</think>{}"}
    capfd.readouterr()


def test_results_and_failures_show_what_was_said(tmp_path: Path, run: CommandLine) -> None:
    words = '<think>hm</think>Here you are: {"%0": "v4",}'
    with FakeServer(lambda _: chat_reply(words)).running() as server:
        arguments = ["evaluate", "--model", server.address, *SMALL, "--price", "2,10"]
        run(*arguments, "--output-path", tmp_path / "a")
        run(*arguments, "--output-path", tmp_path / "b", "--no-log-samples")
        strict = ["--extract", "strict", "--output-path", str(tmp_path / "c")]
        run(*arguments, *strict)
    overall: dict[str, Any] = json.loads((tmp_path / "a" / "results.json").read_text())["results"][
        "overall"
    ]
    assert overall["cost"] == pytest.approx((2 * 11 + 10 * 7) / 1e6)
    silent = chat_reply(words, usage=None)  # counts no tokens
    with FakeServer(lambda _: silent).running() as server:
        arguments = ["evaluate", "--model", server.address, *SMALL, "--price", "2,10"]
        found = run.json(*arguments, "--output-path", tmp_path / "d")["results"]["overall"]
    sample = json.loads((tmp_path / "d" / "samples.jsonl").read_text())
    names = ("prompt_tokens", "completion_tokens", "log_probability")
    assert [found["cost"], *(sample["details"][name] for name in names)] == [None] * 4
    assert overall["reading"] == {"read": 0, "valid": 0, "strictly_read": 0, "strictly_valid": 0}
    assert (overall["totals"]["prompt_tokens"], overall["totals"]["completion_tokens"]) == (11, 7)
    row_id = json.loads((tmp_path / "a" / "samples.jsonl").read_text())["id"]
    unknown = run("failures", tmp_path / "d", "--id", row_id).out
    assert "--- prompt 1 of 1, tokens that the server did not count" in unknown
    out = run("failures", tmp_path / "a").out
    assert 'Here you are: {"%0": "v4",⟦reading stopped here⟧}' in out
    shown = run("failures", tmp_path / "a", "--id", row_id).out
    assert "--- completion 1 of 1, 7 tokens" in shown
    assert "--- reasoning 1 of 1\nhm" in shown
    assert "You allocate registers for a GPU kernel." in shown
    assert not read_transcripts(tmp_path / "b")
    assert "reading stopped" not in run("failures", tmp_path / "b").out
    assert "⟦reading stopped here⟧<think>hm" in run("failures", tmp_path / "c").out
    report = tmp_path / "r.html"
    run("report", tmp_path / "a", tmp_path / "d", "--format", "html", "-o", report)
    page = (tmp_path / "r-samples" / f"0-{row_id}-0.html").read_text()
    assert "&lt;think&gt;hm&lt;/think&gt;Here you are: " in page
    assert "<mark>reading stopped here</mark>}" in page
    assert "unparsable" in page
    assert f'href="0-{row_id}-0.html"' in (tmp_path / "r-samples" / "index.html").read_text()
    assert 'href="r-samples/index.html"' in report.read_text()
    run("report", tmp_path / "b", "--format", "html", "-o", report)
    assert "r-samples" not in report.read_text()
