"""`--runnable`: answers on machine live ranges, through the whole way of an evaluation."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.backends.nvidia.assembled_kernels import LOOP, assembled, require_tools
from tests.command_line import CommandLine
from verilocc_bench import allocate, load_problem, load_problems, lower, verify
from verilocc_bench.dataset import BudgetChoice
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import PreparedProblem, evaluate_together
from verilocc_bench.evaluation.code_source import CodeSource
from verilocc_bench.evaluation.configuration import RunConfiguration
from verilocc_bench.settings.search import PlacementSettings

RUNNABLE = PlacementSettings(runnable=True)


@pytest.mark.slow
def test_an_evaluation_takes_the_code_from_the_dataset(tmp_path: Path) -> None:
    require_tools()
    configuration = RunConfiguration("linear-scan", RUNNABLE, archs=("sm_80",), limit=1)
    (found,) = evaluate_together([configuration], output_path=tmp_path, tell=lambda _: None)
    assert found.document["config"]["options"] == {"runnable": True}
    for result in found.results:
        problem = load_problem(result.row.id)
        plain = allocate(problem, "linear-scan")
        strict = allocate(problem, "linear-scan", runnable=True)
        assert verify(problem, strict).valid
        assert lower(problem, strict, tmp_path / "a.cubin").document["runnable"]
        assert not lower(problem, plain, tmp_path / "b.cubin").document["runnable"]


@pytest.mark.slow
def test_search_is_no_worse_than_the_compiler(tmp_path: Path) -> None:
    require_tools()
    problems = load_problems(arch="sm_80")
    smallest = min(problems, key=lambda each: each.function.instruction_count)
    answer = allocate(smallest, "best", runnable=True)
    assert smallest.label is not None
    used, compiled = verify(smallest, answer), verify(smallest, smallest.label)
    assert used.registers_used is not None
    assert compiled.registers_used is not None
    assert used.registers_used["R"] <= compiled.registers_used["R"]
    document = lower(smallest, answer, tmp_path / "a.cubin").document
    assert document["verdict"] == "runs by the compiler's own rules"


@pytest.mark.slow
def test_a_cubin_on_the_command_line(tmp_path: Path, run: CommandLine) -> None:
    require_tools()
    cubin, answer = tmp_path / "sums.cubin", tmp_path / "a.json"
    cubin.write_bytes(assembled(LOOP))
    allocated = ["allocate", str(cubin), "--model", "graph-coloring", "-o", str(answer)]
    run(*allocated, "--runnable")
    out = run("lower", cubin, answer, "-o", tmp_path / "out.cubin").out
    assert "\nruns by the compiler's own rules\n" in out


def test_where_waits_are_inserted_after_allocation_nothing_changes() -> None:
    problem = load_problems(arch="gfx942", limit=1)[0]

    def no_code(_: object = None) -> None:
        raise AssertionError

    prepared = PreparedProblem(problem, kernel=no_code)  # type: ignore[arg-type]
    assert prepared.runnable_problem is problem
    assert allocate(problem, "linear-scan", runnable=True) == allocate(problem, "linear-scan")


def test_without_code_there_is_one_clear_line(tmp_path: Path) -> None:
    problem = load_problems(arch="sm_80", limit=1)[0]
    with pytest.raises(InputError, match="--runnable needs the compiled code"):
        _ = PreparedProblem(problem).runnable_problem
    with pytest.raises(InputError, match="--runnable is for --budget full"):
        RunConfiguration("linear-scan", RUNNABLE, budget=BudgetChoice.BOUND)
    with pytest.raises(InputError, match="no machine code of"):
        CodeSource("mini", ("train",)).kernel(problem)
    text = tmp_path / "function.txt"
    text.write_text(problem.normalized)
    with pytest.raises(InputError, match="no compiled code"):
        allocate(load_problem(text), "linear-scan", runnable=True)
