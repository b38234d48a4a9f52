"""`lower` from end to end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.lower.kernels import LOOP, SEVERAL, assembled, linear_scan, normalized, require_tools
from verilocc_bench.allocators import Answer, answer_from_assignment
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows
from verilocc_bench.ir import Assignment
from verilocc_bench.parse.cubin import read_cubin

ROWS = load_rows("mini").rows
ROW = min((row for row in ROWS if row.arch == "sm_80"), key=lambda row: row.n_instructions)


@pytest.fixture(name="run")
def _run(capsys):  # type: ignore[no-untyped-def]
    def run(*arguments: object) -> tuple[int, str, str]:
        status = main(["lower", *map(str, arguments)])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run


@pytest.fixture(name="cubin")
def _cubin(tmp_path: Path) -> Path:
    path = tmp_path / "loop.cubin"
    path.write_bytes(assembled(LOOP))
    return path


def answer(path: Path, assignment: Assignment | Answer) -> Path:
    """An answer file for LOOP, or for any function if it has names already."""
    names = {
        name: base if isinstance(base, str) else f"{base.file}{base.index}"
        for name, base in assignment.items()
    }
    text = {name if isinstance(name, str) else f"%{name}": base for name, base in names.items()}
    path.write_text(json.dumps({"assignment": text}))
    return path


def refused(result: tuple[int, str, str], *words: str) -> None:
    status, out, err = result
    assert (status, out) == (2, ""), result
    assert err.count("\n") == 1
    assert err.startswith("verilocc-bench lower: ")
    for word in words:
        assert word in err


def test_the_compilers_own_answer_gives_the_same_file(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem = normalized(cubin.read_bytes(), 255)
    own = answer_from_assignment(AllocationProblem(problem.function), problem.assignment)
    output = tmp_path / "new" / "out.cubin"
    result = run(cubin, answer(tmp_path / "a.json", own), "-o", output)
    assert result[::2] == (0, "")
    assert "0 changed; 0 reuse marks cleared" in result[1]
    assert result[1].endswith("runnable\n")
    assert output.read_bytes() == cubin.read_bytes()


def test_another_answer_is_written_with_its_hazards(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem = normalized(cubin.read_bytes(), 255)
    other = answer(tmp_path / "a.json", linear_scan(problem))
    output = tmp_path / "out.cubin"
    status, out, _ = run(cubin, other, "--arch", "sm_80", "-o", output)
    assert status == 0
    assert "not runnable: " in out
    status, out, _ = run(cubin, other, "--function", "sums", "--json", "-o", output)
    summary = json.loads(out)
    assert status == 0
    assert summary["function"] == "sums"
    assert not summary["runnable"]
    assert summary["reasons"]
    assert summary["changed_instructions"] <= summary["instructions"]
    assert {"kind", "registers", "address", "after_address"} <= {
        key for hazard in summary["hazards"] for key in hazard
    } or not summary["hazards"]
    assert read_cubin(output.read_bytes()).kernels[0].register_count == summary["register_count"]


def test_a_wrong_answer_writes_nothing(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    problem = normalized(cubin.read_bytes(), 255)
    wrong = dict.fromkeys(problem.assignment, problem.assignment[0])
    output = tmp_path / "out.cubin"
    status, out, err = run(cubin, answer(tmp_path / "a.json", wrong), "-o", output)
    assert (status, out) == (1, "")
    assert "a wrong answer" in err
    assert not output.exists()


def test_bad_cubins_are_told_in_one_line(run, cubin: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    some = answer(tmp_path / "a.json", {"%0": "R0"})
    output = tmp_path / "out.cubin"
    end = ("-o", output)
    several = tmp_path / "several.cubin"
    several.write_bytes(assembled(SEVERAL))
    refused(run(several, some, *end), str(several), "several kernels", "--function", "plain")
    refused(run(several, some, "--function", "calls", *end), str(several), "calls at 0x", "call")
    refused(run(several, some, "--function", "f", *end), "there is no kernel 'f'")
    other = tmp_path / "other.cubin"
    other.write_bytes(assembled(LOOP.replace("sm_80", "sm_86"), "sm_86"))
    refused(run(other, some, *end), str(other), "expected a cubin for sm_80, this is one for sm_86")
    part = tmp_path / "part.cubin"
    part.write_bytes(cubin.read_bytes()[:2000])
    refused(run(part, some, *end), str(part), "byte 2000", "not whole")
    refused(run(some, some, *end), str(some), "expected a cubin")
    refused(run(cubin, some, "--arch", "gfx90a", *end), "sm_80 only")
    refused(run(cubin, tmp_path / "none.json", *end), "no such file")
    refused(run(tmp_path / "none.cubin", some, *end), "neither a file nor an id")
    assert not output.exists()


def test_an_id_of_the_dataset(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    require_tools()
    assert ROW.label is not None
    output = tmp_path / "out.cubin"
    status, out, _ = run(ROW.id, answer(tmp_path / "a.json", ROW.label), "--json", "-o", output)
    assert status == 0
    assert json.loads(out)["runnable"]
    assert json.loads(out)["changed_instructions"] == 0
    assert read_cubin(output.read_bytes()).architecture == "sm_80"


def test_lowering_is_for_sm_80_only(run, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    row = next(row for row in ROWS if row.arch == "gfx90a")
    some = answer(tmp_path / "a.json", {"%0": "v0"})
    refused(run(row.id, some, "-o", tmp_path / "o"), "lowering is there for sm_80 only", "gfx90a")
