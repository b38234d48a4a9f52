"""Transcripts on disk: whatever happens to the file, whole lines are read and none is mixed up."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.model.scripted import TINY
from verilocc_bench.allocators import Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model import transcripts
from verilocc_bench.model.language_model import Ask, Completion, Finish, Message, TokenSampling
from verilocc_bench.model.transcripts import TRANSCRIPTS, Transcripts, read_transcripts

PROBLEM = AllocationProblem.from_text(TINY)
ASKS = [Ask((Message("system", "be brief"), Message("user", f"é {n}")), 9) for n in range(3)]
SAID = Completion("v4", Finish.LENGTH, 11, 7, log_probabilities=(-1.5, -0.25), reasoning="hm")


def keep(path: Path, configuration: str = "a", samples: int = 2) -> Transcripts:
    found = Transcripts(path, configuration)
    for sample in range(samples):
        for number, ask in enumerate(ASKS):
            request, how = Request(PROBLEM, sample, seed=7 + sample), TokenSampling(5)
            said = replace(SAID, text=f"{configuration}{sample}{number}")
            found.keep(request, number, ask, how, said)
    found.close()
    return found


def texts(folder: Path) -> dict[tuple[str, int], list[str]]:
    found = read_transcripts(folder)
    return {(c, sample): [e.completion for e in said] for (c, _, sample), said in found.items()}


def test_what_is_kept_is_read_and_recalled(tmp_path: Path) -> None:
    path = tmp_path / TRANSCRIPTS
    keep(path)
    keep(path, "b", 1)
    assert texts(tmp_path) == {
        ("a", 0): ["a00", "a01", "a02"],
        ("a", 1): ["a10", "a11", "a12"],
        ("b", 0): ["b00", "b01", "b02"],
    }
    (first, *_) = read_transcripts(tmp_path)["a", PROBLEM.id, 0]
    told = (first.tokens_in, first.tokens_out, first.finish, first.reasoning)
    assert told == (11, 7, "length", "hm")
    assert first.prompt_text == "[system]\nbe brief\n\n[user]\né 0"
    lines = [json.loads(line) for line in gzip.decompress(path.read_bytes()).splitlines()]
    assert (len(lines), lines[0]["seed"], lines[0]["log_probability"]) == (9, 5, -1.75)
    again = Transcripts(path, "a")
    known = again.recall(Request(PROBLEM, 1, seed=8), 2, ASKS[2])
    assert known == replace(SAID, text="a12", log_probabilities=(-1.75,))
    for request, number, ask in (
        (Request(PROBLEM, 1, seed=9), 2, ASKS[2]),
        (Request(PROBLEM, 1, seed=8), 3, ASKS[2]),
        (Request(PROBLEM, 1, seed=8), 2, ASKS[1]),
    ):
        assert again.recall(request, number, ask) is None
    beside = Transcripts(path, "a", beside=True)
    assert beside.recall(Request(PROBLEM, 1, seed=8), 2, ASKS[2]) is None
    for each, sample in ((beside, 4), (again, 5)):
        each.keep(Request(PROBLEM, sample), 0, ASKS[0], TokenSampling(5), SAID)
        each.close()
    assert len(texts(tmp_path)) == 5
    Transcripts(path, "a", resume=False).close()
    assert texts(tmp_path) == {}


def test_a_killed_writer_spoils_its_last_line_alone(tmp_path: Path) -> None:
    path = tmp_path / TRANSCRIPTS
    keep(path)
    whole = path.read_bytes()
    for cut in range(1, 200, 4):
        path.write_bytes(whole[:-cut])
        keep(path, "b", 1)
        found = texts(tmp_path)
        assert found["a", 0] == ["a00", "a01", "a02"]
        assert found["a", 1] == ["a10", "a11"]
        assert found["b", 0] == ["b00", "b01", "b02"]
        gzip.decompress(path.read_bytes())


def test_lines_of_others_stay(tmp_path: Path) -> None:
    path = tmp_path / TRANSCRIPTS
    path.write_bytes(others := gzip.compress(b'{"id": "of a later version"}\n'))
    keep(path)
    assert path.read_bytes().startswith(others)
    assert texts(tmp_path)["a", 0] == ["a00", "a01", "a02"]


def test_a_damaged_byte_spoils_one_line(tmp_path: Path) -> None:
    path = tmp_path / TRANSCRIPTS
    keep(path)
    whole = path.read_bytes()
    for place in range(0, len(whole), 17):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        found = [text for said in texts(tmp_path).values() for text in said]
        assert len(found) >= 5
        assert set(found) <= {"a00", "a01", "a02", "a10", "a11", "a12"}


def test_a_line_of_gigabytes_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = keep(tmp_path / TRANSCRIPTS, samples=1)
    ask, how = ASKS[0], TokenSampling(5)
    long = Transcripts(found.path, "a")
    long.keep(Request(PROBLEM, 1, seed=8), 0, ask, how, replace(SAID, text="a" * (1 << 22)))
    long.close()
    assert len(read_transcripts(tmp_path)) == 2
    monkeypatch.setattr(transcripts, "_MOST_BYTES", 1 << 20)
    assert len(read_transcripts(tmp_path)) == 1
