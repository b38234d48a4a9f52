"""Whatever an allocator in Python does, it is counted, and nothing else is harmed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from tests.evaluation import hostile_allocators
from verilocc_bench.allocators import FailureKind, LabelUse, Response
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluation.asking import settled_samples
from verilocc_bench.evaluation.models.local_sources import sources_fingerprint
from verilocc_bench.evaluation.prepared import PreparedRow
from verilocc_bench.evaluation.records import RowResult, Sample
from verilocc_bench.evaluation.summary import summarise
from verilocc_bench.settings.allocator import AllocatorSettings

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
MODULE = f"python:{hostile_allocators.__name__}"
ROW = load_rows("mini").rows[0]
ONE = ["--arch", "gfx942", "--family", "gemm", "--limit", "1"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ends_when_read", "unparsable"),
        ("odd_exception", "crashed"),
        ("generator_exit", "crashed"),
        ("unprintable", "crashed"),
        ("odd_kind", "crashed"),
        ("blames_the_machine", "crashed"),
        ("blames_the_machine_too", "crashed"),
        ("broken", "crashed"),
        ("ends", "crashed"),
        ("junk", "unparsable"),
        ("spoils_its_problem", "invalid"),
    ],
)
def test_it_is_counted(name: str, kind: str, run: CommandLine) -> None:
    overall = run.json("evaluate", "--model", f"{MODULE}:{name}", *ONE)["results"]["overall"]
    assert overall["failures"] == {kind: 1}
    assert overall["infrastructure_failures"] == 0
    assert (overall["pass@1"], overall["registers_ratio"]) == (0.0, None)


def test_a_problem_that_is_spoilt_is_lent_to_nobody_else(run: CommandLine) -> None:
    asked = ("evaluate", "--model", f"{MODULE}:spoils_its_problem", "--samples", "2", *ONE)
    assert run.json(*asked)["results"]["overall"]["failures"] == {"invalid": 2}


def test_who_cannot_be_asked_is_bad_input(run: CommandLine) -> None:
    run.refuses(["evaluate", "--model", f"{MODULE}:CannotBeAsked", *ONE], "ValueError: who knows")


def test_an_allocator_that_ends_the_program_is_told(run: CommandLine) -> None:
    printed = run("allocate", "--model", f"{MODULE}:ends", ROW.id, status=1)
    assert printed.out == ""
    assert "crashed: SystemExit: 7" in printed.err


def test_results_go_where_they_were_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    run("evaluate", "--model", f"{MODULE}:moves_away", *ONE, "--output-path", "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"ledger.jsonl", "results.json", "samples.jsonl", "answers.jsonl"}


def test_standard_output_is_for_results() -> None:
    command = [sys.executable, "-m", "verilocc_bench", "evaluate", "--json", *ONE, "--model"]
    command.append(f"{MODULE}:speaks_through_a_process")
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert json.loads(found.stdout)["results"]["overall"]["pass@1"] == 1.0
    assert "hello" in found.stderr


@pytest.mark.parametrize("redirection", [">&-", "> /dev/full"])
def test_output_that_cannot_be_written_is_no_traceback(redirection: str, tmp_path: Path) -> None:
    command = f"{sys.executable} -m verilocc_bench evaluate --model linear-scan {' '.join(ONE)}"
    shell = ["sh", "-c", f"{command} {redirection}"]
    found = subprocess.run(shell, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "Traceback" not in found.stderr
    assert "Exception ignored" not in found.stderr
    assert found.returncode == (2 if "full" in redirection else 0)


def test_a_change_in_what_a_module_imports_is_another_revision(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    main_file, inner = tmp_path / "mine.py", package / "inner.py"
    main_file.write_text("import helper\nfrom package.inner import f\nimport json\n")
    (tmp_path / "helper.py").write_text("x = 1\n")
    (tmp_path / "other.py").write_text("x = 1\n")
    (package / "__init__.py").write_text("")
    inner.write_text("from . import more\n")

    def revision() -> str:
        return sources_fingerprint("mine", main_file)

    before = revision()
    (tmp_path / "other.py").write_text("x = 2\n")
    assert revision() == before
    (tmp_path / "helper.py").write_text("import other\n")
    with_helper = revision()
    assert with_helper != before
    (tmp_path / "other.py").write_text("x = 3\n")
    assert revision() != with_helper
    of_package = sources_fingerprint("package", package / "__init__.py")
    assert of_package == sources_fingerprint("package.inner", inner)
    (package / "more.py").write_text("")
    assert of_package != sources_fingerprint("package", package / "__init__.py")


def test_two_models_do_not_share_a_folder(tmp_path: Path, run: CommandLine) -> None:
    arguments = ["evaluate", *ONE, "--output-path", str(tmp_path)]
    run(*arguments, "--model", "linear-scan")
    run.refuses([*arguments, "--model", "graph-coloring"], "holds the results of 'linear-scan'")
    run(*arguments, "--model", "graph-coloring", "--no-resume")
    names = ("a:b", "a_b")
    (tmp_path / "both").mkdir()
    models = [f"command:/bin/false {name}" for name in names]
    chosen = [part for model in models for part in ("--model", model)]
    run(*arguments[:-1], tmp_path / "both", *chosen)
    assert len(list((tmp_path / "both").iterdir())) == 2


class _Endpoint:
    """Right at first, then out of reach: what is missing must not make it better."""

    name, deterministic, group_size = "endpoint", False, 4
    foreign, label_use, settings = False, LabelUse.NONE, AllocatorSettings()

    def respond(self, requests: object) -> object:
        for place, request in enumerate(requests):  # type: ignore[var-annotated, arg-type]
            if request.sample % 2:
                yield place, Response(None, FailureKind.INFRASTRUCTURE, "no route")
            else:
                yield place, Response({"%0": "v0"})


def test_a_run_with_infrastructure_failures_has_no_pass_at_k() -> None:
    row, prepared = ROW, PreparedRow(ROW)
    found = settled_samples([(prepared, n) for n in range(4)], _Endpoint(), 0)
    samples = sorted((judged.sample for _, judged in found), key=lambda sample: sample.index)
    assert [sample.counted for sample in samples] == [True, False, True, False]
    good = tuple(Sample(n, True) if n % 2 == 0 else samples[n] for n in range(4))
    record = summarise(
        [RowResult(row, "test", good, None)],
        assistance="text",
        decoding="guided",
        track="assign",
        ks=(1, 2),
        calls=2,
    )
    assert record["pass@1"] is None
    assert record["pass@2"] is None
    assert record["success_by_calls"] is None
    assert (record["samples"], record["infrastructure_failures"]) == (2, 2)
    assert record["failures"] == {}
