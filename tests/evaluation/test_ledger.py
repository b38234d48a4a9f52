"""The ledger by itself: which line of a sample counts, and whose quality is remembered."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import random
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from verilocc_bench.allocators import Answer, FailureKind
from verilocc_bench.analysis.bank_conflicts import BankConflicts
from verilocc_bench.dataset import Row, load_rows
from verilocc_bench.edits.findings import Verdict
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.fingerprints import code_fingerprint, fingerprint
from verilocc_bench.evaluation.ledger import Ledger, LedgerWriter, checked_line, read_checked
from verilocc_bench.evaluation.records import Judged, Outcome, Sample
from verilocc_bench.evaluation.score import known_bounds

ROWS = load_rows("mini").rows[:2]
SETTINGS = {"seed": 0}


def judged(index: int, register: int, *, valid: bool = True) -> Judged:
    """A sample whose answer names a register."""
    kinds = () if valid else ("overlap",)
    sample = Sample(index, valid, findings_count=len(kinds), finding_kinds=kinds)
    verdict = Verdict("any", valid, (), {"v": register} if valid else None, 8 if valid else None)
    return Judged(sample, Answer({"%0": f"v{register}"}), verdict)


def quality(index: int, registers: int) -> Outcome:
    return Outcome(index, registers, 9, 1, 8, 8, 0, BankConflicts(0, 0))


def test_which_line_counts_is_what_the_lines_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Random lines, of which a sample's last one counts; a quality goes with its answer.

    The lines come by two verifiers, while the ledger is open and before.
    """
    for seed in range(150):
        generator = random.Random(seed)
        path = tmp_path / str(seed)
        monkeypatch.setattr(f"{Ledger.__module__}.code_fingerprint", lambda: "present")
        opened = Ledger(path, SETTINGS) if seed % 2 else None
        writers = {
            judge: LedgerWriter(path, fingerprint(SETTINGS), judge)
            for judge in ("present", "earlier")
        }
        last: dict[tuple[str, int], tuple[int, bool]] = {}
        measured: dict[str, tuple[int, int, Outcome]] = {}
        for number in range(generator.randint(1, 8)):
            row, index = generator.choice(ROWS), generator.randrange(2)
            judge, valid = generator.choice(["present", "earlier"]), generator.random() < 0.7
            outcome = quality(index, number) if valid and generator.random() < 0.7 else None
            writers[judge].append(row, judged(index, number, valid=valid), outcome)
            last[row.id, index] = number, judge == "present"
            if outcome is not None and judge == "present":
                measured[row.id] = number, index, outcome
        opened = opened or Ledger(path, SETTINGS)
        opened.refresh()
        assert {key: entry.fresh for key, entry in opened.entries.items()} == {
            key: fresh for key, (_, fresh) in last.items()
        }, seed
        for key, entry in opened.entries.items():
            number = last[key][0]
            assert opened.read(entry)[0] == Answer({"%0": f"v{number}"})
            line = opened.read_line(*key)
            assert line is not None
            assert line["answer"]["assignment"] == {"%0": f"v{number}"}
        for row in ROWS:
            number, index, outcome = measured.get(row.id, (-1, -1, None))
            stands = last.get((row.id, index), (-2, False))[0] == number
            assert opened.outcome(row) == (outcome if stands else None), seed
            assert opened.read_line(row.id, 2) is None
        assert list(opened.warnings()) == []
        opened.close()
        for writer in writers.values():
            writer.close()


def opened_lines(path: Path) -> list[dict[str, object]]:
    lines = filter(None, path.read_bytes().split(b"\n"))
    return [document for line in lines if (document := read_checked(line)) is not None]


def sound(row: Row) -> dict[str, object]:
    """The line of a valid sample, as the writer would write it."""
    return {
        "kind": "sample",
        "configuration": fingerprint(SETTINGS),
        "judge": code_fingerprint(),
        "id": row.id,
        "sample": judged(0, 3).sample.to_json(),
        "verdict": Verdict("any", True, (), {"v": 3}, 8).to_json(),
        "answer": {"id": row.id, "assignment": {"%0": "v3"}},
        "label": fingerprint([row.assignment, row.best_lower_bound, *known_bounds()[row.id]]),
        "outcome": asdict(quality(0, 3)),
    }


FAILED = Sample(0, valid=False, failure=FailureKind.UNPARSABLE, message="?")
FAILED_LINE = {"sample": FAILED.to_json(), "verdict": None, "answer": None, "outcome": None}


def test_what_is_repeated_cost_nothing() -> None:
    said = replace(FAILED, details={"asks": 2, "prompt_tokens": None, "completion_tokens": 7})
    again = {"asks": 0, "prompt_tokens": None, "completion_tokens": 0}
    assert said.repeated(3) == replace(FAILED, index=3, details=again)


def test_lines_say_everything(tmp_path: Path) -> None:
    row = ROWS[0]
    ledger = Ledger(tmp_path / "ledger", SETTINGS)
    ledger.writer.append(row, judged(0, 3), quality(0, 3))
    ledger.writer.append(ROWS[1], Judged(FAILED, None, None))
    ledger.refresh()
    assert ledger.read_line(row.id, 0) == sound(row)
    assert ledger.read_line(ROWS[1].id, 0) == sound(ROWS[1]) | FAILED_LINE | {"label": None}
    assert ledger.read(ledger.entries[ROWS[1].id, 0]) == (None, None)
    # A quality is that of the label and the bound that it was measured by.
    assert ledger.outcome(row) == quality(0, 3)
    assert ledger.outcome(replace(row, assignment='{"%0":"v9"}')) is None
    assert ledger.outcome(replace(row, best_lower_bound=2)) is None
    assert ledger.outcome(ROWS[1]) is None
    ledger.close()
    with pytest.raises(ValueError, match="Out of range float values"):
        checked_line({"seconds": float("nan")})


@pytest.mark.parametrize(
    ("change", "kept"),
    [
        ({}, True),
        ({"verdict": None}, False),
        ({"answer": None}, False),
        ({"verdict": []}, False),
        ({"answer": "v3"}, False),
        ({"sample": FAILED.to_json()}, False),
        ({"sample": FAILED.to_json(), "verdict": None, "outcome": None}, True),
        (FAILED_LINE, True),
        ({"sample": {"index": 0}}, False),
        ({"outcome": {"registers": 3}}, False),
        ({"judge": None}, True),
    ],
)
def test_lines_that_contradict_themselves_are_damaged(
    tmp_path: Path, change: dict[str, object], kept: bool
) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(checked_line(sound(ROWS[0]) | change))
    ledger = Ledger(path, SETTINGS)
    assert list(ledger.entries) == ([(ROWS[0].id, 0)] if kept else [])
    told = f"{path}: 1 line is damaged and passed over; the samples that they held are asked for "
    assert list(ledger.warnings()) == ([] if kept else [f"{told}again"])
    ledger.close()


def test_without_an_answer_any_verifier_will_do(tmp_path: Path) -> None:
    """What the present one could not judge is asked again of a later one, an answer is not."""
    path = tmp_path / "ledger"
    failed = {"sample": FAILED.to_json(), "verdict": None, "outcome": None, "judge": "earlier"}
    path.write_bytes(checked_line(sound(ROWS[0]) | failed | {"answer": None}))
    with path.open("ab") as file:
        file.write(checked_line(sound(ROWS[1]) | failed))
    ledger = Ledger(path, SETTINGS)
    assert [entry.fresh for entry in ledger.entries.values()] == [True, False]
    ledger.close()


def test_another_configuration_and_earlier_forms_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    other = {"configuration": "0123456789abcdef", "outcome": fingerprint(SETTINGS)}
    plain = sound(ROWS[0])
    lines = [
        json.dumps(plain).encode() + b"\n",
        checked_line(sound(ROWS[0]) | other),
        json.dumps(plain).encode() + b"\n",
        json.dumps(plain | {"sample": judged(1, 3).sample.to_json()}).encode() + b"\n",
        json.dumps(sound(ROWS[1]) | {"configuration": "0123456789abcdef"}).encode() + b"\n",
        b'{"kind": "configuration"}\n',
        b'{"any": "thing"}\n',
        b"[]\n",
        b"[" * 100_000 + b"\n",
        json.dumps(plain | {"checksum": "0123456789abcdef"}).encode() + b"\n",
        checked_line(plain)[:-1],  # still being written
    ]
    path.write_bytes(b"".join(lines))
    ledger = Ledger(path, SETTINGS)
    assert ledger.entries == {}
    assert list(ledger.warnings()) == [
        f"{path}: 4 lines are damaged and passed over; "
        "the samples that they held are asked for again",
        f"{path}: 2 samples that an earlier version wrote without a checksum are asked for again",
    ]
    assert opened_lines(path)[-1]["settings"] == SETTINGS
    ledger.refresh()
    assert list(ledger.entries) == [(ROWS[0].id, 0)]
    # What is there again is asked for no more.
    assert list(ledger.warnings())[1:] == [
        f"{path}: 1 sample that an earlier version wrote without a checksum are asked for again"
    ]
    again = ledger.entries[ROWS[0].id, 0]
    data = bytearray(path.read_bytes())
    data[again.offset + 9] ^= 1
    path.write_bytes(data)
    with pytest.raises(InputError) as damaged:
        ledger.read(again)
    assert str(damaged.value) == f"{path}: a line was damaged meanwhile: run evaluate again"
    ledger.close()
    told = len(opened_lines(path))
    Ledger(path, SETTINGS).close()
    assert len(opened_lines(path)) == told  # the settings stand there already
    ledger = Ledger(path, SETTINGS, resume=False)
    assert len(opened_lines(path)) == 1
    ledger.close()
    ledger = Ledger(path, SETTINGS)
    assert list(ledger.warnings()) == []
    ledger.close()


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError) as refused:
        Ledger(tmp_path / "folder", SETTINGS)
    assert str(refused.value) == f"{tmp_path / 'folder'}: cannot be written: Is a directory"
    with pytest.raises(InputError) as refused:
        LedgerWriter(Path("/dev/null"), "", "")
    assert str(refused.value) == "/dev/null: expected a plain file"
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file/ledger: cannot be written: "):
        LedgerWriter(tmp_path / "file" / "ledger", "", "")
    mask = os.umask(0)
    writer = LedgerWriter(tmp_path / "new" / "folder" / "ledger", "", "")
    os.umask(mask)
    assert writer.path.stat().st_mode & 0o777 == 0o666
    # A pipe may come in its place.
    assert fcntl.fcntl(writer._file._file, fcntl.F_GETFL) & os.O_NONBLOCK
    writer.close()
    with pytest.raises(InputError, match="folder/ledger: cannot be written: Bad file descriptor"):
        writer.describe({})
    held = Ledger(tmp_path / "held", SETTINGS)
    with pytest.raises(InputError) as refused:
        Ledger(tmp_path / "held", SETTINGS)
    assert str(refused.value) == f"{tmp_path / 'held'}: another run writes to this folder now"
    held.close()
    Ledger(tmp_path / "held", SETTINGS).close()


def test_an_answer_of_another_form_is_refused_with_its_file(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(checked_line(sound(ROWS[0]) | {"answer": {"assignment": 3}}))
    ledger = Ledger(path, SETTINGS)
    with pytest.raises(InputError) as refused:
        ledger.read(ledger.entries[ROWS[0].id, 0])
    assert str(refused.value).startswith(f"{path}")
    ledger.close()


def test_what_cannot_be_read_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    Ledger(tmp_path / "ledger", SETTINGS).close()
    monkeypatch.setattr(Path, "open", broken)
    with pytest.raises(InputError) as refused:
        Ledger(tmp_path / "ledger", SETTINGS)
    assert str(refused.value) == f"{tmp_path / 'ledger'}: cannot be written: Input/output error"
