"""The model study: what it asks, what it reads, its figures, and the document."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.first_candidate import allocator, first_policy, teacher
from benchmarks.model_study import running
from benchmarks.model_study.__main__ import main
from benchmarks.model_study.configurations import (
    BASELINES,
    FURTHER_LIMIT,
    MAIN,
    REFERENCE,
    REFERENCE_TEXT,
    WIDTHS,
    configurations,
)
from benchmarks.model_study.document import render
from benchmarks.model_study.figures import SIZES, against, figures, of_size, passed
from benchmarks.model_study.records import KernelResult, read_runs
from benchmarks.model_study.tables import TABLES
from tests.model.scripted import ScriptedModel, run_episode
from verilocc_bench.allocators import (
    Assistance,
    Request,
)
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import build_parser
from verilocc_bench.cli import main as verilocc_bench
from verilocc_bench.dataset import load_rows
from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts import get_prompt_format
from verilocc_bench.settings.allocator import Decoding
from verilocc_bench.settings.command_line import read_settings
from verilocc_bench.settings.language_model import LanguageModelSettings, LocalModelSettings
from verilocc_bench.verification import IndependentVerifier

DOCUMENT = Path(__file__).resolve().parents[2] / "benchmarks/model_study/template.md"
SMALL = sorted(load_rows("mini").rows, key=lambda row: row.n_virtual_registers)[:2]
MODELS = {
    REFERENCE: "reference",
    REFERENCE_TEXT: "a/text",
    "without-sm_80": "a/folder",
    "smaller": "another/folder",
    "text-short": "a/curve",
    "whole-short": "a/whole",
}
GIVEN = [f"--model={name}={model}" for name, model in MODELS.items() if name != REFERENCE]


@pytest.mark.parametrize("row", SMALL, ids=[row.id for row in SMALL])
def test_the_first_candidate_is_what_a_model_would_say_that_takes_it(row: Any) -> None:
    request = Request(AllocationProblem.from_text(row.normalized))
    options = LanguageModelSettings(decoding=Decoding.CONSTRAINED, backtracks=2_000)
    model = ScriptedModel(choose=lambda _ask, _text, offers: offers[0])
    response = run_episode(get_prompt_format("candidates"), request, options, model)
    assert response.answer is not None
    assert allocator.allocate(request) == response.answer
    assert allocator.assistance is Assistance.CANDIDATES


def test_policies_have_valid_answers_and_take_no_detours() -> None:
    request = Request(AllocationProblem.from_text(SMALL[0].normalized))
    assert len(teacher.policies) > len(first_policy.policies) == 1
    assert not any(policy.detours for policy in teacher.policies)
    for each in (first_policy, teacher):
        answer = each.allocate(request)
        assert IndependentVerifier(request.problem).verify(answer).valid
        assert each.allocate(request) == answer


def test_every_configuration_is_one_that_evaluate_takes() -> None:
    found = configurations(MODELS)
    assert len({(each.folder, each.key) for each in found}) == len(found)
    assert {each.folder for each in found} == {BASELINES, *MODELS}
    kinds, asked = set(), dict[str, set[str]]()
    for each in found:
        arguments = ["evaluate", "--model", each.model, "--split", each.split, *each.arguments]
        parsed = build_parser().parse_args(arguments)
        options = read_settings(parsed, LocalModelSettings)
        if each.folder != BASELINES:
            assert options.prompt_format is not None
            get_prompt_format(options.prompt_format).check(options)
            kinds.add((options.prompt_format, options.decoding))
            assert options.window_registers == each.width
            asked.setdefault(each.folder, set()).add(options.prompt_format)
            few = 3 if each.key == "whole-free" else FURTHER_LIMIT
            assert each.folder in MAIN or each.limit == few
            assert each.title.startswith(f"{each.folder}: ") == (each.folder != REFERENCE)
    assert ("state", Decoding.GUIDED) in kinds
    assert ("window", Decoding.CONSTRAINED) in kinds
    decisions, windows, whole = {"state", "candidates"}, {"window"}, {"whole"}
    formats = (decisions, windows, decisions, decisions, windows, whole)
    assert asked == dict(zip(MODELS, formats, strict=True))


def test_many_samples_are_asked_of_few_functions() -> None:
    sampled = {each.folder: each for each in configurations(MODELS) if "sampled" in each.key}
    assert sampled.keys() == {REFERENCE, REFERENCE_TEXT}
    of_text = sampled[REFERENCE_TEXT]
    options = build_parser().parse_args(["evaluate", "--model", "a/text", *of_text.arguments])
    assert (options.samples, options.k, options.temperature) == (100, (1, 10, 100), 0.8)
    assert of_text.limit == 2


Commands = list[list[str]]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    """What would be run."""
    found: Commands = []

    def note(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        found.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(running.subprocess, "run", note)
    return found


def test_a_run_asks_for_everything_the_dataset_has(
    commands: Commands, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["run", "--dataset", "mini", "--output", str(tmp_path), "--jobs", "3"]
    assert main([*arguments, "--limit", "2", *GIVEN]) == 0
    expected = [each for each in configurations(MODELS) if each.split == "test"]
    assert len(commands) == len(expected)
    for command, each in zip(commands, expected, strict=True):
        assert str(tmp_path / each.folder / each.key) in command
        assert command[command.index("--limit") + 1] == "2"
        assert command[command.index("--jobs") + 1] == "3"
    said = capsys.readouterr().err
    assert said.count("\n") == len(expected)
    assert f"1 of {len(expected)}: baselines/compiler" in said
    commands.clear()
    only = "without-sm_80,state-sampled,compiler"
    assert main([*arguments, "--limit", "99", "--only", only]) == 0
    limits = {command[command.index("--limit") + 1] for command in commands}
    folders = {Path(command[command.index("--output-path") + 1]).name for command in commands}
    assert limits == {"10", "99"}  # of its own, and as asked
    assert folders >= {"state-sampled", "candidates-constrained"}


def test_wrong_commands_are_one_line(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    commands: Commands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = ["run", "--dataset", "mini", "--output", str(tmp_path / "study")]
    assert main([*run, "--only", "nothing"]) == 2
    assert main(["render", "--output", str(tmp_path), "--document", str(DOCUMENT)]) == 2
    assert capsys.readouterr().err.count("\n") == 2
    assert not commands
    with pytest.raises(SystemExit):
        main([*run, "--model", "baselines=x"])
    failed = subprocess.CompletedProcess([], 2)
    monkeypatch.setattr(running.subprocess, "run", lambda *_, **__: failed)
    with pytest.raises(InputError, match=r"compiler: evaluate ended with status 2"):
        running.run("mini", tmp_path / "study", {})


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with the baselines as they are, and the models' runs made of theirs."""
    output = tmp_path_factory.mktemp("study")
    (output / "models.json").write_text(json.dumps(MODELS))
    for key in ("compiler", "linear-scan", "graph-coloring"):
        place = str(output / BASELINES / key)
        arguments = ["evaluate", "--model", key, "--limit", "2", "--output-path", place]
        assert verilocc_bench(arguments) == 0
    for each in configurations(MODELS):
        if each.folder != BASELINES:
            source = "linear-scan" if each.folder in MAIN else "graph-coloring"
            shutil.copytree(output / BASELINES / source, output / each.folder / each.key)
            options = dict(zip(each.arguments[::2], each.arguments[1::2], strict=True))
            style = options["--prompt-format"]
            change(
                output / each.folder / each.key,
                revision=each.folder,
                prompt={"format": style, "version": 2, "hash": style, "few_shot": 0},
                options={"device": "cpu", "dtype": "auto", "batch_size": 16},
            )
    return output


def change(folder: Path, **settings: Any) -> None:
    document = json.loads((folder / "results.json").read_text())
    document["config"] |= settings
    (folder / "results.json").write_text(json.dumps(document))
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    for line in lines:
        line["details"] = {"prompt_tokens": 70, "completion_tokens": 7, "backtracks": 3}
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_figures_are_those_of_evaluate(measured: Path) -> None:
    runs = read_runs(measured)
    asked = [each for each in configurations(MODELS) if each.folder != BASELINES]
    assert len(runs) == 3 + len(asked)
    for run in runs[:3]:
        folder = measured / run.configuration.folder / run.configuration.key
        results = json.loads((folder / "results.json").read_text())["results"]
        for task, kernels in {**run.tasks, "overall": run.kernels}.items():
            check_figures(results[task], kernels, run.seed)


def check_figures(record: Mapping[str, Any], kernels: Any, seed: int) -> None:
    found = figures(kernels)
    assert found.kernels == record["n"]
    assert found.ratio == pytest.approx(record["registers_ratio"])
    for name, value in (
        ("share_better", found.better),
        ("share_equal", found.equal),
        ("share_worse", found.worse),
        ("gap_to_bound", found.gap),
    ):
        assert value == pytest.approx(record[name])
    assert (found.gained, found.lost) == (record["occupancy_gained"], record["occupancy_lost"])
    expected = tuple(record[f"pass@1{end}"] for end in ("", "_low", "_high"))
    assert passed(kernels, 1, seed) == pytest.approx(expected)
    own = {kernel.id: kernel for kernel in kernels}
    for measure, name in (
        ("bank_conflicts", "bank_conflicts"),
        ("identity_copies", "copies_removed"),
    ):
        assert against(kernels, own, measure) == (record[name], record[name])


KERNEL = KernelResult("a", "sm_80/gemm", 299, 10, 3, 20, 25, 18, 8, 7, 4, 100, 0, 77, 0.5)


def test_groups_and_sums() -> None:
    kernels = [replace(KERNEL, virtual_registers=n) for n in (299, 300, 1000, 1001, 9999)]
    assert [len(of_size(kernels, size)) for size in SIZES] == [1, 2, 2]
    assert passed([KERNEL], 10)[0] == 1
    assert passed([KERNEL], 1)[0] == pytest.approx(0.3)
    assert passed([KERNEL], 11) == (None, None, None)
    failed = replace(KERNEL, id="b", registers=None, occupancy=None, bank_conflicts=None)
    other = {"a": replace(KERNEL, bank_conflicts=50), "b": replace(KERNEL, id="b")}
    assert against([KERNEL, failed], other, "bank_conflicts") == (100, 50)
    assert against([failed], other, "bank_conflicts") is None
    found = figures([KERNEL, failed])
    assert (found.kernels, found.ratio, found.better, found.gained) == (2, 0.8, 1.0, 1)
    assert figures([]).ratio is None


def test_the_document_is_filled_between_its_markers(measured: Path, tmp_path: Path) -> None:
    document = tmp_path / "reference-model.md"
    shutil.copy(DOCUMENT, document)
    arguments = ["render", "--output", str(measured), "--document", str(document)]
    assert main(arguments) == 0
    text = document.read_text()
    assert main(arguments) == 0
    assert document.read_text() == text
    assert prose_of(text) == prose_of(DOCUMENT.read_text())
    overall = json.loads((measured / BASELINES / "linear-scan/results.json").read_text())
    record = overall["results"]["overall"]
    line = next(line for line in text.splitlines() if line.startswith("| `linear-scan` |"))
    assert f"| {100 * record['pass@1']:.1f} % |" in line
    assert f"| {record['registers_ratio']:.3f} |" in line
    compiler = block(text, "code")
    assert "| `linear-scan` |" in compiler
    assert "the compiler |" not in compiler
    assert "85–99 %" in block(text, "paper")
    assert "`test_larger`" in block(text, "splits")
    check_models(block(text, "models"))
    widths = [line.split("|")[1].strip() for line in block(text, "widths").strip().splitlines()[2:]]
    assert widths == [
        f"{REFERENCE_TEXT}: `window` of at most {width} new, {decoding}"
        for decoding in ("free", "constrained")
        for width in WIDTHS
    ]
    assert "at most" not in block(text, "overall") + block(text, "paper")
    whole = [line.split("|") for line in block(text, "whole").strip().splitlines()[2:]]
    assert [line[1].strip() for line in whole] == [
        "whole-short: `whole`, free",
        "whole-short: `whole`, constrained",
    ]
    assert {line[6].strip() for line in whole} == {"77"}
    assert "| whole-short: `whole`, free | machine IR as text |" in block(text, "paper")
    assert "whole-short" not in block(text, "overall") + block(text, "models")
    assert "| without-sm_80: `state`, free, room made |" in block(text, "models-conflicts")
    assert "| 77 |" in block(text, "cost")
    assert block(text, "samples").strip() == "Not measured."
    kernels = record["n"]
    constrained = next(x for x in block(text, "dead-ends").splitlines() if "constrained" in x)
    assert [cell.strip() for cell in constrained.split("|")[2:6]] == [
        *(f"{kernels}", "100.0 %", f"{3 * kernels}", "3")
    ]


def test_some_blocks_alone_are_written(measured: Path, tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    shutil.copy(DOCUMENT, document)
    arguments = ["render", "--output", str(measured), "--document", str(document)]
    assert main([*arguments, "--only", "overall,models"]) == 0
    text = document.read_text()
    assert "| `linear-scan` |" in block(text, "overall")
    assert "without-sm_80" in block(text, "models")
    before = DOCUMENT.read_text()
    assert prose_of(text) == prose_of(before)
    for name in TABLES.keys() - {"overall", "models"}:
        assert block(text, name) == block(before, name)
    assert main([*arguments, "--only", "nothing"]) == 2
    assert document.read_text() == text


def test_models_are_compared_on_the_functions_that_all_were_asked_about(
    measured: Path, tmp_path: Path
) -> None:
    output = tmp_path / "study"
    shutil.copytree(measured, output)
    for each in configurations(MODELS):
        if each.folder == "without-sm_80":
            path = output / each.folder / each.key / "results.json"
            document = json.loads(path.read_text())
            document["kernels"] = document["kernels"][:5]
            path.write_text(json.dumps(document))
    lines = TABLES["models"](read_runs(output)).splitlines()[2:]
    counts = {line.split("|")[1].strip(): line.split("|")[2].strip() for line in lines}
    assert counts["`state`, free, room made"] == "5"
    assert counts["without-sm_80: `state`, free, room made"] == "5"
    assert counts["smaller: `state`, free, room made"] == "5"
    assert counts["text-short: `window`, free"] != "5"


def check_models(text: str) -> None:
    """The reference first, then the other one, whose cell of what it has not seen is marked."""
    head, _, *lines = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in text.strip().splitlines()
    )
    titles = [line[0] for line in lines]
    place = titles.index("without-sm_80: `state`, free, room made")
    assert titles[place - 1 : place + 2 : 2] == [
        *("`state`, free, room made", "smaller: `state`, free, room made")
    ]
    assert "text-short: `window`, free" in titles
    marked = [name for name, cell in zip(head, lines[place], strict=True) if "*" in cell]
    assert marked == [name for name in head if name.endswith("sm_80")] != []
    assert not any("*" in cell for cell in lines[place - 1])


def prose_of(text: str) -> str:
    parts = text.split("<!-- begin ")
    return parts[0] + "".join(part.split("<!-- end -->")[1] for part in parts[1:])


def block(text: str, name: str) -> str:
    return text.split(f"<!-- begin {name} -->")[1].split("<!-- end -->", maxsplit=1)[0]


def test_the_document_has_every_table() -> None:
    text = DOCUMENT.read_text()
    trained = ("training", "training-text", "variants", "scaling", "whole-training")
    others = ("asked", *trained)
    for name in (*TABLES, *others):
        assert text.count(f"<!-- begin {name} -->\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("no marker\n", "expected blocks"),
        ("<!-- begin overall -->\n", "expected blocks"),
        ("<!-- begin overall -->\n<!-- begin code -->\n<!-- end -->\n", "expected blocks"),
        ("<!-- begin nothing -->\n<!-- end -->\n", "no block 'nothing'"),
    ],
)
def test_wrong_documents_are_refused(
    measured: Path, tmp_path: Path, text: str, message: str
) -> None:
    document = tmp_path / "document.md"
    document.write_text(text)
    with pytest.raises(InputError, match=message):
        render(measured, document)
    assert document.read_text() == text


def test_kinds_of_failures_are_told_apart(measured: Path, tmp_path: Path) -> None:
    output = tmp_path / "study"
    shutil.copytree(measured, output)
    folder = output / REFERENCE_TEXT / "window-constrained"
    lines = [json.loads(line) for line in (folder / "samples.jsonl").read_text().splitlines()]
    stuck, unfit = lines[:2]
    for line, message in ((stuck, "dead end: %1 fits nowhere"), (unfit, "it does not fit")):
        line |= {"failure": "no_answer", "message": message}
    (folder / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    document = json.loads((folder / "results.json").read_text())
    document["results"]["overall"] |= {
        "failures": {"no_answer": 2, "unparsable": 1},
        "unparsable": {"not_json": 1},
    }
    (folder / "results.json").write_text(json.dumps(document))
    (run,) = (
        r
        for r in read_runs(output)
        if r.configuration.key == "window-constrained" and r.configuration.folder == REFERENCE_TEXT
    )
    assert run.failures == {"dead_end": 1, "no_answer": 1, "unparsable": 1}
    head, *_ = (table := TABLES["failures"]([run])).splitlines()
    assert "| dead end | no answer | unparsable |" in head
    assert table.endswith(f"| – | not json 1 | {len(lines)} | 1 | 1 | 1 |")


def lacking(document: dict[str, Any]) -> None:
    document["results"]["overall"]["infrastructure_failures"] = 1


def of_another_dataset(document: dict[str, Any]) -> None:
    document["dataset"]["hash"] = "another"


def of_another_model(document: dict[str, Any]) -> None:
    document["config"]["revision"] = "another"


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lacking, "samples are missing"),
        (of_another_dataset, "of the split 'test' are not all of one version"),
        (of_another_model, "of the model 'reference' are not all of one version"),
    ],
)
def test_runs_that_do_not_belong_together_are_refused(
    measured: Path, tmp_path: Path, spoil: Callable[[dict[str, Any]], None], message: str
) -> None:
    output = tmp_path / "study"
    shutil.copytree(measured, output)
    path = output / REFERENCE / "state-free" / "results.json"
    document = json.loads(path.read_text())
    spoil(document)
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message):
        read_runs(output)
