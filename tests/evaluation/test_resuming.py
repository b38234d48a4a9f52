"""Runs that are killed, repeated and changed: no sample is lost, repeated or mixed up."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine, without_times
from tests.evaluation.allocators_for_tests import LOG, SLOW_SECONDS
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation.ledger import Ledger, checked_line, read_checked

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MODEL = "python:tests.evaluation.allocators_for_tests:stochastic"
ROWS = load_rows("mini").rows


def content(folder: Path) -> list[Any]:
    """What a run wrote, without times."""
    lines = (folder / "samples.jsonl").read_text().splitlines()
    return [
        without_times(json.loads((folder / "results.json").read_text())),
        [without_times(json.loads(line)) for line in lines if line],
        (folder / "answers.jsonl").read_text(),
    ]


def command(*options: str) -> list[str]:
    # By this name the module is of no package: its revision is that of one file, not of all tests.
    model = MODEL.replace("tests.evaluation.", "")
    return ["evaluate", "--model", model, *options]


def test_a_run_that_is_killed_twice_ends_like_any_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The seeds of the moments are printed where the test fails."""
    limits = ["--samples", "10", "--k", "1,5,10", "--limit", "2", "--arch", "gfx90a,gfx942"]
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{Path(__file__).parent}"}
    monkeypatch.syspath_prepend(Path(__file__).parent)
    whole, killed, log = (tmp_path / name for name in ("whole", "killed", "log"))
    assert main(command(*limits, "--output-path", str(whole))) == 0
    monkeypatch.setenv(LOG, str(log))
    environment |= {LOG: str(log), SLOW_SECONDS: "0.05"}
    arguments = command(*limits, "--output-path", str(killed))
    program = [sys.executable, "-m", "verilocc_bench", *arguments, "--jobs", "2"]
    seed = random.randrange(1 << 30)
    generator = random.Random(seed)
    for kill in range(2):
        before = len(log.read_text().splitlines()) if log.exists() else 0
        process = subprocess.Popen(program, env=environment, cwd=ROOT, stderr=subprocess.DEVNULL)
        wanted = before + generator.randint(1, 20)
        while process.poll() is None and (
            not log.exists() or len(log.read_text().splitlines()) < wanted
        ):
            time.sleep(0.01)
        assert process.poll() is None, f"seed {seed}: nothing to kill at the {kill + 1}th time"
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert main(arguments) == 0
    assert content(whole) == content(killed), f"seed {seed}"
    calls = Counter(log.read_text().splitlines())
    samples = 10 * 2 * 4
    assert len(calls) == samples
    # At each kill, each of two processes may have been busy with one sample.
    assert sum(calls.values()) <= samples + 2 * 2, f"seed {seed}"


def evaluate(*options: str) -> None:
    assert main(["evaluate", "--model", MODEL, "--limit", "1", "--arch", "gfx942", *options]) == 0


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv(LOG, str(path))
    return path


def test_what_changes_an_answer_is_asked_anew_and_what_does_not_is_not(
    tmp_path: Path, log: Path
) -> None:
    out = str(tmp_path / "out")

    def calls() -> int:
        found = len(log.read_text().splitlines())
        log.write_text("")
        return found

    evaluate("--samples", "4", "--output-path", out)
    assert calls() == 8
    first = content(tmp_path / "out")
    evaluate("--samples", "4", "--output-path", out)
    assert calls() == 0
    assert content(tmp_path / "out") == first
    evaluate("--samples", "6", "--output-path", out)  # the four that are there count
    assert calls() == 4
    evaluate("--samples", "4", "--output-path", out, "--k", "1,2", "--jobs", "2")
    assert calls() == 0
    evaluate("--samples", "4", "--seed", "1", "--output-path", out)
    assert calls() == 8
    evaluate("--samples", "4", "--decoding", "guided", "--output-path", out)
    assert calls() >= 8
    evaluate("--samples", "4", "--output-path", out)  # after the others, the first are still there
    assert calls() == 0
    assert content(tmp_path / "out") == first
    evaluate("--samples", "4", "--output-path", out, "--no-resume")
    assert calls() == 8
    assert content(tmp_path / "out") == first


def sample_lines(ledger: Path) -> list[int]:
    """Where the lines of samples begin."""
    data = ledger.read_bytes()
    return [match.start() for match in re.finditer(rb'(?m)^\{"kind": "sample"', data)]


def test_every_flipped_bit_is_noticed(tmp_path: Path, log: Path) -> None:
    """NamedAssignment, verdict, figures, ids, the checksum itself: wherever the bit is."""
    out = tmp_path / "out"
    evaluate("--samples", "1", "--output-path", str(out))
    log.write_text("")
    path = out / "ledger.jsonl"
    data = path.read_bytes()
    start = sample_lines(path)[0]
    end = data.index(b"\n", start)
    settings = json.loads(data.split(b"\n")[1])["settings"]
    sound = len(_opened(path, settings))
    generator = random.Random(4)
    for place in {start, end - 1, *(generator.randrange(start, end) for _ in range(150))}:
        flipped = bytearray(data)
        flipped[place] ^= 1 << generator.randrange(8)
        path.write_bytes(flipped)
        assert len(_opened(path, settings)) == sound - 1, (place, flipped[start:end])


def _opened(path: Path, settings: Any) -> dict[tuple[str, int], Any]:
    ledger = Ledger(path, settings)
    ledger.close()
    return ledger.entries


def test_a_flipped_bit_in_an_answer_is_asked_again_and_told(
    tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    evaluate("--samples", "3", "--output-path", str(out))
    first = content(out)
    ledger = out / "ledger.jsonl"
    data = bytearray(ledger.read_bytes())
    start = sample_lines(ledger)[1]
    place = data.index(b'"v', data.index(b'"answer": {', start)) + 2
    data[place] ^= 1  # another register, the same verdict
    ledger.write_bytes(data)
    log.write_text("")
    capsys.readouterr()
    evaluate("--samples", "3", "--output-path", str(out))
    assert f"{ledger}: 1 line is damaged and passed over" in capsys.readouterr().err
    assert len(log.read_text().splitlines()) == 1
    assert content(out) == first
    evaluate("--samples", "3", "--output-path", str(out))
    assert len(log.read_text().splitlines()) == 1


def test_files_of_a_run_that_were_damaged_are_written_again(tmp_path: Path, log: Path) -> None:
    out = tmp_path / "out"
    evaluate("--samples", "2", "--output-path", str(out))
    first = content(out)
    stands = (out / "results.json").stat().st_ino
    evaluate("--samples", "2", "--output-path", str(out))
    assert (out / "results.json").stat().st_ino == stands  # nothing to write
    for name in ("samples.jsonl", "answers.jsonl"):
        data = bytearray((out / name).read_bytes())
        data[len(data) // 2] ^= 1
        (out / name).write_bytes(data)
        evaluate("--samples", "2", "--output-path", str(out))
        assert content(out) == first


def test_a_pipe_in_place_of_the_ledger(tmp_path: Path, run: CommandLine) -> None:
    os.mkfifo(tmp_path / "ledger.jsonl")
    arguments = ["evaluate", "--model", "linear-scan", "--limit", "1"]
    run.refuses([*arguments, "--output-path", tmp_path], "ledger.jsonl: cannot be written")


def test_a_changed_verifier_judges_what_is_there_without_asking(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    evaluate("--samples", "3", "--output-path", str(out))
    first = content(out)
    # The answers stay; what the ledger says of them is made worthless, and is found out.
    ledger = out / "ledger.jsonl"
    lines = []
    for line in filter(None, ledger.read_bytes().split(b"\n")):
        document = read_checked(line)
        assert document is not None
        if document["kind"] == "sample" and document["sample"]["valid"]:
            changes = {"valid": False, "findings_count": 1, "finding_kinds": ["overlap"]}
            document["sample"] |= changes
        lines.append(checked_line(document))
    assert b"".join(lines) != ledger.read_bytes()
    ledger.write_bytes(b"".join(lines))
    monkeypatch.setattr("verilocc_bench.evaluation.ledger.code_fingerprint", lambda: "another")
    log.write_text("")
    evaluate("--samples", "3", "--output-path", str(out))
    assert log.read_text() == ""
    assert content(out) == first


def test_answers_are_predictions_of_the_same_numbers(tmp_path: Path, run: CommandLine) -> None:
    out = tmp_path / "out"
    model = "python:tests.evaluation.allocators_for_tests:stochastic"
    options = ["--samples", "5", "--k", "1,5", "--limit", "2", "--arch", "gfx942,sm_80"]
    run("evaluate", "--model", model, *options, "--output-path", out)
    predictions = f"predictions:{out / 'answers.jsonl'}"
    again = run.json("evaluate", "--model", predictions, *options)
    first = json.loads((out / "results.json").read_text())
    for document in (again, first):
        del document["config"]
    assert without_times(again) == without_times(first)
    assert 0 < first["results"]["overall"]["pass@1"] < first["results"]["overall"]["pass@5"] <= 1
