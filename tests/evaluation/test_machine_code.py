"""`--machine-code`: what valid answers are worth as machine code."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import CommandLine
from verilocc_bench.backends import AmdgpuBackend
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import Evaluation, evaluate_together, machine_code
from verilocc_bench.evaluation.configuration import RunConfiguration
from verilocc_bench.evaluation.machine_code import CountedCode, summarise_machine_code
from verilocc_bench.evaluation.schema import read_results
from verilocc_bench.evaluation.table import CODE_COLUMNS, code_change

ONE_EACH = RunConfiguration("linear-scan", archs=("gfx942", "sm_80"), families=("gemm",), limit=1)


def evaluate(**options: Any) -> Evaluation:
    (found,) = evaluate_together([ONE_EACH], **options)
    return found


def figures(**known: float) -> dict[str, float | None]:
    return {name: known.get(name) for name in machine_code.FIGURES}


def test_sums_are_over_functions_with_both_figures() -> None:
    record = summarise_machine_code(
        [
            CountedCode(figures(loop_waits=3), figures(loop_waits=5), True),
            CountedCode(figures(loop_waits=4), figures(loop_waits=4), True),
            CountedCode(figures(loop_waits=9), figures(loop_waits=1), False),
            CountedCode(figures(bank_conflicts=7), figures(), True),
            CountedCode(refused="llc cannot"),
            None,
        ]
    )
    assert record == {
        "kernels": 5,
        "refused": 1,
        "runnable": 3,
        "figures": {
            "loop_waits": {"answer": 16, "label": 10, "less": 1, "equal": 1, "more": 1},
        },
    }


def test_close_cycles_are_equal() -> None:
    pairs = [(100.4, 100.0), (100.6, 100.0), (99.6, 100.0), (99.4, 100.0)]
    found = summarise_machine_code(
        [CountedCode(figures(loop_cycles=a), figures(loop_cycles=b), True) for a, b in pairs]
    )["figures"]["loop_cycles"]
    assert (found["less"], found["equal"], found["more"]) == (1, 2, 1)


@pytest.mark.parametrize(
    ("answer", "label", "cell"),
    [(95, 100, "−5.0 %"), (101, 100, "+1.0 %"), (100, 100, "0.0 %"), (3, 0, "+3"), (0, 0, "0.0 %")],
)
def test_a_cell_is_a_change_against_the_label(answer: int, label: int, cell: str) -> None:
    record = {"machine_code": {"figures": {"loop_waits": {"answer": answer, "label": label}}}}
    assert code_change("loop_waits", record) == cell
    assert code_change("loop_cycles", record) == "–"


def test_it_needs_a_folder_and_llc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="--output-path"):
        evaluate(machine_code=True)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="llc"):
        evaluate(output_path=tmp_path / "run", machine_code=True)
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_answers_and_labels_become_code(
    llc: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    run: CommandLine,
) -> None:
    told: list[str] = []
    found = evaluate(output_path=tmp_path, machine_code=True, tell=told.append)
    assert read_results(tmp_path / "results.json") == found.document
    amd, nvidia = (
        next(each for each in found.document["kernels"] if each["task"] == f"{arch}/gemm")
        for arch in ("gfx942", "sm_80")
    )
    for side in ("answer", "label"):
        counted = amd["machine_code"][side]
        # llvm-mca may be missing, or know no cycles of a loop.
        assert all(counted[name] is not None for name in machine_code.FIGURES[:-1])
        conflicts = nvidia["machine_code"][side]
        assert conflicts["bank_conflicts"] is not None
        assert conflicts["loop_waits"] is None
    assert amd["machine_code"]["runnable"]
    assert amd["machine_code"]["answer"]["bank_conflicts"] == amd["bank_conflicts"]
    assert found.document["results"]["overall"]["machine_code"]["kernels"] == 2

    # The same command finds everything, and a damaged line is made again.
    ask = machine_code.compare_code
    asked: list[Any] = []
    monkeypatch.setattr(
        machine_code, "compare_code", lambda *each: asked.append(each) or ask(*each)
    )
    kept = tmp_path / machine_code.MACHINE_CODE
    evaluate(output_path=tmp_path, machine_code=True, tell=told.append)
    assert not asked
    kept.write_bytes(kept.read_bytes().replace(b'"refused": null', b'"refused": true', 1))
    again = evaluate(output_path=tmp_path, machine_code=True, tell=told.append)
    assert len(asked) == 1
    assert again.document["kernels"] == found.document["kernels"]

    # Another release of llc makes all code of its targets anew, and what it refuses is not kept.
    asked.clear()
    monkeypatch.setattr(AmdgpuBackend, "check_comparison", lambda _: {"llc": "another"})
    monkeypatch.setattr(
        machine_code,
        "compare_code",
        lambda *each: asked.append(each) or machine_code.CountedCode(refused="no"),
    )
    for _ in range(2):
        refused = evaluate(output_path=tmp_path, machine_code=True, tell=told.append)
    assert len(asked) == 2
    record = refused.document["results"]["overall"]["machine_code"]
    assert (record["kernels"], record["refused"], record["runnable"]) == (2, 1, 0)
    monkeypatch.undo()

    # Without the flag nothing of it is there; the table has the columns on demand.
    plain = evaluate(output_path=tmp_path, tell=told.append)
    assert "machine_code" not in json.dumps(plain.document)
    command = ["evaluate", "--model", "linear-scan", "--arch", "gfx942", "--family", "gemm"]
    command += ["--limit", "1", "--output-path", str(tmp_path), "--machine-code"]
    assert "instructions" in run(*command, "--columns", ",".join(CODE_COLUMNS)).out
