"""Honest submissions: what is found is what evaluate finds, whatever the order of samples."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from leaderboard import examining
from leaderboard import revalidate as module
from leaderboard.document import _marks
from leaderboard.judging import EITHER, FunctionVerdict, judge_function
from leaderboard.revalidate import COMMENT, REVALIDATION, WORK, main
from tests.leaderboard.submissions import Arena, Submitted, check, kinds, messages, submitted
from tests.mutation import mutate
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main as verilocc_bench
from verilocc_bench.evaluation.records import Sample
from verilocc_bench.verification import IndependentVerifier, Verdict

pytestmark = pytest.mark.slow


def without_times(record: Any) -> Any:
    return {key: value for key, value in record.items() if not key.endswith("_seconds")}


def evaluated(arena: Arena, path: Path, samples: int) -> dict[str, Any]:
    """What evaluate says of a file of answers."""
    output = path.parent / "run"
    command = ["evaluate", "--dataset", str(arena.folder), "--model", f"predictions:{path}"]
    command += ["--samples", str(samples), "--output-path", str(output)]
    assert verilocc_bench(command) == 0
    (results,) = output.rglob("results.json")
    found: dict[str, Any] = json.loads(results.read_text())
    return found


def broken(arena: Arena, lines: list[dict[str, Any]], generator: random.Random) -> None:
    """Makes some answers wrong, in the usual ways."""
    for line in lines:
        match generator.randrange(5):
            case 0:
                names = sorted(line["assignment"])
                line["assignment"] = dict.fromkeys(names, line["assignment"][names[0]])
            case 1:
                line["assignment"] = {}
            case 2:
                del line["assignment"]
                line |= {"failure": "no_answer", "message": "gave up"}
            case 3:  # legal places all, that collide
                row = next(row for row in arena.rows if row.id == line["id"])
                problem = AllocationProblem.from_text(row.normalized)
                for _ in range(3):
                    _, line["assignment"] = mutate(problem, line["assignment"], generator)


def drawn(arena: Arena, samples: int, seed: int = 0) -> Submitted:
    """A submission with right and wrong answers."""
    found = submitted(arena, samples)
    lines = [dict(line) for line in found.lines]
    broken(arena, lines, random.Random(seed))
    found.lines = list(lines)
    return found


def test_it_finds_what_evaluate_finds(arena: Arena, tmp_path: Path) -> None:
    for samples in (1, 10):
        folder = drawn(arena, samples).write(tmp_path / f"submission-{samples}")
        document = check(folder, tmp_path / f"out-{samples}", jobs=2)
        assert document["accepted"], messages(document)
        expected = evaluated(arena, folder / "answers.jsonl", samples)
        assert document["results"].keys() == expected["results"].keys()
        for task, record in document["results"].items():
            same = expected["results"][task]
            names = set(without_times(record)) & set(without_times(same))
            assert {"pass@1", "registers_ratio", "failures", "findings"} <= names
            assert [record[name] for name in sorted(names)] == [
                same[name] for name in sorted(names)
            ]
        assert 0 < document["results"]["overall"]["pass@1"] < 1
        assert ("pass@10" in document["results"]["overall"]) == (samples == 10)


def test_the_order_of_samples_decides_nothing(arena: Arena, tmp_path: Path) -> None:
    found = drawn(arena, 4)
    first = check(found.write(tmp_path / "one"), tmp_path / "out-one")
    for seed in range(2):
        random.Random(seed).shuffle(found.lines)
        again = check(found.write(tmp_path / f"{seed}"), tmp_path / f"out-{seed}")
        assert again["results"] == first["results"]
        for kernel, other in zip(again["kernels"], first["kernels"], strict=True):
            assert kernel | {"first_valid": 0} == other | {"first_valid": 0}


def test_two_runs_write_the_same_bytes(arena: Arena, tmp_path: Path) -> None:
    folder = drawn(arena, 3).write(tmp_path / "submission")
    packed = drawn(arena, 3).write(tmp_path / "packed")
    data = (packed / "answers.jsonl").read_bytes()
    (packed / "answers.jsonl.gz").write_bytes(gzip.compress(data))
    (packed / "answers.jsonl").unlink()
    for number, (each, jobs) in enumerate([(folder, 1), (folder, 2), (packed, 2)]):
        check(each, tmp_path / f"out-{number}", jobs=jobs)
    texts = [(tmp_path / f"out-{n}" / REVALIDATION).read_text() for n in range(3)]
    assert texts[0] == texts[1]
    documents = [json.loads(text) for text in texts]
    assert documents[2] | {"files": 0} == documents[0] | {"files": 0}
    for number in range(3):
        left = {path.name for path in (tmp_path / f"out-{number}").iterdir()}
        assert left == {REVALIDATION, COMMENT}


def test_it_goes_on_where_it_was_interrupted(
    arena: Arena,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = drawn(arena, 2).write(tmp_path / "submission")
    output = tmp_path / "out"
    expected = check(folder, tmp_path / "whole")

    begun: list[str] = []

    def interrupted(row: Any, *rest: Any) -> Any:
        begun.append(row.id)
        if len(begun) == 4:
            raise KeyboardInterrupt
        return judge_function(row, *rest)

    # Futures that are done at once would come in any order.
    monkeypatch.setattr(module, "as_completed", iter)
    monkeypatch.setattr(module, "judge_function", interrupted)
    with pytest.raises(KeyboardInterrupt):
        check(folder, output)
    assert not (output / REVALIDATION).exists()
    judged = output / WORK / "judged.jsonl"
    count = judged.read_text().count('"key"')
    data = bytearray(judged.read_bytes())
    data[data.index(b'"disagreements": ') + len(b'"disagreements": ')] ^= 1  # one bit
    judged.write_bytes(data + b'{"key": "half a li')
    calls: list[str] = []

    def counted(row: Any, *rest: Any) -> Any:
        calls.append(row.id)
        return judge_function(row, *rest)

    monkeypatch.setattr(module, "judge_function", counted)
    assert check(folder, output) == expected
    assert count == 3
    assert len(calls) == len(arena.rows) - count + 1
    assert "damaged lines, which are judged again: 2" in capsys.readouterr().err


def test_what_is_kept_is_of_these_answers(arena: Arena, tmp_path: Path) -> None:
    good = submitted(arena).write(tmp_path / "good")
    bad = drawn(arena, 1, seed=3).write(tmp_path / "bad")
    output = tmp_path / "out"
    expected = check(bad, tmp_path / "expected")
    with mock.patch("shutil.rmtree"):
        check(good, output)
    assert (output / WORK / "judged.jsonl").exists()
    assert check(bad, output) == expected


def test_a_part_of_the_board(arena: Arena, tmp_path: Path) -> None:
    found = submitted(arena, architectures=["gfx90a"])
    here = {row.id for row in arena.rows if row.arch == "gfx90a"}
    found.lines = [line for line in found.lines if line["id"] in here]
    document = check(found.write(tmp_path / "one"), tmp_path / "out")
    assert document["accepted"]
    assert {task.split("/")[0] for task in document["results"]} == {"gfx90a", "overall"}
    with mock.patch.object(examining, "boards", return_value=(replace(arena.board, seed="a"),)):
        (refusal,) = check(tmp_path / "one", tmp_path / "out")["refusals"]
    assert refusal["message"] == "submission.yaml: dataset: the board small is closed"


def test_copies_of_labels_are_marked(arena: Arena, tmp_path: Path) -> None:
    document = check(submitted(arena).write(tmp_path / "one"), tmp_path / "out")
    assert document["accepted"]
    count = len(arena.rows)
    assert document["answers"]["compiler"] == count
    marks = {mark["kind"]: mark["message"] for mark in document["marks"]}
    assert marks["compiler-label"] == (
        f"{count} of {count} answers are the compiler's own assignment, or nearly so"
    )
    assert "the compiler's own assignment" in (tmp_path / "out" / COMMENT).read_text()


def test_repeated_samples_are_marked_and_gain_nothing(arena: Arena, tmp_path: Path) -> None:
    once = drawn(arena, 1)
    many = submitted(arena, 10)
    many.lines = [line for line in once.lines for _ in range(10)]
    first = check(once.write(tmp_path / "once"), tmp_path / "out-once")
    found = check(many.write(tmp_path / "many"), tmp_path / "out-many")
    assert "repeated-samples" in {mark["kind"] for mark in found["marks"]}
    # One that differs hides nothing.
    many.lines[0] = {"id": many.lines[0]["id"], "failure": "no_answer", "message": "no"}
    again = check(many.write(tmp_path / "nearly"), tmp_path / "out-nearly")
    assert "repeated-samples" in {mark["kind"] for mark in again["marks"]}
    overall = found["results"]["overall"]
    assert overall["pass@10"] == overall["pass@1"] == first["results"]["overall"]["pass@1"]


def test_claims_are_compared(arena: Arena, tmp_path: Path) -> None:
    claims = {"overall": {"pass@1": 1.0, "registers_ratio": 0.9}, "gfx1100/gemm": {"pass@1": 1}}
    document = check(submitted(arena, claims=claims).write(tmp_path / "s"), tmp_path / "out")
    assert document["accepted"]
    assert [claim["same"] for claim in document["claims"]] == [True, False, False]
    assert document["claims"][2]["found"] is None
    assert "claims-differ" in {mark["kind"] for mark in document["marks"]}
    assert "0.900" in (tmp_path / "out" / COMMENT).read_text()


@pytest.mark.parametrize(
    ("copied", "marks"),
    [
        (("compiler", "best", None), ["either-label"]),
        (("compiler", "compiler", "best"), ["compiler-label"]),
        (("best", "best", None), ["best-label"]),
        (("compiler", None, None), []),
    ],
)
def test_copies_of_one_label_and_the_other_are_counted_together(
    copied: tuple[str | None, ...], marks: list[str]
) -> None:
    verdicts = [
        FunctionVerdict(str(number), (Sample(0, True),), None, 1, 1, copies, None, 0)
        for number, name in enumerate(copied)
        for copies in [{} if name is None else {name: 1, EITHER: 1}]
    ]
    submission = mock.Mock(samples=1)
    assert [mark["kind"] for mark in _marks(submission, verdicts, [])] == marks


def test_collisions_in_legal_places_are_wrong_answers_to_both(arena: Arena, tmp_path: Path) -> None:
    """The fast check says what such an answer uses, the independent one does not."""
    found = submitted(arena)
    lines = [dict(line) for line in found.lines]
    for row, line in zip(arena.rows, lines, strict=True):
        problem = AllocationProblem.from_text(row.normalized)
        classes = problem.function.virtual_registers
        places = [next(iter(problem.placements.legal[c].values())) for c in classes]
        line["assignment"] = {f"%{number}": place for number, place in enumerate(places)}
    found.lines = list(lines)
    document = check(found.write(tmp_path / "submission"), tmp_path / "out")
    assert document["accepted"], messages(document)
    assert document["results"]["overall"]["pass@1"] == 0
    assert "overlap" in document["results"]["overall"]["findings"]


def test_checkers_that_disagree_stop_it(
    arena: Arena, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = IndependentVerifier.verify

    def lenient(self: Any, answer: Any, _findings: int | None = None) -> Verdict:
        verdict = real(self, answer)
        mine = self.problem.id == arena.rows[0].id
        return replace(verdict, valid=not verdict.valid) if mine else verdict

    monkeypatch.setattr(IndependentVerifier, "verify", lenient)
    document = check(submitted(arena).write(tmp_path / "s"), tmp_path / "out")
    assert kinds(document) == ["checkers-disagree"]
    assert not document["accepted"]


def test_the_command(arena: Arena, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = submitted(arena).write(tmp_path / "s")
    assert main([str(folder), "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == (tmp_path / "out" / COMMENT).read_text()
    (folder / "answers.jsonl").write_text("nothing\n")
    assert main([str(folder), "--output", str(tmp_path / "out")]) == 1
    assert "## Refused" in capsys.readouterr().out
    assert main([str(tmp_path / "none"), "--output", str(tmp_path / "out")]) == 2
    assert "expected the folder of a submission" in capsys.readouterr().err
    assert main([str(folder), "--output", str(folder / "out")]) == 2
    assert "outside of the submission" in capsys.readouterr().err
    other = ["--dataset", "mini", "--output", str(tmp_path / "out")]
    submitted(arena).write(tmp_path / "again")
    assert main([str(tmp_path / "again"), *other]) == 2
    assert "the board 'small' has" in capsys.readouterr().err
