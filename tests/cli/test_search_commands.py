"""What the command line says of search: bounds with proofs, objectives, budgets, interrupts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests.command_line import CommandLine
from verilocc_bench.allocators.search import portfolio
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.api import working
from verilocc_bench.cli import bound_command
from verilocc_bench.dataset import BudgetChoice, load_rows, tighten
from verilocc_bench.errors import InputError
from verilocc_bench.verification import FastVerifier

pytestmark = pytest.mark.slow

ROWS = load_rows("mini").rows
BY_SIZE = sorted(ROWS, key=lambda row: row.n_instructions)
SMALL = next(row for row in BY_SIZE if row.arch == "gfx942")


def test_a_bound_is_written_and_checked(tmp_path: Path, run: CommandLine) -> None:
    path = tmp_path / "bound.json"
    said = run("bound", SMALL.id, "--no-solver", "-o", path).out
    value = json.loads(path.read_text())["value"]
    assert said.startswith(f"{SMALL.id}: at least {value} registers")
    assert value <= json.loads(SMALL.registers_used or "")[VECTOR]
    assert run.json("bound", SMALL.id, "--check", path)["value"] == value
    document = json.loads(path.read_text())
    mistakes = {"no refutation covers": {"value": value + 1}, "no kind": {"kind": "guess"}}
    for words, change in mistakes.items():
        path.write_text(json.dumps(document | change))
        run.refuses(["bound", SMALL.id, "--check", path], words)


ACCUMULATING = """verilocc-bench 1
target gfx942
registers v:256 a:256 s:8 vcc:2=vcc_lo,vcc_hi
class A8 8 a/2
class V8 8 v/2
bb0
%0:V8=LOAD
%1=LOAD
%2=LOAD
STORE %0,%1,%2
"""

CROWDED = """verilocc-bench 1
target gfx942
registers v:2 a:0 s:8 vcc:2=vcc_lo,vcc_hi
class V 1 v
bb0
%0=A
%1=A
%2=A
B %0,%1,%2
"""


def test_a_bound_that_nothing_meets_is_no_number(tmp_path: Path, run: CommandLine) -> None:
    path = tmp_path / "crowded.txt"
    path.write_text(CROWDED)
    said = run("bound", path).out
    assert "no valid assignment exists, proof checked" in said
    assert "3 lanes that cannot share registers after bb0 instruction 2 (A)" in said
    assert "at least" not in said
    assert run.json("bound", path)["infeasible"] is True
    assert run.json("bound", SMALL.id, "--no-solver")["infeasible"] is False
    error = run("allocate", "--model", "best", path, status=1).err
    assert "proved infeasible: 3 lanes" in error
    assert "live-range-splitting" in error


def test_a_bound_above_a_valid_answer_is_an_internal_error(
    tmp_path: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it is the compiler's own answer, or one that takes a moment to find."""
    problem = AllocationProblem.from_text(SMALL.normalized)
    found = bound_command.lower_bound(problem, solver=False)
    monkeypatch.setattr(working, "check_certificate", lambda *_: None)
    monkeypatch.setattr(
        bound_command, "lower_bound", lambda *_, **__: replace(found, value=found.value + 99)
    )
    said = run("bound", SMALL.id, status=70)
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert f"internal error, please report it: function {SMALL.id}" in said.err
    assert f"a lower bound says that {found.value + 99} are needed" in said.err
    path = tmp_path / "function.txt"
    path.write_text(SMALL.normalized)
    assert "the answer of linear-scan is valid" in run("bound", path, status=70).err


def test_a_proof_that_an_answer_contradicts_ends_an_evaluation(
    run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portfolio, "proves_infeasible", lambda *_: True)
    monkeypatch.setattr(portfolio, "why_infeasible", lambda *_: "nothing fits")
    for command in (["allocate", SMALL.id], ["evaluate", "--limit", "1", "--arch", "gfx942"]):
        said = run(*command, "--model", "tabu-search", status=70)
        assert said.out == ""
        assert "nothing fits; yet linear-scan has a valid answer" in said.err


def test_a_tight_budget_leaves_each_file_what_it_needs() -> None:
    """Eight VGPRs and sixteen AGPRs that no class draws on together: 24, not 24 VGPRs."""
    row = replace(
        SMALL,
        normalized=ACCUMULATING,
        id=AllocationProblem.from_text(ACCUMULATING).id,
        assignment='{"%0": "v0", "%1": "a0", "%2": "a8"}',
        registers_used='{"a": 16, "s": 0, "v": 8, "vcc": 0, "vector": 24}',
        occupancy=8,
        best_lower_bound=24,
    )
    tight = tighten(row, BudgetChoice.BOUND)
    assert tight is not None
    problem = AllocationProblem.from_text(tight.normalized)
    assert problem.function.file("v").count == 8
    assert tight.assignment is not None
    assert FastVerifier(problem).verify(row.label or {}).valid
    # Of a label that uses more, nothing is known but what each file needs.
    wide = '{"a": 24, "s": 0, "v": 8, "vcc": 0, "vector": 32}'
    tight = tighten(replace(row, registers_used=wide), BudgetChoice.BOUND)
    assert tight is not None
    assert tight.assignment is None
    assert "registers v:8 a:16 " in tight.normalized


def test_commands_say_their_objective(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: CommandLine
) -> None:
    monkeypatch.chdir(tmp_path)
    chosen = ["--model", "best", "--objective", "copies"]
    told = run("allocate", "--model", "best", SMALL.id, "-o", "answer.json").err.splitlines()
    assert "verilocc-bench allocate: best: objective registers" in told
    told = run("evaluate", *chosen, "--arch", "gfx942", "--limit", "1", "--json").err.splitlines()
    assert "verilocc-bench evaluate: best: objective copies" in told
    told = run("allocate", "--model", "linear-scan", SMALL.id, "-o", "answer.json").err
    assert "objective" not in told
    run.refuses(
        ["allocate", "--model", "linear-scan", "--objective", "copies", SMALL.id],
        "--objective means nothing to linear-scan",
    )


def test_tight_budgets_keep_the_label_where_it_fits() -> None:
    kept = dropped = 0
    for row in BY_SIZE[:12]:
        tight = tighten(row, BudgetChoice.BOUND)
        assert tight is not None
        assert (tight.id == row.id) == (tight.normalized == row.normalized)
        assert (tight.best_lower_bound or 0) >= (row.best_lower_bound or 1)
        problem = AllocationProblem.from_text(tight.normalized)
        assert problem.id == tight.id
        if tight.label is None:
            found = FastVerifier(problem).verify(row.label)
            assert not found.valid
            dropped += 1
        else:
            assert FastVerifier(problem).verify(tight.label).valid
            kept += 1
    assert kept
    assert dropped
    with pytest.raises(InputError, match="assign track"):
        tighten(load_rows("mini", track="split").rows[0], BudgetChoice.BOUND)


def test_the_occupancy_budget_gains_a_wave() -> None:
    gains = 0
    for row in BY_SIZE[3:30:11]:
        tight = tighten(row, BudgetChoice.OCCUPANCY)
        if tight is None:
            continue
        gains += 1
        problem = AllocationProblem.from_text(tight.normalized)
        files = {file.name: file.count for file in problem.function.files}
        label = FastVerifier(AllocationProblem.from_text(row.normalized)).verify(row.label)
        assert label.registers_used is not None
        used = {**label.registers_used, **{f: files[f] for f in problem.target.vector_files}}
        assert row.occupancy is not None
        assert problem.target.occupancy(used) > row.occupancy
    assert gains == 2


def test_evaluate_at_a_tight_budget(tmp_path: Path, run: CommandLine) -> None:
    arguments = ["evaluate", "--model", "tabu-search", "--budget", "bound+1", "--limit", "1"]
    document = run.json(*arguments, "--arch", "gfx942", "--output-path", tmp_path)
    assert document["config"]["budget"] == "bound+1"
    assert document["config"]["options"] == {"objective": "registers", "effort": 1}
    assert document["results"]["overall"]["pass@1"] == 1.0
    assert document["results"]["overall"]["totals"]["bound"] > 0


def test_an_interrupt_writes_the_best_answer_so_far(
    tmp_path: Path, run: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio, "refine", interrupted)
    path = tmp_path / "answer.json"
    command = ("allocate", "--model", "tabu-search", SMALL.id, "-o", path)
    assert "best answer so far" in run(*command).err
    answer = json.loads(path.read_text())["assignment"]
    assert FastVerifier(AllocationProblem.from_text(SMALL.normalized)).verify(answer).valid
    # Before there is any answer, an interrupt is one like every other.
    monkeypatch.setattr(portfolio, "minimize", interrupted)
    run(*command, status=130)
