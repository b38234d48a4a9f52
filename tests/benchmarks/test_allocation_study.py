"""The study: its sample, what it measures on mini rows, its figures, its document."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import machine_code
from benchmarks.allocation_study import plots, running
from benchmarks.allocation_study.__main__ import main
from benchmarks.allocation_study.copying import copy_rows
from benchmarks.allocation_study.figures import worth
from benchmarks.allocation_study.records import Measured, Measurement, TightBudget
from benchmarks.allocation_study.sample import SampledKernel, load_kernels, systematic_sample
from dataset_builders.execution.tasks import Execution
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import RawRow, embedded_path, load_raw_row, load_rows
from verilocc_bench.dataset.parquet import write_parquet
from verilocc_bench.errors import InputError
from verilocc_bench.verification import Verifier


def answer(
    registers: int | None, occupancy: int = 8, conflicts: int = 0, copies: int = 0
) -> Measured:
    if registers is None:
        return Measured(None, None, None, None, 0.5, failure="unknown")
    return Measured(registers, occupancy, conflicts, copies, 0.5)


def kernel(number: int, compiler: Measured, best: Measured, **other: object) -> Measurement:
    answers = {
        "compiler": replace(compiler, seconds=None),
        "tabu-search": best,
        **dict.fromkeys(("best", "best bank-conflicts", "best copies"), best),
        **dict.fromkeys(("linear-scan", "graph-coloring", "first-fit-orders"), best),
        "annealed-orders": best,
    }
    seconds = dict.fromkeys([n for n in answers if n not in ("compiler",)], 0.25)
    measurement = Measurement(
        f"{number:016x}",
        "test",
        "gfx942",
        "gemm" if number % 2 else "mha",
        "k",
        "llvm-greedy 22.1.0",
        100 * number,
        10 * number,
        8,
        9,
        "residues",
        0.1,
        answers,
        {"bound": TightBudget(9, ("tabu-search",), seconds)},
    )
    return replace(measurement, **other)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def kernels() -> list[SampledKernel]:
    return load_kernels(embedded_path())


def test_the_sample_is_even_and_stable(kernels: list[SampledKernel]) -> None:
    chosen = systematic_sample(kernels, 2)
    cells = Counter((each.row.arch, each.row.family) for each in chosen)
    assert cells == Counter({(each.row.arch, each.row.family): 2 for each in kernels})
    backwards = systematic_sample(kernels[::-1], 2)
    assert [each.row.id for each in chosen] == [each.row.id for each in backwards]
    assert len(systematic_sample(kernels, 10_000)) == len(kernels)
    assert [each.row.id for each in load_kernels(embedded_path(), ("test",))] == [
        each.row.id for each in kernels if each.split == "test"
    ]
    with pytest.raises(InputError, match=r"gemm/validation-….parquet"):
        load_kernels(embedded_path(), ("validation",))


def test_measuring_goes_on_where_it_was(
    kernels: list[SampledKernel], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    smallest = sorted(kernels, key=lambda each: each.row.n_virtual_registers)[:2]
    monkeypatch.setattr(running, "load_kernels", lambda folder, splits: smallest)
    path = tmp_path / "study.jsonl"
    study = running.measure(embedded_path(), path, 60, Execution(1, time_limit_seconds=600.0))
    assert set(study.measurements) == {each.row.id for each in smallest}
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:-1]) + lines[-1][:40])
    assert set(running._resume(path, study.head)) == {json.loads(lines[1])["id"]}
    path.write_text("".join(lines))
    monkeypatch.setattr(running, "run_tasks", lambda *_: pytest.fail("it is done"))
    with pytest.raises(InputError, match="other versions"):
        running._resume(path, {**study.head, "versions": {}})
    _check_figures(smallest, study)


def _check_figures(smallest: list[SampledKernel], study: running.Study) -> None:
    """The measured figures against the verifier's, and against each other."""
    for each in smallest:
        found = study.measurements[each.row.id]
        assert found == Measurement.from_json(json.loads(json.dumps(found.to_json())))
        problem = AllocationProblem.from_text(each.row.normalized)
        assert each.row.label is not None
        used = Verifier(problem).verify(each.row.label).registers_used
        assert used is not None
        assert found.answers["compiler"].registers == used["vector"]
        best = found.answers["best"]
        assert best.registers is not None
        assert found.bound <= best.registers <= used["vector"]


def test_a_file_that_is_no_study_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "study.jsonl"
    path.write_text('{"versions": {}}\n{"id": "0"}\n')
    with pytest.raises(InputError, match=r"jsonl:2: expected a measurement"):
        running.read_study(path)
    path.write_text('{"id": 0}\n')
    with pytest.raises(InputError, match="head"):
        running.read_study(path)


def test_figures_count_against_the_compiler() -> None:
    kernels = [
        kernel(1, answer(12, 7), answer(9, 8)),
        kernel(2, answer(9), answer(9)),
        kernel(3, answer(9), answer(10, 7)),
        kernel(4, answer(20), answer(None)),
    ]
    found = worth(kernels, "best")
    assert found is not None
    assert (found.kernels, found.valid, found.optimal) == (4, 3, 2)
    assert (found.fewer, found.more) == (1, 1)
    assert (found.higher, found.most_saved) == (1, 3)
    assert (found.gap, found.saved) == pytest.approx((1 / 3, 2 / 3))
    assert worth(kernels, "llvm-basic") is None


def test_the_tables_and_plots_have_the_same_bytes_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernels = [kernel(n, answer(12, 7, 30, 1), answer(9, 8, 3, 2)) for n in range(1, 7)]
    kernels.append(replace(kernels[0], id="f" * 16, answers={}, budgets={}, lost="it was killed"))
    head = {
        "versions": {"verilocc-bench": "0.1.0"},
        "dataset": {"kernels": 10, "digest": "0" * 16},
        "sample": {"kernels_per_cell": 60, "kernels": 7},
        "machine": {"processor": "a processor", "cores": 1},
    }
    study = tmp_path / "study.jsonl"
    lines = [head, *(each.to_json() for each in kernels)]
    study.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers, code = tmp_path / "answers.jsonl", tmp_path / "code.jsonl"
    answers.write_text(json.dumps(runnable_record(kernels[0].id)) + "\n")
    metrics = dict.fromkeys((*machine_code.METRICS, "waves"), 9)
    sides = {machine_code.LABEL: metrics, machine_code.MODEL: metrics | {"loop_waits": 6}}
    code.write_text(json.dumps({"id": kernels[1].id, "metrics": sides}) + "\n")
    times = tmp_path / "times.jsonl"
    record = {"arch": "gfx942", "greedy_seconds": 0.002, "allocation_seconds": 0.005}
    times.write_text(json.dumps({"id": kernels[0].id, **record}) + "\n")
    texts = []
    for name in ("a", "b"):
        images = tmp_path / name
        arguments = ["report", str(study), "--images", str(images)]
        arguments += ["--runnable", str(answers), "--machine-code", str(code)]
        arguments += ["--compiler-times", str(times)]
        assert main(arguments) == 0
        printed = {"study": capsys.readouterr().out.encode()}
        texts.append(printed | {path.name: path.read_bytes() for path in images.iterdir()})
        # One plot tells as much as all of them, in less time.
        monkeypatch.setattr(plots, "PLOTS", dict(list(plots.PLOTS.items())[1:2]))
    assert texts[1].items() < texts[0].items()
    text = texts[0]["study"].decode()
    assert "| all |  | 6 | 180 | 18 | 18 |" in text
    assert "| gfx942 | gemm | 3 | 0 % | 100 % | 100 % |" in text
    assert "it was killed" in text
    assert "| gemm | 1 | 30 | 28 | 29 | 0 | 1 | 1 | 0 | 12 | 0 | 1 | 7 | 0 |" in text
    assert "| compiled |" not in text  # not asked, so not in the table
    assert "| machine-code | waits | 9 | 6 | -33.3 % | 1 | 0 | 0 | 100 % |" in text
    # 0.1 s of analysis and 0.5 s of search are 120 times 5 ms.
    assert "| gfx942 | 1 | 2 ms | 5 ms | 600 ms | 120 | 120 |" in text
    assert {*plots.PLOTS} <= {*texts[0]}


def runnable_record(identifier: str) -> dict[str, object]:
    """A record of `benchmarks.runnable answers`."""
    return {
        "id": identifier,
        "compiler": 30,
        "plain": 28,
        "plain_hazards": 12,
        "plain_destroyed": 7,
        "runnable": 29,
        "hazards": 0,
        "verdict": "runs by the compiler's own rules",
        "destroyed": 0,
    }


def test_the_sample_is_copied_with_its_machine_code(
    kernels: list[SampledKernel], tmp_path: Path
) -> None:
    chosen = sorted(kernels, key=lambda each: each.row.n_virtual_registers)[:2]
    found = [
        kernel(number, answer(9), answer(9), id=each.row.id, split=each.split)
        for number, each in enumerate(chosen)
    ]
    study = tmp_path / "study.jsonl"
    lost = replace(found[0], id="f" * 16, lost="it was killed")
    lines = [{"versions": {}}, *(each.to_json() for each in (*found, lost))]
    study.write_text("".join(json.dumps(line) + "\n" for line in lines))
    arguments = ["copy", str(study), "--dataset", str(embedded_path())]
    assert main([*arguments, "-o", str(tmp_path / "sample")]) == 0
    rows = {row.id: row for row in load_rows(str(tmp_path / "sample")).rows}
    assert rows == {each.row.id: each.row for each in chosen}
    for identifier in rows:
        assert load_raw_row(str(tmp_path / "sample"), identifier) == load_raw_row(
            "mini", identifier
        )
    study.write_text(
        "".join(json.dumps(line) + "\n" for line in (lines[0], {**lines[1], "id": "0"}))
    )
    assert main([*arguments, "-o", str(tmp_path / "other")]) == 2


@pytest.mark.usefixtures("llc")
def test_llc_says_how_long_its_allocation_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row for row in load_rows("mini").rows if row.arch == "gfx942"]
    row = min(rows, key=lambda row: row.n_instructions)
    chosen = [kernel(1, answer(9), answer(9), id=row.id, split="test")]
    copy_rows(embedded_path(), chosen, tmp_path / "sample")
    output = tmp_path / "times.jsonl"
    arguments = ["compiler-times", str(tmp_path / "sample"), "-o", str(output)]
    assert main(arguments) == 0
    (line,) = output.read_text().splitlines()
    times = json.loads(line)
    assert (times["id"], times["arch"]) == (row.id, "gfx942")
    assert 0 < times["greedy_seconds"] <= times["allocation_seconds"]
    assert main(arguments) == 0
    assert output.read_text().splitlines() == [line]
    assert main(["compiler-times", str(tmp_path), "-o", str(output)]) == 2
    refused = tmp_path / "refused/raw/data/gfx942/gemm/test-0.parquet"
    write_parquet([RawRow("0" * 16, "mir", "no machine IR")], refused)
    capsys.readouterr()
    arguments = ["compiler-times", str(tmp_path / "refused"), "-o", str(output)]
    assert main(arguments) == 2
    assert "row 0000000000000000: llc: " in capsys.readouterr().err
    assert output.read_text().splitlines() == [line]


def test_bad_input_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = str(tmp_path / "study.jsonl")
    assert main(["measure", "--dataset", str(tmp_path / "none"), "-o", output]) == 2
    assert capsys.readouterr().err.count("\n") == 1
