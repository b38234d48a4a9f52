"""What a submitter measured: added by `submit --measured`, checked for its form, and marked."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from leaderboard.comment import comment
from leaderboard.measured import (
    MOST_MEASURED,
    UNVERIFIED,
    MeasuredFigure,
    answer_hash,
    figure_words,
    read_figure,
)
from leaderboard.rendering.entries import BoardEntry
from leaderboard.rendering.pages import BoardPage, entry_page
from leaderboard.submission import read_submission
from tests.leaderboard.submissions import Arena, check, messages, submitted
from verilocc_bench.cli import main
from verilocc_bench.edits import Answer
from verilocc_bench.files import write_atomically
from verilocc_bench.measurement import DOCUMENT, FORMAT, RESULTS

SHARP = "<b onclick=x>&"
FIGURE: dict[str, Any] = {
    "id": "8223b064765a0a4d",
    "answer_sha256": "0" * 64,
    "against": "compiler",
    "device": "AMD Instinct MI300X",
    "driver_version": 60443483,
    "grid": [4, 4, 1],
    "rounds": 25,
    "milliseconds": 0.5,
    "against_milliseconds": 1,
    "ratio": 0.5,
    "ratio_low": 0.49,
    "ratio_high": 0.5,
    "same_bits": True,
}


def test_a_figure_is_read() -> None:
    found = read_figure(FIGURE)
    assert isinstance(found, MeasuredFigure)
    assert (found.grid, found.milliseconds, found.same_bits) == ((4, 4, 1), 0.5, True)
    assert figure_words(FIGURE) == (
        "0.500000 ms against 1.000000 ms, 0.5000 times [0.4900, 0.5000] over 25 rounds"
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "8223b064765a0a4g"),
        ("id", 8223064765004455),
        ("answer_sha256", "0" * 63),
        ("answer_sha256", None),
        ("against", ""),
        ("against", "x" * 101),
        ("device", "a\u202eb"),
        ("device", ["MI300X"]),
        ("driver_version", -1),
        ("driver_version", True),
        ("driver_version", 1.5),
        ("grid", [4, 4]),
        ("grid", [4, 4, 0]),
        ("grid", "444"),
        ("grid", [4, 4, True]),
        ("rounds", 4),
        ("rounds", 1_000_001),
        ("milliseconds", 0),
        ("milliseconds", float("nan")),
        ("milliseconds", float("inf")),
        ("milliseconds", True),
        ("against_milliseconds", "1"),
        ("ratio", 0.51),
        ("ratio", 0.48),
        ("ratio_low", -0.1),
        ("ratio_high", 1e30),
        ("same_bits", 1),
        ("verified", True),
    ],
)
def test_other_forms_are_refused_by_name(field: str, value: Any) -> None:
    found = read_figure({**FIGURE, field: value})
    assert isinstance(found, str)
    assert found.startswith(f"{field}: expected" if field in FIGURE else "expected a mapping")


def test_a_figure_is_whole() -> None:
    assert isinstance(read_figure([FIGURE]), str)
    for name in FIGURE:
        assert isinstance(read_figure({k: v for k, v in FIGURE.items() if k != name}), str)


def figure_of(arena: Arena, **fields: Any) -> dict[str, Any]:
    row = arena.rows[0]
    digest = answer_hash(row.id, Answer.of(dict(reversed(row.label.items()))))
    own = {"id": row.id, "answer_sha256": digest, "grid": list(FIGURE["grid"])}
    return {**FIGURE, **own, **fields}


def test_submissions_name_what_is_wrong(arena: Arena, tmp_path: Path) -> None:
    wrong = [figure_of(arena), figure_of(arena, device=""), figure_of(arena, rounds=0)]
    many = [figure_of(arena) for _ in range(MOST_MEASURED + 1)]
    for number, value in enumerate((wrong, [], {}, many)):
        folder = submitted(arena, measured=value).write(tmp_path / str(number))
        found, refusals = read_submission(folder)
        assert found is None
        places = [each.place for each in refusals]
        if value is wrong:
            assert places == ["submission.yaml: measured, 2", "submission.yaml: measured, 3"]
        else:
            assert places == ["submission.yaml: measured"]


def test_figures_of_other_answers_are_refused(arena: Arena, tmp_path: Path) -> None:
    measured = [
        figure_of(arena),
        figure_of(arena, answer_sha256="1" * 64),
        figure_of(arena, id=arena.trained.id),
    ]
    folder = submitted(arena, measured=measured).write(tmp_path / "submission")
    document = check(folder, tmp_path / "output")
    assert not document["accepted"]
    said = messages(document)
    assert "measured, 1" not in said
    assert "measured, 2: measured of an answer to" in said
    assert "measured, 3: measured of an answer to" in said


@pytest.mark.slow
def test_page_and_comment_mark_them(arena: Arena, tmp_path: Path) -> None:
    measured = [figure_of(arena, device=f"GPU {SHARP}"), figure_of(arena, same_bits=False)]
    document = check(submitted(arena, measured=measured).write(tmp_path / "s"), tmp_path / "o")
    assert document["accepted"], document["refusals"]
    assert document["submission"]["measured"] == measured
    assert not {"milliseconds", "ratio"} & set(document["results"]["overall"])
    words = comment(json.loads(json.dumps(document)))
    assert f"On GPUs, {UNVERIFIED}:" in words
    assert f"- `{arena.rows[0].id}` on `GPU {SHARP}`, against `compiler`: 0.500000 ms" in words
    entry = BoardEntry(json.loads(json.dumps(document)))
    page = entry_page(entry, BoardPage(arena.board, [entry], [arena.board]), {})
    assert page.count(UNVERIFIED) == 1
    assert UNVERIFIED.capitalize() in page
    assert SHARP not in page
    assert "GPU &lt;b onclick=x&gt;&amp;" in page
    assert "0.500000 ms against 1.000000 ms" in page
    without = dict(entry.document["submission"])
    del without["measured"]
    entry = BoardEntry({**entry.document, "submission": without})
    assert "On GPUs" not in entry_page(entry, BoardPage(arena.board, [entry], [arena.board]), {})


def measurement(arena: Arena, folder: Path, times: list[float], count: int = 1) -> Path:
    """A folder as `measure` writes it and run.py completes it, without its codes."""
    sides, kernels = [{"name": "other", "title": "the other", "role": "own"}], []
    sides.append({"name": "answer", "title": "answer.json", "role": "same"})
    for row in arena.rows[:count]:
        answer = json.dumps({"id": row.id, "assignment": row.label})
        write_atomically(folder / row.id / "answer.json", answer)
        kernels.append({
            "key": row.id, "id": row.id, "function": row.kernel, "arch": row.arch,
            "grid": [2, 1, 1], "sides": [sides[0], {**sides[1], "answer": f"{row.id}/answer.json"}],
        })  # fmt: skip
    text = json.dumps({"format": FORMAT, "kernels": kernels})
    (folder / DOCUMENT).write_text(text)
    bits = {"digests": ["a", "a"], "wrong": [], "errors": {}}
    milliseconds = {"answer": times, "other": [2.0] * len(times)}
    lines = [
        {
            "part": "machine", "device": "a GPU", "driver_version": 1,
            "measurement_sha256": hashlib.sha256(text.encode()).hexdigest(),
        },
        *({"part": "bits", "kernel": kernel["key"], "side": each["name"], **bits}
          for kernel in kernels for each in sides),
        *({"part": "times", "kernel": each["key"], "milliseconds": milliseconds}
          for each in kernels),
    ]  # fmt: skip
    (folder / RESULTS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_submit_adds_what_measure_read(
    arena: Arena, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = submitted(arena).write(tmp_path / "submission")
    yaml_file = folder / "submission.yaml"
    yaml_file.write_text("# a comment stays\n" + yaml_file.read_text())
    measured = measurement(arena, tmp_path / "m", [1.0] * 5, count=2)
    place = ["--dataset", arena.board.dataset]
    assert main(["submit", str(folder), "--measured", str(measured), *place]) == 0
    assert f"2 figures, {UNVERIFIED}" in capsys.readouterr().out
    text = yaml_file.read_text()
    assert text.startswith("# a comment stays\n")
    figure, other = yaml.safe_load(text)["measured"]
    assert (figure["id"], other["id"]) == tuple(row.id for row in arena.rows[:2])
    assert (figure["ratio"], figure["milliseconds"], figure["grid"]) == (0.5, 1.0, [2, 1, 1])
    assert (figure["against"], figure["device"]) == ("the other", "a GPU")
    submission, refusals = read_submission(folder)
    assert submission is not None, refusals
    assert submission.measured[0].answer_sha256 == figure_of(arena)["answer_sha256"]

    for arguments, why in (
        (["--measured", str(measured)], "there are measured figures already"),
        (["--measured", str(measured), "--dry-run"], "without --dry-run and --output"),
        (["--measured", str(measured), "--from-run", "run"], "--output and --measured"),
    ):
        assert main(["submit", str(folder), *arguments, *place]) == 2
        assert why in capsys.readouterr().err
    assert yaml_file.read_text() == text


def test_submit_adds_nothing_that_would_be_refused(
    arena: Arena, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = submitted(arena)
    made.lines[0] = {"id": arena.rows[0].id, "assignment": {"%0": "v0"}}
    folder = made.write(tmp_path / "submission")
    before = (folder / "submission.yaml").read_text()
    measured = measurement(arena, tmp_path / "m", [1.0] * 5)
    place = ["--dataset", arena.board.dataset]
    assert main(["submit", str(folder), "--measured", str(measured), *place]) == 2
    assert "measured of an answer to" in capsys.readouterr().err
    (measured / RESULTS).unlink()
    assert main(["submit", str(folder), "--measured", str(measured), *place]) == 2
    assert "run `python run.py` there" in capsys.readouterr().err
    assert (folder / "submission.yaml").read_text() == before
