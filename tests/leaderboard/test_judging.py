"""One function of a submission: what its samples are measured by."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leaderboard.judging import EITHER, FunctionVerdict, _is_copy, _Known, _middle, judge_function
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.analysis.bank_conflicts import BankConflicts
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.edits import Answer, AnswerLike, Edits
from verilocc_bench.edits.findings import Verdict
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.records import Outcome, Sample
from verilocc_bench.verification import FastVerifier
from verilocc_bench.verification.verifier import IndependentVerifier, Verifier

VALID = Sample(0, True)


def known(
    registers: int | None,
    conflicts: int = 0,
    spills: int | None = None,
    moves: int | None = None,
) -> _Known:
    """A valid sample of so many registers, or a wrong one."""
    if registers is None:
        return _Known(Sample(0, False), None, True, ())
    outcome = Outcome(0, registers, 40, 10, 8, 8, 0, BankConflicts(conflicts, 0), spills, moves)
    return _Known(VALID, outcome, True, ())


def middle(*samples: _Known) -> tuple[int, int]:
    """(registers, sample) of what is shown."""
    outcome = _middle(samples)
    assert outcome is not None
    return outcome.registers, outcome.sample


def test_the_middle_one_of_the_samples_is_shown_and_not_the_best() -> None:
    for order in itertools.permutations((20, 30, 40)):
        shown = middle(*map(known, order))
        assert shown == (30, order.index(30))
    assert middle(*map(known, (10, 10, 10, 50, 50))) == (10, 2)
    assert middle(*map(known, (10, 10, 50, 50, 50)))[0] == 50


def test_of_two_middle_ones_the_worse_is_shown() -> None:
    assert middle(known(20), known(30)) == (30, 1)
    assert middle(known(40), known(10), known(20), known(30)) == (30, 3)


def test_wrong_samples_do_not_move_the_middle() -> None:
    assert middle(known(None), known(30), known(None), known(20), known(10)) == (20, 3)
    assert _middle([known(None)]) is None
    assert _middle([]) is None


def test_samples_are_ordered_by_edits_then_registers_then_conflicts() -> None:
    assert middle(known(20, 9), known(20, 1), known(20, 5)) == (20, 2)
    assert middle(known(20, 9), known(30, 0), known(10, 50)) == (20, 0)
    assert middle(known(10, 0, 9), known(20, 0, 5), known(30, 0, 1)) == (20, 1)
    assert middle(known(10, 0, 9), known(30, 0, 5), known(20, 0, 1)) == (30, 1)
    assert middle(known(30, 0, 0), known(10, 0, 1), known(20, 0, 2)) == (10, 1)
    assert middle(known(30, 0, 1, 0), known(10, 0, 1, 1), known(20, 0, 1, 2)) == (10, 1)
    assert middle(known(30, 0, 0, 9), known(10, 0, 1, 1), known(20, 0, 2, 0)) == (10, 1)


# Whole functions: lines of a file, judged.


TEXT = """verilocc-bench 1
target gfx942
registers v:64 a:8 s:102 vcc:2=vcc_lo,vcc_hi
class V 1 v
bb0
%0=A
%1=A
%2=A
USE %0,%1,%2
S_ENDPGM
"""
LABEL = {"%0": "v0", "%1": "v1", "%2": "v4"}
BEST = {"%0": "v0", "%1": "v1", "%2": "v2"}


def row_of(text: str, **columns: Any) -> Row:
    problem = AllocationProblem.from_text(text)
    verdict = FastVerifier(problem).verify(LABEL)
    fields = {
        "id": problem.id,
        "arch": problem.function.target,
        "normalized": text,
        "assignment": json.dumps(LABEL),
        "best_assignment": json.dumps(BEST),
        "alternatives": "{}",
        "best_lower_bound": 3,
        "n_blocks": 1,
        "n_instructions": len(problem.function.blocks[0].instructions),
        "n_virtual_registers": 3,
        "pressure": json.dumps(dict(problem.pressure.maximum)),
        "registers_used": json.dumps(verdict.registers_used),
        "occupancy": verdict.occupancy,
        "track": "assign",
    }
    return replace(load_rows("mini").rows[0], **{**fields, **columns})


@pytest.fixture(scope="module")
def row() -> Row:
    return row_of(TEXT)


def judged(row: Row, folder: Path, *lines: Any) -> FunctionVerdict:
    """The verdict on lines: documents that get the row's id, or bytes."""
    path, places, data = folder / "answers.jsonl", [], b"\n"
    for line in lines:
        text = line if isinstance(line, bytes) else json.dumps({"id": row.id, **line}).encode()
        places.append((len(data), len(text)))
        data += text + b"\n"
    path.write_bytes(data)
    return judge_function(row, path, places)


def answer(*names: str, **more: object) -> dict[str, object]:
    return {"assignment": {f"%{n}": name for n, name in enumerate(names)}, **more}


WIDE, WIDER = answer("v0", "v1", "v8"), answer("v0", "v4", "v8")
OVERLAP = answer("v0", "v0", "v2")


def test_all_samples_are_judged_and_the_middle_one_is_measured(row: Row, tmp_path: Path) -> None:
    verdict = judged(row, tmp_path, WIDER, OVERLAP, {"assignment": BEST}, WIDE)
    assert verdict.id == row.id
    assert [(s.index, s.valid, s.kind) for s in verdict.samples] == [
        (0, True, None), (1, False, "invalid"), (2, True, None), (3, True, None),
    ]  # fmt: skip
    assert verdict.samples[1].finding_kinds == ("overlap",)
    assert all(sample.verify_seconds == 0 for sample in verdict.samples)
    assert verdict.outcome is not None
    assert (verdict.outcome.sample, verdict.outcome.registers) == (3, 9)
    assert (verdict.outcome.label_registers, verdict.outcome.bank_conflicts.any) == (5, 1)
    assert (verdict.distinct, verdict.repeated, verdict.disagreements) == (4, 1, 0)
    assert verdict.label_conflicts == 1
    assert verdict.labels == {"best": 1, EITHER: 1}
    again = FunctionVerdict.from_json(json.loads(json.dumps(verdict.to_json())))
    assert again == verdict
    result = verdict.row_result(row, "test")
    assert (result.row, result.split, result.samples, result.outcome) == (
        row, "test", verdict.samples, verdict.outcome,
    )  # fmt: skip


def test_a_verdict_without_quality_is_kept_too(row: Row, tmp_path: Path) -> None:
    alone = replace(row, assignment=None, best_assignment=None)
    verdict = judged(alone, tmp_path, OVERLAP)
    assert (verdict.outcome, verdict.label_conflicts, verdict.labels) == (None, None, {EITHER: 0})
    assert FunctionVerdict.from_json(json.loads(json.dumps(verdict.to_json()))) == verdict


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        ("distinct", None, TypeError),
        ("samples", [{}], KeyError),
        ("labels", {"a": "b"}, ValueError),
    ],
)
def test_what_is_kept_in_another_form_is_told(
    row: Row, tmp_path: Path, key: str, value: object, error: type[Exception]
) -> None:
    document = judged(row, tmp_path, WIDE).to_json()
    with pytest.raises(error):
        FunctionVerdict.from_json({**document, key: value})
    for left in document:
        with pytest.raises(KeyError):
            FunctionVerdict.from_json({k: v for k, v in document.items() if k != left})


def test_verdicts_are_read_as_numbers_and_texts(row: Row, tmp_path: Path) -> None:
    document = judged(row, tmp_path, WIDE).to_json()
    numbers = {"distinct": "7", "repeated": "5", "label_conflicts": "3", "disagreements": "2"}
    found = FunctionVerdict.from_json({**document, "id": 12, **numbers, "labels": {4: "6"}})
    assert (found.id, found.distinct, found.repeated, found.label_conflicts) == ("12", 7, 5, 3)
    assert (found.disagreements, found.labels) == (2, {"4": 6})


def test_equal_answers_are_one_however_they_are_written(row: Row, tmp_path: Path) -> None:
    other = {"assignment": {"%2": "v8", "%1": "v1", "%0": "v0"}}
    with_edits = {**WIDE, "edits": {"insert": []}}
    verdict = judged(row, tmp_path, WIDE, other, WIDER, with_edits, {**WIDE, "edits": {}})
    assert (verdict.distinct, verdict.repeated) == (2, 4)
    assert all(sample.valid for sample in verdict.samples)
    failures = [{"failure": "timeout", "message": m} for m in ("slow", "slow", "slower")]
    verdict = judged(row, tmp_path, *failures, {"failure": "crashed", "message": "slow"})
    assert (verdict.distinct, verdict.repeated, verdict.outcome) == (3, 2, None)
    assert [sample.kind for sample in verdict.samples] == ["timeout"] * 3 + ["crashed"]
    assert [sample.message for sample in verdict.samples] == ["slow", "slow", "slower", "slow"]


def test_copies_of_labels_are_counted_by_sample(row: Row, tmp_path: Path) -> None:
    label, best = {"assignment": LABEL}, {"assignment": BEST}
    verdict = judged(row, tmp_path, label, WIDE, best, label, OVERLAP)
    assert verdict.labels == {"compiler": 2, "best": 1, EITHER: 3}
    both = replace(row, best_assignment=json.dumps(LABEL))
    assert judged(both, tmp_path, label, label, WIDE).labels == {
        "compiler": 2, "best": 2, EITHER: 2,
    }  # fmt: skip


def test_answers_with_more_in_them_are_copies_too(row: Row, tmp_path: Path) -> None:
    label, more = {"assignment": LABEL}, {"assignment": {**LABEL, "%9": "v9"}}
    verdict = judged(row, tmp_path, label, more, more)
    assert [sample.valid for sample in verdict.samples] == [True, False, False]
    assert verdict.labels == {"compiler": 3, EITHER: 3}


def test_nearly_a_label_is_a_copy_of_it() -> None:
    label = {f"%{n}": f"v{n}" for n in range(100)}
    for changed, copy in ((0, True), (5, True), (6, False)):
        answer = {**label, **{f"%{n}": "v200" for n in range(changed)}}
        assert _is_copy(Answer(answer), label) == copy
        shared = {name: f"v{int(base[1:]) % 10}" for name, base in label.items()}
        renamed = {name: f"v{(int(base[1:]) + 7) % 10}" for name, base in shared.items()}
        renamed |= {f"%{n}": "v200" for n in range(changed)}
        assert _is_copy(Answer(renamed), shared) == copy
    pairs = {name: f"v{int(base[1:]) // 2}" for name, base in label.items()}
    moved = {name: f"v{int(base[1:]) + 1}" for name, base in pairs.items()}
    assert _is_copy(Answer(moved), pairs)  # half as many registers as names are few
    assert not _is_copy(Answer(dict.fromkeys(shared, "v0")), shared)
    assert not _is_copy(Answer(label), None)
    assert not _is_copy(Answer(label, Edits({900: "V 1 v"})), label)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b'{"id": "%s", "assignment": {}, "id": "%s"}', "key 'id' stands twice"),
        (b'{"id": "0123456789abcdef", "assignment": {}}',
         "the line has another id than it begins with"),
        (b'{"id": "%s", "assignment": {"%%0": "\xff"}}', "expected UTF-8 text"),
        (b'{"id": "%s", "assignment": 7}', "expected an object as 'assignment'"),
    ],
)  # fmt: skip
def test_lines_that_are_no_answers(row: Row, tmp_path: Path, line: bytes, message: str) -> None:
    text = line.replace(b"%s", row.id.encode()).replace(b"%%", b"%")
    verdict = judged(row, tmp_path, WIDE, text)
    assert [sample.kind for sample in verdict.samples] == [None, "unparsable"]
    assert verdict.samples[1].message == message
    assert verdict.outcome is not None
    assert (verdict.outcome.sample, verdict.disagreements) == (0, 0)


def test_a_line_that_does_not_say_whose_it_is_names_the_file(row: Row, tmp_path: Path) -> None:
    for line in (b"nonsense", b'"\xff"'):
        with pytest.raises(InputError) as caught:
            judged(row, tmp_path, line)
        assert caught.value.source == str(tmp_path / "answers.jsonl")


def test_what_is_beyond_the_verifier_is_no_disagreement(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Verifier.verify

    def gives_up(self: Verifier, answer: AnswerLike, findings: int | None = None) -> Verdict:
        if Answer.of(answer).assignment["%2"] == "v8":
            raise InputError("too much")
        return real(self, answer, findings)

    monkeypatch.setattr(Verifier, "verify", gives_up)
    verdict = judged(row, tmp_path, WIDE)
    assert [sample.kind for sample in verdict.samples] == ["beyond_analysis"]
    assert (verdict.outcome, verdict.disagreements, verdict.labels) == (None, 0, {EITHER: 0})


def moves(count: int) -> dict[str, object]:
    """An answer with so many pairs moved where they are, in two insertions."""
    pairs = [["%0", "%0"]] * count
    inserted = [{"at": [0, 3], "move": [pair]} for pair in pairs]
    return {**WIDE, "edits": {"insert": inserted}}


def test_edits_are_judged_up_to_two_for_each_instruction(row: Row, tmp_path: Path) -> None:
    split = replace(row, track="split")
    verdict = judged(split, tmp_path, moves(10), moves(11))
    assert [sample.valid for sample in verdict.samples] == [True, False]
    assert verdict.samples[1].message == "11 edits, more than the 10 that are judged"
    assert verdict.samples[1].kind == "unparsable"
    assert verdict.outcome is not None
    assert (verdict.outcome.move_cost, verdict.outcome.spill_cost) == (10, 0)
    assert verdict.disagreements == 0
    assert judged(row, tmp_path, moves(1)).samples[0].finding_kinds == ("invalid_edit",)


def test_thousands_of_edits_are_told_with_commas(tmp_path: Path) -> None:
    many = row_of(TEXT.replace("USE", "NOP\n" * 595 + "USE"), track="split")
    (sample,) = judged(many, tmp_path, moves(1201)).samples
    assert sample.message == "1,201 edits, more than the 1,200 that are judged"


def test_samples_of_which_the_checkers_say_different_things_are_counted(
    row: Row, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = IndependentVerifier.verify
    lines = (WIDE, WIDE, OVERLAP, {"failure": "no_answer"}, WIDER)
    assert judged(row, tmp_path, *lines).disagreements == 0

    def lenient(self: IndependentVerifier, answer: Answer, _findings: int | None) -> Verdict:
        return replace(real(self, answer), valid=True, registers_used={}, findings=())

    monkeypatch.setattr(IndependentVerifier, "verify", lenient)
    assert judged(row, tmp_path, OVERLAP, WIDE).disagreements == 2

    def other(self: IndependentVerifier, answer: Answer, _findings: int | None) -> Verdict:
        verdict = real(self, answer)
        return replace(verdict, registers_used={**(verdict.registers_used or {}), "v": 99})

    monkeypatch.setattr(IndependentVerifier, "verify", other)
    assert judged(row, tmp_path, *lines).disagreements == 3

    def gives_up(self: IndependentVerifier, answer: Answer, _findings: int | None) -> Verdict:
        raise InputError("too much")

    monkeypatch.setattr(IndependentVerifier, "verify", gives_up)
    verdict = judged(row, tmp_path, *lines)
    assert verdict.disagreements == 4
    assert [sample.valid for sample in verdict.samples] == [True, True, False, False, True]
