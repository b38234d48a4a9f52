"""From a run of evaluate to a pull request on the Hub, its review, and what is merged."""

from __future__ import annotations

import gzip
import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from leaderboard import drafting
from leaderboard.drafting import command_of, draft, name_of
from leaderboard.packing import path_of
from leaderboard.revalidate import COMMENT, REVALIDATION
from leaderboard.revalidate import main as revalidate_main
from tests.hub.clients import python
from tests.hub.look import ask, edit, look
from tests.hub.server import LocalHub
from tests.leaderboard.submissions import Arena, submitted
from verilocc_bench.cli import build_parser, main
from verilocc_bench.cli.evaluate_command import _configurations

pytestmark = pytest.mark.slow

REPOSITORY = "verilocc/submissions"
FILLED = {
    "name": "Colored graphs",
    "authors": ["Ada Lovelace"],
    "contact": "ada@example.org",
    "training_data": "none",
    "hardware": "a laptop",
    "licence": "apache-2.0",
    "command": "verilocc-bench evaluate --model graph-coloring",
}


@pytest.fixture(scope="module")
def run(arena_folder: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on one architecture of the small board."""
    folder = tmp_path_factory.mktemp("run")
    arguments = ["--model", "graph-coloring", "--arch", "gfx90a", "--dataset", str(arena_folder[0])]
    assert main(["evaluate", *arguments, "--output-path", str(folder)]) == 0
    (results,) = folder.rglob("results.json")
    return results.parent


@pytest.fixture(autouse=True)
def _small_board(arena: Arena, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drafting, "boards", lambda: (arena.board,))


def begun(run: Path, folder: Path) -> Path:
    """A submission of a run, with what people must add."""
    draft(run, folder)
    path = folder / "submission.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **FILLED}))
    return folder


def test_what_a_run_knows_is_filled_in(
    arena: Arena, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "new" / "submission"
    assert main(["submit", str(folder), "--from-run", str(run)]) == 0
    said = capsys.readouterr().out
    assert "to be filled in: authors, contact, training_data, hardware" in said
    found = yaml.safe_load((folder / "submission.yaml").read_text())
    results = json.loads((run / "results.json").read_text())
    assert found["dataset_hash"] == results["dataset"]["hash"]
    assert found["architectures"] == ["gfx90a"]
    assert found["claims"].keys() == results["results"].keys()
    for task, claims in found["claims"].items():
        assert claims["pass@1"] == results["results"][task]["pass@1"]
    assert found["name"] == "graph-coloring"
    assert found["date"] == results["date"][:10]
    assert found["command"] == (
        f"verilocc-bench evaluate --model graph-coloring --dataset {arena.folder} --arch gfx90a"
    )
    # As it is, it says what is missing.
    assert main(["submit", str(folder), "--dry-run"]) == 2
    complaint = capsys.readouterr().err
    for name in ("authors", "contact", "training_data", "hardware"):
        assert f"{name}: " in complaint
    assert main(["submit", str(folder), "--from-run", str(run)]) == 2
    assert "exists already" in capsys.readouterr().err


@pytest.mark.parametrize(
    "flags",
    [
        ["--model", "best", "--objective", "bank-conflicts", "--effort", "2", "--arch", "gfx942"],
        ["--model", "command:./x --fast", "--samples", "4", "--k", "1,4", "--seed", "7"],
        ["--model", "reference-llm", "--prompt-format", "reading", "--decoding", "free"],
        [
            *("--model", "http://localhost:8/v1", "--model-name", "toy", "--temperature", "0.5"),
            *("--prompt-format", "whole"),
        ],
        ["--model", "spill-everywhere", "--track", "split"],
        ["--model", "linear-scan", "--limit", "5"],
    ],
)
def test_the_command_of_a_run_makes_it_again(flags: list[str]) -> None:
    """What it is parsed to is what the run was configured as."""

    def configured(words: list[str]) -> Any:
        (found,) = _configurations(build_parser().parse_args(words))
        return found

    configuration = configured(["evaluate", *flags])
    settings = configuration.settings
    prompt = None
    if hasattr(settings, "prompt_format"):
        prompt = {"format": settings.prompt_format or "whole", "few_shot": settings.few_shot}
    document = {
        "config": {
            "model": configuration.model,
            "track": configuration.track,
            "arch": configuration.archs,
            "limit": configuration.limit,
            "samples": configuration.samples,
            "k": configuration.ks,
            "decoding": settings.decoding,
            "options": settings.described(),
            "prompt": prompt,
        },
        "dataset": {"name": "mini"},
        "seed": configuration.seed,
    }
    again = configured(shlex.split(command_of(document))[1:])
    assert again.settings.described() == settings.described()
    assert again.settings.decoding == settings.decoding
    for name in ("model", "track", "archs", "limit", "samples", "ks", "seed", "dataset"):
        assert getattr(again, name) == getattr(configuration, name), name


def test_a_dry_run_holds_claims_against_the_answers(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = begun(run, tmp_path / "submission")
    assert main(["submit", str(folder), "--dry-run"]) == 0
    said = capsys.readouterr().out
    path = folder / "submission.yaml"
    document = yaml.safe_load(path.read_text())
    count = sum(map(len, document["claims"].values()))
    assert f"{count} of {count} claims are what was found" in said
    assert "nothing was sent" in said
    found = document["claims"]["gfx90a/mha"]["registers_ratio"]
    document["claims"]["gfx90a/mha"]["registers_ratio"] = 0.5
    path.write_text(yaml.safe_dump(document))
    assert main(["submit", str(folder), "--dry-run"]) == 1
    said = capsys.readouterr().out
    assert f"claimed of gfx90a/mha, registers_ratio: 0.5; found: {found}" in said
    assert f"{count - 1} of {count} claims are what was found" in said


def test_runs_that_are_no_submission(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = json.loads((run / "results.json").read_text())
    changes: list[tuple[Any, str]] = [
        ({"dataset": {**document["dataset"], "hash": "0" * 64}}, "no board's dataset"),
        ({"config": {**document["config"], "limit": 3}}, "part of the board"),
        ({"config": {**document["config"], "budget": "bound"}}, "another budget"),
    ]
    for number, (change, expected) in enumerate(changes):
        other = tmp_path / f"run-{number}"
        other.mkdir()
        (other / "answers.jsonl").write_text("{}")
        (other / "results.json").write_text(json.dumps(document | change))
        folder = tmp_path / f"submission-{number}"
        assert main(["submit", str(folder), "--from-run", str(other)]) == 2
        assert expected in capsys.readouterr().err
        assert not folder.exists()


def test_runs_that_are_not_done(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a server failed to say is no wrong answer: it is to be asked again."""
    document = json.loads((run / "results.json").read_text())
    other = tmp_path / "run"
    other.mkdir()
    lines = (run / "answers.jsonl").read_text().splitlines(keepends=True)
    (other / "answers.jsonl").write_text("".join(lines[:-2]))
    (other / "results.json").write_text(json.dumps(document))
    arguments = ["submit", str(tmp_path / "submission"), "--from-run", str(other)]
    assert main(arguments) == 2
    assert f"{len(lines) - 2} lines for {len(lines)} samples" in capsys.readouterr().err
    document["results"]["overall"]["infrastructure_failures"] = 1
    (other / "results.json").write_text(json.dumps(document))
    assert main(arguments) == 2
    assert "1 samples are missing for infrastructure failures" in capsys.readouterr().err
    assert not (tmp_path / "submission").exists()


def test_folders_that_cannot_be(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    inside = str(tmp_path / "file" / "x")
    assert main(["submit", inside, "--from-run", str(run)]) == 2
    folder = begun(run, tmp_path / "submission")
    assert main(["submit", str(folder), "--output", inside]) == 2
    assert revalidate_main([str(folder), "--output", inside]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_to_a_folder(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = begun(run, tmp_path / "submission")
    before = sorted(path.name for path in folder.iterdir())
    output = tmp_path / "out"
    assert main(["submit", str(folder), "--output", str(output)]) == 0
    written = output / "submissions" / "small" / "colored-graphs"
    names = sorted(path.name for path in written.iterdir())
    assert names == ["answers.jsonl.gz", "submission.yaml"]
    packed = (written / "answers.jsonl.gz").read_bytes()
    assert gzip.decompress(packed) == (folder / "answers.jsonl").read_bytes()
    assert sorted(path.name for path in folder.iterdir()) == before
    assert main(["submit", str(folder), "--output", str(output)]) == 2
    assert "of this name already" in capsys.readouterr().err
    # The same bytes again, and it can be submitted as it was written.
    assert main(["submit", str(written), "--output", str(tmp_path / "again")]) == 0
    again = tmp_path / "again" / "submissions" / "small" / "colored-graphs"
    assert (again / "answers.jsonl.gz").read_bytes() == packed


def test_names_that_look_alike_have_one_place() -> None:
    names = ("My model", "my-model", "MY_MODEL", "my  model.")
    assert {path_of(name, "mini") for name in names} == {"submissions/mini/my-model"}
    assert path_of("+", "mini") == "submissions/mini/unnamed"


COMMANDS = """
import contextlib, json, sys
from concurrent.futures import ThreadPoolExecutor
from leaderboard import boards, drafting, examining, render, revalidate, review
from verilocc_bench.cli import main
review.EXECUTED = 1  # executing an answer takes seconds
board, threads, commands = json.loads(sys.argv[1])
if threads:
    revalidate.process_pool = ThreadPoolExecutor
for module in (boards, drafting, examining, render):
    module.boards = lambda: (boards.Board(**board),)
for program, *arguments in commands:
    with contextlib.redirect_stderr(sys.stdout):
        run = {"submit": main, "review": review.main, "render": render.main}[program]
        status = run([program, *arguments] if program == "submit" else arguments)
    print(end=f"\\x1e{status}\\x1d")
"""


def told(
    arena: Arena, hub: LocalHub, home: Path, *commands: list[str], threads: bool = True, **more: Any
) -> list[tuple[int, str]]:
    """The status of each command, and what it says: all in one process on the small board.

    With `threads`, these judge; a process for each revalidation takes longer than what it judges.
    """
    work = json.dumps([asdict(arena.board), threads, commands])
    done = python(hub, home, "-c", COMMANDS, work, **more)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "Traceback" not in done.stdout + done.stderr
    parts = (part.rsplit("\x1e", 1) for part in done.stdout.split("\x1d")[:-1])
    return [(int(status), said) for said, status in parts]


def create(hub: LocalHub) -> None:
    body = {"name": "submissions", "organization": "verilocc", "type": "dataset"}
    ask(hub, "/api/repos/create", json.dumps(body).encode())


def test_from_a_run_to_the_hub(arena: Arena, run: Path, hub: LocalHub, tmp_path: Path) -> None:
    create(hub)
    folder, home = begun(run, tmp_path / "submission"), tmp_path / "home"
    ((status, said),) = told(arena, hub, home, ["submit", str(folder)])
    assert status == 0, said
    assert f"pull request: {hub.address}/datasets/{REPOSITORY}/discussions/1" in said
    assert not look(hub, REPOSITORY).files
    added = look(hub, REPOSITORY, "refs/pr/1").files
    there = "submissions/small/colored-graphs"
    assert sorted(added) == [f"{there}/answers.jsonl.gz", f"{there}/submission.yaml"]

    output, site = tmp_path / "review", tmp_path / "site"
    place = ["--dataset", str(arena.folder)]
    review = ["review", "1", *place, "--output", str(output), "--comment", "--merge"]
    render = ["render", str(output), "--output", str(site), *place]
    commands = review, render, ["submit", str(folder)]
    reviewed, rendered, again = told(arena, hub, home, *commands, threads=False)
    assert reviewed[0] == 0
    assert reviewed[1].startswith("## Accepted")
    document = json.loads((output / REVALIDATION).read_text())
    assert document["accepted"]
    assert document["source"]["number"] == 1
    assert len(document["source"]["commit"]) == 40
    assert document["source"]["author"] == "owner"
    results = json.loads((run / "results.json").read_text())
    for task, record in document["results"].items():
        assert record["pass@1"] == results["results"][task]["pass@1"]
        assert record["registers_ratio"] == results["results"][task]["registers_ratio"]
    discussion = json.loads(ask(hub, f"/api/datasets/{REPOSITORY}/discussions/1"))
    comments = [event for event in discussion["events"] if event["type"] == "comment"]
    assert comments[-1]["data"]["latest"]["raw"] == (output / COMMENT).read_text()
    assert discussion["status"] == "merged"
    assert sorted(look(hub, REPOSITORY).files) == sorted(added)

    assert rendered[0] == 0, rendered[1]
    page = (site / "index.html").read_text()
    entry = (site / "entries" / "small" / "colored-graphs.html").read_text()
    assert "Colored graphs" in page
    share = document["results"]["overall"]["pass@1"]
    assert f"{100 * share:.1f} %" in entry
    assert entry.count("<img") == len(document["examples"]) == 2
    for example in document["examples"]:
        assert (site / "entries" / "small" / "colored-graphs" / f"{example['id']}.svg").is_file()

    # Its name is taken now.
    assert again[0] == 2
    assert "there is a submission of this name already" in again[1]


def test_pull_requests_that_were_opened_before_others_were_merged(
    arena: Arena, run: Path, hub: LocalHub, tmp_path: Path
) -> None:
    create(hub)
    submissions = []
    for number, name in enumerate(("First", "Second", "First"), 1):
        folder = begun(run, tmp_path / f"submission-{number}")
        path = folder / "submission.yaml"
        path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), "name": name}))
        submissions.append(["submit", str(folder)])
    place = ["--dataset", str(arena.folder), "--output"]
    reviews = [["review", n, *place, str(tmp_path / f"review-{n}"), "--merge"] for n in "123"]
    found = told(arena, hub, tmp_path / "home", *submissions, *reviews)
    assert [status for status, _ in found] == [0, 0, 0, 0, 0, 1]
    for (_, said), word in zip(found[3:], ("Accepted", "Accepted", "Refused"), strict=True):
        assert said.startswith(f"## {word}")
    assert "2 files are there already, since it was opened" in found[-1][1]
    folders = {path.split("/")[2] for path in look(hub, REPOSITORY).files}
    assert folders == {"first", "second"}


def test_pull_requests_that_are_more_than_a_submission(
    arena: Arena, run: Path, hub: LocalHub, tmp_path: Path
) -> None:
    create(hub)
    edit(hub, REPOSITORY, {"README.md": "ours"})
    folder, home = begun(run, tmp_path / "submission"), tmp_path / "home"
    more = {
        "README.md": "1 files that are there are changed",
        "submissions/small/x/../../../evil.py": "not of the form",
        "evil.py": "not of the form",
        "submissions/small/other/answers.jsonl": "expected one submission",
    }
    told(arena, hub, home, *([["submit", str(folder)]] * len(more)))
    reviews = []
    for number, name in enumerate(more, 1):
        edit(hub, REPOSITORY, {name: "x"}, f"refs/pr/{number}")
        place = ["--dataset", str(arena.folder), "--output", str(tmp_path / f"out-{number}")]
        reviews.append(["review", str(number), *place, "--comment", "--merge"])
    found = told(arena, hub, home, *reviews)
    for number, ((status, said), expected) in enumerate(zip(found, more.values(), strict=True), 1):
        assert (status, said[:10]) == (1, "## Refused")
        assert expected in said
        written = sorted(path.name for path in (tmp_path / f"out-{number}").iterdir())
        assert written == [COMMENT, REVALIDATION]
        discussion = json.loads(ask(hub, f"/api/datasets/{REPOSITORY}/discussions/{number}"))
        assert discussion["status"] == "open"
    assert sorted(look(hub, REPOSITORY).files) == ["README.md"]


def test_what_the_hub_refuses_is_one_line(
    arena: Arena, run: Path, hub: LocalHub, tmp_path: Path
) -> None:
    folder, home = begun(run, tmp_path / "submission"), tmp_path / "home"
    for token, expected in ((None, "no token"), ("hf_owner", "404|not")):
        ((status, said),) = told(arena, hub, home, ["submit", str(folder)], token=token)
        assert status == 2
        assert said.count("\n") <= 3
        assert expected.split("|")[0] in said or expected.split("|")[-1] in said


def test_bad_submissions_are_not_sent(
    arena: Arena, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = submitted(arena)
    found.lines.pop()
    folder = found.write(tmp_path / "submission")
    assert main(["submit", str(folder), "--output", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "would be refused: answers: 1 of 6 kernels have no answer" in said
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("best", "best"),
        ("python:package.module:allocator", "allocator"),
        ("command:./folder/program", "program"),
        ("owner/model", "model"),
        ("python:module:<lambda>", ""),
    ],
)
def test_the_name_is_that_of_the_model_or_its_last_part(label: str, name: str) -> None:
    assert name_of(label) == name
