"""What the command line says of search: bounds with proofs, objectives, budgets, interrupts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verilocc_bench.allocators.search import portfolio
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.dataset import BudgetChoice, load_rows, tighten
from verilocc_bench.errors import InputError
from verilocc_bench.verify import FastVerifier

ROWS = load_rows("mini").rows
SMALL = min((row for row in ROWS if row.arch == "gfx942"), key=lambda row: row.n_instructions)


def test_a_bound_is_written_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bound.json"
    assert main(["bound", SMALL.id, "--no-solver", "-o", str(path)]) == 0
    said = capsys.readouterr().out
    value = json.loads(path.read_text())["value"]
    assert said.startswith(f"{SMALL.id}: at least {value} registers")
    assert value <= json.loads(SMALL.registers_used or "")[VECTOR]
    assert main(["bound", SMALL.id, "--check", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["value"] == value


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.update(value=d["value"] + 1), "no refutation covers"),
        (lambda d: d.update(kind="guess"), "no kind"),
        (lambda d: d["cliques"][0]["lanes"].clear(), ""),
    ],
)
def test_a_wrong_proof_is_told(tmp_path: Path, capsys, change, words: str) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "bound.json"
    main(["bound", SMALL.id, "--no-solver", "-o", str(path)])
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))
    capsys.readouterr()
    assert main(["bound", SMALL.id, "--check", str(path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert words in error


def test_an_objective_means_nothing_to_linear_scan(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["allocate", "--model", "linear-scan", "--objective", "copies", SMALL.id]) == 2
    assert "--objective means nothing to linear-scan" in capsys.readouterr().err


def test_tight_budgets_keep_the_label_where_it_fits() -> None:
    kept = dropped = 0
    for row in ROWS:
        tight = tighten(row, BudgetChoice.BOUND)
        assert tight is not None
        assert (tight.id == row.id) == (tight.normalized == row.normalized)
        problem = AllocationProblem.from_text(tight.normalized)
        assert problem.id == tight.id
        if tight.label is None:
            found = FastVerifier(problem).verify(row.label)
            assert not found.valid
            dropped += 1
        else:
            assert FastVerifier(problem).verify(tight.label).valid
            kept += 1
    assert kept > 5
    assert dropped > 5


def test_the_occupancy_budget_gains_a_wave() -> None:
    gains = 0
    for row in ROWS:
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
    assert gains


def test_rows_of_the_split_track_have_no_tight_budget(capsys: pytest.CaptureFixture[str]) -> None:
    row = load_rows("mini", track="split").rows[0]
    with pytest.raises(InputError, match="assign track"):
        tighten(row, BudgetChoice.BOUND)
    arguments = ["evaluate", "--model", "linear-scan", "--track", "split", "--budget", "bound"]
    assert main(arguments) == 2
    assert "--budget is for the assign track" in capsys.readouterr().err


def test_evaluate_at_a_tight_budget(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["evaluate", "--model", "tabu-search", "--budget", "bound+1", "--limit", "1"]
    arguments += ["--arch", "gfx942", "--output-path", str(tmp_path), "--json"]
    assert main(arguments) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["config"]["budget"] == "bound+1"
    assert document["config"]["options"] == {"objective": "registers", "effort": 1}
    assert document["results"]["overall"]["pass@1"] == 1.0
    assert document["results"]["overall"]["totals"]["bound"] > 0


def test_an_interrupt_writes_the_best_answer_so_far(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(portfolio, "refine", interrupted)
    path = tmp_path / "answer.json"
    assert main(["allocate", "--model", "tabu-search", SMALL.id, "-o", str(path)]) == 0
    assert "best answer so far" in capsys.readouterr().err
    answer = json.loads(path.read_text())["assignment"]
    assert FastVerifier(AllocationProblem.from_text(SMALL.normalized)).verify(answer).valid
    # Before there is any answer, an interrupt is one like every other.
    monkeypatch.setattr(portfolio, "minimize", interrupted)
    assert main(["allocate", "--model", "tabu-search", SMALL.id, "-o", str(path)]) == 130
