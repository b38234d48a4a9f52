"""The commands from end to end, on the embedded dataset."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from tests.command_line import CommandLine, answered, without_times
from verilocc_bench.cli.terminal import shows_colour
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation import TableStyle, results_tables
from verilocc_bench.ir import instance_id
from verilocc_bench.targets import PUBLISHED

ROWS = load_rows("mini").rows
ROW = min(ROWS, key=lambda row: row.n_instructions)
TASKS = 2 * len(PUBLISHED)


@pytest.mark.slow
def test_the_compiler_is_valid_on_all_of_mini(run: CommandLine) -> None:
    document = run.json("evaluate", "--model", "compiler", "--dataset", "mini")
    assert document.keys() == {
        *("results", "groups", "kernels", "config", "versions", "dataset"),
        *("seed", "git_revision", "timing", "date"),
    }
    tasks = {f"{arch}/{family}" for arch in PUBLISHED for family in ("gemm", "mha")}
    assert document["results"].keys() == tasks | {"overall"}
    for record in document["results"].values():
        assert record["pass@1"] == record["pass@1_high"] == 1.0
        assert record["registers_ratio"] == 1.0
        assert record["share_equal"] == 1.0
    assert document["results"]["overall"]["n"] == len(ROWS)


@pytest.mark.slow
def test_results_do_not_depend_on_jobs(tmp_path: Path, run: CommandLine) -> None:
    documents, samples = [], []
    for jobs in ("1", "2"):
        folder = tmp_path / jobs
        arguments = ["evaluate", "--model", "graph-coloring", "--limit", "1", "--jobs", jobs]
        run(*arguments, "--output-path", folder)
        documents.append(without_times(json.loads((folder / "results.json").read_text())))
        lines = (folder / "samples.jsonl").read_text().splitlines()
        samples.append([without_times(json.loads(line)) for line in lines])
    assert documents[0] == documents[1]
    assert samples[0] == samples[1]
    assert len(samples[0]) == TASKS


@pytest.mark.slow
def test_allocate_verify_and_predictions(tmp_path: Path, run: CommandLine) -> None:
    path = tmp_path / "answer.json"
    told = run("allocate", "--model", "linear-scan", ROW.id, "-o", path).err
    said = run("verify", ROW.id, path).out
    assert said.startswith("valid: ")
    assert told == f"{said}wrote {path}\n"
    answer = json.loads(path.read_text())
    swapped = {**answer["assignment"], "%0": "v200"}
    path.write_text(
        "\n".join(
            json.dumps({"id": ROW.id, "assignment": a}) for a in (swapped, answer["assignment"])
        )
    )
    arguments = ["evaluate", "--model", f"predictions:{path}", "--samples", "2", "--k", "1,2"]
    arguments += ["--arch", ROW.arch, "--family", ROW.family]
    overall = run.json(*arguments)["results"]["overall"]
    count = sum((row.arch, row.family) == (ROW.arch, ROW.family) for row in ROWS)
    assert overall["pass@1"] == pytest.approx(0.5 / count)
    assert overall["pass@2"] == pytest.approx(1 / count)
    assert overall["failures"] == {"invalid": 1, "no_answer": 2 * (count - 1)}


def test_instances_as_files(tmp_path: Path, run: CommandLine) -> None:
    text = tmp_path / "function.txt"
    text.write_text(ROW.normalized)
    row = tmp_path / "row.json"
    row.write_text(json.dumps({"normalized": ROW.normalized, "assignment": ROW.assignment}))
    answer = answered(tmp_path / "answer.json", ROW.label)
    for instance in (text, row):
        assert run.json("verify", instance, answer)["id"] == ROW.id == instance_id(ROW.normalized)


def test_the_split_track_is_evaluated_without_labels(run: CommandLine, tmp_path: Path) -> None:
    chosen = ("--track", "split", "--limit", "1", "--output-path", tmp_path)
    out = run("evaluate", "--model", "compiler", *chosen).out
    notes = [line for line in out.splitlines() if "no_answer" in line]
    assert len(notes) == TASKS
    assert notes[0].startswith("compiler on gfx90a/gemm: 1 × no_answer: ")
    overall = json.loads((tmp_path / "results.json").read_text())["results"]["overall"]
    assert overall["failures"] == {"no_answer": TASKS}
    assert overall["registers_ratio"] is None


def test_a_table_of_several_models(run: CommandLine) -> None:
    models = ["--model", "compiler", "--model", "linear-scan"]
    lines = run("evaluate", *models, "--limit", "1").out.splitlines()
    assert len(lines) == 4 + 2 * (TASKS + 1) + 2  # headings, rules, and what is not shown
    assert "sm_80" in lines[-6]
    assert set(lines[-5]) == {"-", " "}
    assert lines[-2].startswith("not shown: ")


def test_columns_are_chosen(monkeypatch: pytest.MonkeyPatch, run: CommandLine) -> None:
    arguments = ["evaluate", "--model", "compiler", "--limit", "1", "--arch", "gfx942"]
    monkeypatch.setenv("COLUMNS", "60")
    narrow = run(*arguments).out
    assert max(map(len, narrow.splitlines())) <= 60
    assert "100.0 % (20.7–100)" in narrow
    wide = run(*arguments, "--wide").out.splitlines()
    assert "occupancy" in wide[0]
    assert "seconds" in wide[1]
    chosen = run(*arguments, "--columns", "seconds,pass@1,bank conflicts").out.splitlines()
    assert chosen[0].split() == ["valid", "bank"]
    assert chosen[1].split()[:4] == ["task", "allocator", "seconds", "(95"]
    several = run(*arguments, "--samples=8", "--k=8", "--columns", "valid,pass@8").out.splitlines()
    assert several[0].split() == ["pass@1"]
    assert several[1].split()[-1] == "pass@8"
    # Before anything is asked or read.
    run.refuses([*arguments, "--columns", "second", "--dataset", "no"], "did you mean 'seconds'")


def test_wrong_answers_are_summed_up_by_their_first_finding(
    tmp_path: Path, run: CommandLine
) -> None:
    arguments = ["evaluate", "--model", "python:tests.evaluation.hostile_allocators:two_faults"]
    arguments += ["--limit", "2", "--family", "gemm", "--output-path", tmp_path / "run"]
    captured = run(*arguments)
    notes = " ".join(captured.out.split())
    assert "gfx90a/gemm: 2 × invalid: 2 × first finding overlap (as on ff6a8c95c1702273)" in notes
    assert "sm_80/gemm: 2 × invalid: 2 × first finding unknown_physical_register" in notes
    (command,) = (line for line in captured.err.splitlines() if line.startswith("see one: "))
    assert "ff6a8c95c1702273" in run(*command.removeprefix("see one: verilocc-bench ").split()).out


@pytest.mark.parametrize("terminal", [True, False])
def test_colours_are_for_terminals(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    class Stream(io.StringIO):
        def isatty(self) -> bool:
            return terminal

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert shows_colour(Stream()) is terminal
    monkeypatch.setenv("NO_COLOR", "1")
    assert not shows_colour(Stream())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not shows_colour(Stream())


def test_colours_change_nothing_but_colours(run: CommandLine) -> None:
    document = run.json("evaluate", "--model", "compiler", "--limit", "1")
    coloured = results_tables([document], TableStyle(colour=True))
    assert "\x1b[1;32m" in coloured  # overall, all of them valid
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == results_tables([document])


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_show_draws_a_picture(run: CommandLine, tmp_path: Path, suffix: str) -> None:
    path, again = (tmp_path / f"{name}{suffix}" for name in "xy")
    for each in (path, again):
        run("show", ROW.id, "-o", each)
    assert len(path.read_bytes()) > 10_000
    assert path.read_bytes() == again.read_bytes()


@pytest.mark.parametrize("what", ["models", "datasets", "sweeps"])
def test_list(what: str, run: CommandLine) -> None:
    assert run.json("list", what)
    assert "mini" in run("list", what).out or what == "models"


def test_verify_says_what_its_figures_count(tmp_path: Path, run: CommandLine) -> None:
    text = (
        "verilocc-bench 1\ntarget gfx942\nregisters v:2 a:0 s:8 vcc:2=vcc_lo,vcc_hi\n"
        "class V 1 v\nbb0\n%0=V_MOV_B32\n%1=V_MOV_B32\nS_USE %0,%1\nS_ENDPGM\n"
    )
    problem, plain, edited = (tmp_path / name for name in ("f.txt", "plain.json", "edited.json"))
    problem.write_text(text)
    answer = {"id": instance_id(text), "assignment": {"%0": "v0", "%1": "v1"}}
    plain.write_text(json.dumps(answer))
    assert "valid: 2 vector registers (v 2, " in (out := run("verify", problem, plain).out)
    assert "; it needs at least 2 (`bound` may prove more)\n" in out
    again = {"at": [0, 2], "rematerialize": ["%9", [0, 0]]}
    edits = {"new": {"%9": "V"}, "insert": [again], "replace": [[0, 2, 0, "%9"]]}
    answer["assignment"]["%9"] = "v0"
    answer["edits"] = edits
    edited.write_text(json.dumps(answer))
    assert "valid with edits: 2 vector registers" in (out := run("verify", problem, edited).out)
    needs = "; without edits it needs at least 2 (`bound` may prove more)\n"
    assert needs in out
