"""Revalidated results in the Hub's forms: its own client reads them back."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from huggingface_hub import parse_eval_result_entries

from leaderboard import hub_results as module
from leaderboard.document import document_text
from leaderboard.hub_results import main
from tests.leaderboard.submissions import Arena, check, submitted

pytestmark = pytest.mark.slow

MODEL = "someone/model"


@pytest.fixture(scope="module")
def documents() -> list[str]:
    """The entries, once a test has made them."""
    return []


@pytest.fixture
def entries(
    arena: Arena, documents: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setattr(module, "boards", lambda: (arena.board,))
    on_the_hub = {"a/b": arena.rows, "a/c": arena.rows[1:]}
    monkeypatch.setattr(
        "verilocc_bench.evaluation.hub_results.read_hub", lambda name, *_: on_the_hub[name]
    )
    folder = tmp_path / "entries"
    folder.mkdir()
    links = {"model": f"https://huggingface.co/{MODEL}"}
    if not documents:
        kinds = ({"links": links}, {"links": links, "decoding": "constrained"}, {})
        for number, more in enumerate(kinds):
            found = submitted(arena, **({"name": f"Number {number}"} | more))
            document = check(found.write(tmp_path / str(number)), tmp_path / f"out-{number}")
            assert document["accepted"]
            documents.append(document_text(document))
    for number, text in enumerate(documents):
        (folder / f"{number}.json").write_text(text)
    return folder


def test_results_of_a_model(entries: Path, tmp_path: Path) -> None:
    output = tmp_path / ".eval_results" / "verilocc-bench.yaml"
    arguments = [str(entries), "--board", "small", "--dataset-id", "a/b", "--revision", "c" * 40]
    arguments += ["--entry", "Number 0", "--entry", "Number 1"]
    page = ["--model", MODEL, "--page", "https://example.org/board"]
    assert main([*arguments, *page, "--output", str(output)]) == 0
    found = parse_eval_result_entries(yaml.safe_load(output.read_text()))
    assert len({entry.task_id for entry in found}) == len(found) == 14
    for entry in found:
        assert (entry.dataset_id, entry.dataset_revision) == ("a/b", "c" * 40)
        assert entry.source_url == "https://example.org/board"
        assert entry.value == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["--model", "no/body"],
            "no entry of the board 'small' links https://huggingface.co/no/body",
        ),
        (["--model", MODEL], "several entries link to"),
        (["--model", MODEL, "--entry", "Number 0"], "expected the dataset's id on the Hub"),
        (["--model", MODEL, "--entry", "Number 0", "--dataset-id", "a/c"], "and not of a/c (hash"),
        (["--model", MODEL, "--board", "other"], "no entry of the board 'other'"),
    ],
)
def test_what_cannot_be_written(
    arguments: list[str], expected: str, entries: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(entries), "--board", "small", *arguments]) == 2
    assert expected in capsys.readouterr().err


def test_strangers_cannot_give_a_model_results(
    entries: Path, arena: Arena, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Anybody may link to a model: whose results are its own, people say."""
    links = {"model": f"https://huggingface.co/{MODEL}/"}
    fields = {"name": "Better", "authors": ["Somebody"], "links": links, "assistance": "state"}
    document = check(submitted(arena, **fields).write(tmp_path / "s"), tmp_path / "out")
    (entries / "stranger.json").write_text(document_text(document))
    arguments = [str(entries), "--board", "small", "--dataset-id", "a/b", "--model", MODEL]
    assert main(arguments) == 2
    assert "several entries" in (said := capsys.readouterr().err)
    assert "'Better' of Somebody" in said
    assert main([*arguments, "--entry", "Better"]) == 0
    assert "state_free" in capsys.readouterr().out


def test_no_entries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "none"), "--model", MODEL]) == 2
    assert "expected a folder" in capsys.readouterr().err
    assert main([str(tmp_path), "--model", MODEL]) == 2
    assert "no entry of the board 'regalloc'" in capsys.readouterr().err
