"""One problem through the Python interface: load, allocate, verify, bound, lower, show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import verilocc_bench as vb
from verilocc_bench.allocators import graph_coloring, linear_scan
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import Dataset, load_rows

ROWS = [row for row in load_rows("mini").rows if row.arch == "gfx942"][:2]
ROW = ROWS[0]


@pytest.fixture(scope="module")
def problem() -> vb.Problem:
    return vb.load_problem(ROW.id)


def test_problems_are_the_rows(problem: vb.Problem) -> None:
    found = vb.load_problems("mini", arch="gfx942", limit=2)
    assert [problem.id for problem in found] == [row.id for row in ROWS]
    problem = found[0]
    assert (problem.arch, problem.family, problem.label) == ("gfx942", ROW.family, ROW.label)
    assert problem.row == ROW
    assert problem.normalized == ROW.normalized
    for word in (ROW.id, "gfx942", ROW.family, f"{ROW.n_instructions} instructions"):
        assert word in repr(problem)


def test_problems_are_chosen() -> None:
    found = vb.load_problems("mini", arch=["gfx90a", "sm_80"], family="mha")
    assert {(p.arch, p.family) for p in found} == {("gfx90a", "mha"), ("sm_80", "mha")}
    with pytest.raises(vb.InputError, match="gfx1100"):
        vb.load_problems("mini", arch="gfx1100")
    with pytest.raises(vb.InputError, match="no row"):
        vb.load_problems("mini", family="convolution")


def test_a_problem_of_a_file_and_of_an_id(tmp_path: Path) -> None:
    path = tmp_path / "function.txt"
    path.write_text(ROW.normalized)
    by_file, by_id = vb.load_problem(path), vb.load_problem(ROW.id)
    assert by_file.id == by_id.id == ROW.id
    assert by_file.label is None
    with pytest.raises(vb.InputError, match="no compiled code"):
        by_file.kernel()
    with pytest.raises(vb.InputError, match="neither a file nor an id"):
        vb.load_problem("0123456789abcdef")


def test_the_only_row_of_a_kernel_has_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = load_rows("mini").rows
    named = [row for row in (first, *others) if row.kernel == "gemm"]
    with pytest.raises(vb.InputError, match=f"rows are of the kernel 'gemm': {named[0].id}"):
        vb.load_problem("gemm")
    other = next(row for row in others if row.kernel != first.kernel)
    found = Dataset("mini", None, "test", "assign", (first, other))
    monkeypatch.setattr("verilocc_bench.api.problems.load_rows", lambda *_, **__: found)
    assert vb.load_problem(first.kernel).id == first.id


@pytest.mark.parametrize("allocator", [linear_scan, graph_coloring])
def test_what_an_allocator_gives_is_what_verify_takes(
    problem: vb.Problem, allocator: object
) -> None:
    assignment = allocator(problem)  # type: ignore[operator]
    assert vb.verify(problem, assignment).valid
    answer = vb.allocate(problem, allocator.__name__.replace("_", "-"))  # type: ignore[attr-defined]
    assert vb.verify(problem, answer) == vb.verify(problem, assignment)
    assert vb.verify(ROW.id, dict(answer.assignment)).valid
    for name, told in (("%0", "'%0': expected 'v0', not 5"), (0, "0: expected PhysicalRegister")):
        with pytest.raises(vb.InputError, match=told):
            vb.verify(problem, {name: 5})  # type: ignore[dict-item]


def test_every_judge_is_asked(problem: vb.Problem) -> None:
    answer = vb.allocate(problem, "linear-scan")
    verdict = vb.verify(problem, answer, judge="all")
    assert verdict == vb.verify(problem, answer) == vb.verify(problem, answer, judge="independent")
    assert {w.judge for w in vb.opinion(problem, answer).words} >= {"fast", "independent"}
    with pytest.raises(vb.InputError, match="no verdict"):
        vb.verify(problem, answer, judge="value-walk")
    (word,) = vb.opinion(problem, answer, "executor").words  # the name that it had
    assert word.judge == "value-walk"
    with pytest.raises(vb.InputError, match="unknown judge 'nobody'"):
        vb.verify(problem, answer, judge="nobody")


def test_judges_that_disagree_are_an_error(
    problem: vb.Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    from verilocc_bench.verification.judges import Judges, Opinion, Word

    answer = vb.allocate(problem, "linear-scan")
    right = vb.verify(problem, answer)
    wrong = vb.verify(problem, {**answer.assignment, "%0": "s200"})
    words = (Word("fast", right), Word("independent", wrong))
    monkeypatch.setattr(Judges, "ask", lambda *_: Opinion(words))
    with pytest.raises(vb.ContradictionError, match="fast accepts what independent rejects"):
        vb.verify(problem, answer, judge="all")


def test_a_wrong_answer_says_so(problem: vb.Problem) -> None:
    everything = dict.fromkeys(vb.allocate(problem, "linear-scan").assignment, "v0")
    verdict = vb.verify(problem, everything)
    assert not verdict.valid
    assert repr(verdict).startswith(f"<Verdict on {ROW.id}: wrong: ")
    assert verdict.findings[0].message in repr(verdict)
    with pytest.raises(vb.InputError, match="not a list"):
        vb.verify(problem, [])  # type: ignore[arg-type]


def test_an_answer_file_is_an_answer(problem: vb.Problem, tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text(json.dumps({"id": ROW.id, "assignment": ROW.label}))
    assert vb.verify(problem, path).valid
    path.write_text(json.dumps({"id": ROWS[1].id, "assignment": ROW.label}))
    with pytest.raises(vb.InputError, match="the answer is for"):
        vb.verify(problem, str(path))


def test_an_allocator_without_an_answer(problem: vb.Problem) -> None:

    def broken(_problem: AllocationProblem, _seed: int) -> dict[str, str]:
        raise LookupError("a reason")

    with pytest.raises(vb.AllocationFailed, match=r"(?s)in broken.*LookupError: a reason"):
        vb.allocate(problem, broken)
    with pytest.raises(vb.InputError, match="no setting 'temperature'"):
        vb.allocate(problem, "linear-scan", temperature=1)
    assert vb.allocate(problem, "linear-scan", decoding="guided", verifier_calls=2).assignment
    with pytest.raises(vb.InputError, match="decoding='loud'"):
        vb.allocate(problem, "linear-scan", decoding="loud")
    with pytest.raises(vb.InputError, match="is not an allocator"):
        vb.allocate(problem, 7)


def test_a_bound_is_below_every_answer(problem: vb.Problem) -> None:
    found = vb.bound(problem, solver=False)
    used = vb.verify(problem, vb.allocate(problem, "linear-scan")).registers_used
    assert used is not None
    assert 0 < found.value <= used["vector"]
    assert f"at least {found.value} registers of vector" in repr(found)


def test_lowering(problem: vb.Problem, tmp_path: Path) -> None:
    answer = vb.allocate(problem, "linear-scan")
    lowered = vb.lower(problem, answer, tmp_path / "kernel.mir")
    assert (tmp_path / "kernel.mir").read_text() == lowered.data
    assert repr(lowered).startswith("<LoweredCode of ")
    wrong = dict.fromkeys(answer.assignment, "v0")
    with pytest.raises(vb.InputError, match="wrong answer cannot be lowered"):
        vb.lower(problem, wrong, tmp_path / "wrong.mir")
    with pytest.raises(vb.InputError, match="with its code"):
        vb.lower(AllocationProblem.from_text(ROW.normalized), answer, tmp_path / "wrong.mir")
    with pytest.raises(vb.InputError, match=r"kernel\.exe"):
        vb.lower(problem, answer, tmp_path / "kernel.exe")
    assert [path.name for path in tmp_path.iterdir()] == ["kernel.mir"]


@pytest.mark.slow
def test_pictures(problem: vb.Problem, tmp_path: Path) -> None:
    picture = vb.show(problem)
    assert picture._repr_png_() == picture.data
    assert picture.data.startswith(b"\x89PNG")
    drawn = vb.show(problem, vb.allocate(problem, "linear-scan"), tmp_path / "kernel.svg")
    assert (tmp_path / "kernel.svg").read_bytes() == drawn.data
    assert drawn._repr_svg_() == drawn.data.decode()
    with pytest.raises(vb.InputError, match=r"\.svg"):
        drawn.save(tmp_path / "kernel.png")
    wrong = dict.fromkeys(vb.allocate(problem, "linear-scan").assignment, "v0")
    assert vb.show(problem, wrong).data != picture.data
    page = vb.show(problem, wrong, tmp_path / "kernel.html")
    assert page.data.startswith(b"<!DOCTYPE html>")
