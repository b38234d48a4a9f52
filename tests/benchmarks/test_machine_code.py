"""The tables of benchmarks.machine_code, from records that are written here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import machine_code
from benchmarks.machine_code import COMPILED, LABEL, MODEL, main, mixed, summary
from verilocc_bench.api.problems import Problem, load_problem
from verilocc_bench.backends import backend_of
from verilocc_bench.backends.amdgpu import code_cost, code_worth
from verilocc_bench.backends.amdgpu.cycles import Analyzer, LoopEstimate
from verilocc_bench.backends.kernel import ComparedAllocation
from verilocc_bench.edits import Answer


def _metrics(waits: int, cycles: float | None = 100.0) -> dict[str, float | None]:
    return {
        "waves": 4,
        "loop_waits": waits,
        "loop_wait_states": 10,
        "loop_instructions": 1_000,
        "loop_register_moves": 0,
        "bank_conflicts": 5,
        "loop_cycles": cycles,
    }


def _record(number: int, **sides: dict[str, float | None]) -> dict[str, Any]:
    names = {"label": LABEL, "model": MODEL, "compiled": COMPILED}
    metrics = {names[name]: found for name, found in sides.items()}
    own = {"id": f"{number:016x}", "arch": "gfx90a", "family": "mha", "instructions": 7}
    return {**own, "metrics": metrics}


RECORDS = [
    _record(1, label=_metrics(20), model=_metrics(10), compiled=_metrics(30, 90.0)),
    _record(2, label=_metrics(20), model=_metrics(20, 100.4), compiled=_metrics(20, 100.6)),
    _record(3, label=_metrics(10, None), model=_metrics(20, None)),
]


def test_sums_and_shares() -> None:
    lines = summary(RECORDS)
    assert "| machine-code | waits | 50 | 50 | +0.0 % | 1 | 1 | 1 | 67 % |" in lines
    assert "| compiled | waits | 40 | 50 | +25.0 % | 0 | 1 | 1 | 50 % |" in lines
    # Within 0.5 % cycles are equal; a kernel without a loop has none.
    assert "| machine-code | llvm-mca's cycles | 200 | 200 | +0.2 % | 0 | 2 | 0 | 100 % |" in lines
    assert "| compiled | llvm-mca's cycles | 200 | 191 | -4.7 % | 1 | 0 | 1 | 50 % |" in lines


def test_kernels_with_more_of_something_are_listed_with_what_they_have_less_of() -> None:
    lines = mixed(RECORDS, COMPILED)
    assert lines[2:] == [
        "| `00000000` gfx90a mha | 7 | waits 20 → 30 | llvm-mca's cycles 100 → 90 |",
        "| `00000000` gfx90a mha | 7 | llvm-mca's cycles 100 → 100.6 |  |",
    ]


def test_the_report_reads_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in RECORDS))
    assert main(["report", "--measured", str(path)]) == 0
    assert "| machine-code | waits |" in capsys.readouterr().out
    assert main(["report", "--measured", str(tmp_path / "none.jsonl")]) == 2


@pytest.mark.usefixtures("llc")
def test_the_cost_of_code_is_the_sum_of_what_compare_counts() -> None:
    problem = load_problem("fe33ea20e7c8cba7")
    backend, kernel = backend_of(problem.target), problem.kernel()
    assert problem.label is not None
    side = ComparedAllocation("label", Answer(problem.label))
    document = backend.compare(kernel, (side, side), with_files=False).document
    counts = document["answer"]["metrics"]
    twice = sum(counts[name] for name in ("loop_waits", "loop_wait_states", "bank_conflicts"))
    total = counts["loop_instructions"] + 2 * twice + 20 * counts["loop_register_moves"]
    if counts["loop_cycles"] is not None:
        total += round(10 * counts["loop_cycles"])
    cost = backend.code_costs(kernel)(problem.label)
    assert (cost.waves, cost.total, cost.cycles) == (counts["waves"], total, counts["loop_cycles"])
    names = ("loop_instructions", "loop_waits", "loop_wait_states", "loop_register_moves")
    assert cost.counts == tuple(counts[name] for name in (*names, "bank_conflicts"))


@pytest.mark.usefixtures("llc")
@pytest.mark.parametrize("knows", [True, False])
def test_an_analyzer_without_an_estimate_is_not_asked_again(
    monkeypatch: pytest.MonkeyPatch, knows: bool
) -> None:
    problem = load_problem("fe33ea20e7c8cba7")
    assert problem.label is not None
    asked = []

    def estimate(loops: Any, arch: str, analyzer: Analyzer) -> tuple[LoopEstimate, ...]:
        asked.append(analyzer.program)
        return (LoopEstimate(".LBB0_1", 1, 9, 92.0 if knows else None, None, {}),)

    monkeypatch.setattr(code_cost, "find_analyzer", lambda: Analyzer("llvm-mca", "22.1.8"))
    monkeypatch.setattr(code_worth, "estimate_loops", estimate)
    costs = backend_of(problem.target).code_costs(problem.kernel())
    found = [costs(problem.label) for _ in range(3)]
    assert {cost.cycles for cost in found} == {92.0 if knows else None}
    assert asked == ["llvm-mca"] * 3 if knows else ["llvm-mca", None, None]


def test_a_file_goes_on_with_the_answers_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, asked = tmp_path / "measured.jsonl", []

    def measured(row: Problem, answers: list[str], compiled: int) -> dict[str, Any]:
        asked.append((row.id, answers, compiled))
        return {"metrics": {name: _metrics(1) for name in (LABEL, *answers)}}

    monkeypatch.setattr(machine_code, "measure", measured)
    monkeypatch.setattr(machine_code, "_rows", lambda _: [load_problem("fe33ea20e7c8cba7")])
    command = ["measure", "--measured", str(path), "--compiled", "3", "--answers"]
    for answers in ([MODEL], [MODEL, COMPILED], [COMPILED, MODEL]):
        assert main([*command, *answers]) == 0
    assert asked == [("fe33ea20e7c8cba7", [MODEL], 3), ("fe33ea20e7c8cba7", [COMPILED], 3)]
    assert len(path.read_text().splitlines()) == 2
