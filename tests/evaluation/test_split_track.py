"""Evaluation of answers with edits, and of answers with very many findings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from verilocc_bench.allocators import BUILT_IN, Allocator, Request, Response, SingleAllocator
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows
from verilocc_bench.edits import (
    Answer,
    At,
    EditKind,
    Edits,
    Insertion,
    RegisterSpan,
    Replacement,
    parse_edits,
)
from verilocc_bench.edits.answer_files import answer_to_json, parse_answer
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation import judge, resolve_model
from verilocc_bench.evaluation.judging import FINDINGS_KEPT
from verilocc_bench.evaluation.outcome import measure_outcome
from verilocc_bench.evaluation.prepared import PreparedRow
from verilocc_bench.ir import VirtualLanes
from verilocc_bench.verification import Verdict, Verifier


@pytest.mark.slow
def test_predictions_with_edits_are_judged(tmp_path: Path) -> None:
    kernels = load_rows("mini", track="split").rows
    rows = [row for row in kernels if (row.family, row.arch) == ("gemm", "gfx942")]
    lines = []
    for row in rows:
        problem = AllocationProblem.from_text(row.normalized)
        answer = BUILT_IN["spill-everywhere"].allocate(Request(problem))
        right = answer_to_json(row.id, answer)
        assert parse_answer(right, "x") == (row.id, answer)
        wrong = json.loads(json.dumps(right))
        del wrong["edits"]["insert"][0]
        lines += [json.dumps(right), json.dumps(wrong)]
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n")
    command = ["evaluate", "--model", f"predictions:{path}", "--track", "split"]
    command += ["--arch", "gfx942", "--family", "gemm", "--samples", "2"]
    command += ["--output-path", str(tmp_path / "out")]
    assert main(command) == 0
    lines = (tmp_path / "out/samples.jsonl").read_text().splitlines()
    samples = [json.loads(line) for line in lines if line]
    assert [sample["valid"] for sample in samples] == [True, False] * len(rows) != []
    kinds = {f["kind"] for sample in samples for f in sample["verdict"]["findings"]}
    assert kinds == {"wrong_value"}


def test_of_very_many_findings_the_first_are_kept(tmp_path: Path) -> None:
    row = max(
        (r for r in load_rows("mini").rows if r.arch == "gfx942"), key=lambda r: r.n_instructions
    )
    problem = AllocationProblem.from_text(row.normalized)
    assert row.label is not None
    answer = {key: "v0" if name.startswith("v") else name for key, name in row.label.items()}
    path = tmp_path / "answers.jsonl"
    path.write_text(json.dumps({"id": row.id, "assignment": answer}) + "\n")
    allocator = resolve_model(f"predictions:{path}")
    judged = judge(Verifier(problem), _response(allocator, problem), 0)
    assert judged.verdict is not None
    assert len(judged.verdict.findings) == FINDINGS_KEPT
    assert judged.sample.findings_count > 10_000


def test_edits_are_wrong_on_the_assign_track() -> None:
    row = min((r for r in load_rows("mini").rows), key=lambda r: r.n_instructions)
    assert row.label is not None
    prepared, new = PreparedRow(row), f"%{row.n_virtual_registers}"
    name = prepared.problem.function.virtual_registers[0].name
    edits = parse_edits({"new": {new: name}})
    answer = Answer({**row.label, new: row.label["%0"]}, edits)
    judged = judge(prepared.verifier, Response(answer), 0)
    assert not judged.sample.valid
    assert judged.sample.finding_kinds == ("invalid_edit",)
    assert judge(Verifier(prepared.problem), Response(answer), 0).sample.valid
    none = Answer(row.label, parse_edits({}))
    assert judge(prepared.verifier, Response(none), 0).sample.valid


def _response(allocator: Allocator, problem: AllocationProblem) -> Response:
    ((_, response),) = allocator.respond([Request(problem)])
    return response


class _Replay(SingleAllocator):
    def __init__(self, answer: Answer) -> None:
        self.answer = answer

    def allocate(self, request: Request) -> Answer:
        return self.answer


def test_malformed_edits_of_foreign_code_are_counted_failures() -> None:
    row = next(row for row in load_rows("mini", track="split").rows if row.kernel == "gemm")
    problem = AllocationProblem.from_text(row.normalized)
    verifier = Verifier(problem)
    for edits in (
        Edits({"1": "V"}),
        Edits({2: "V"}, None),
        Edits({}, (1,)),
        Edits({}, (Insertion(None, EditKind.MOVE, ()),)),
        Edits({}, (Insertion(At(0, 0), EditKind.SPILL, ()),)),
        Edits({9999: None}),
        Edits({}, (), (Replacement(-1, 1, 0, RegisterSpan(0)),)),
    ):
        allocator = _Replay(Answer({"%0": "s0"}, edits))
        judged = judge(verifier, _response(allocator, problem), 0)
        assert judged.sample.failure == "unparsable", edits


def test_a_guard_in_a_lane_of_a_pair_is_measured() -> None:
    row = next(r for r in load_rows("mini").rows if r.arch == "sm_80" and "@%" in r.normalized)
    prepared = PreparedRow(row)
    function = prepared.problem.function
    block, index, guard = next(
        (b, i, instruction.guard.location)
        for b, i, instruction in function.instructions()
        if instruction.guard is not None and isinstance(instruction.guard.location, VirtualLanes)
    )
    new = f"%{len(function.virtual_registers)}"
    edits = {
        "new": {new: "P2 2 P"},
        "insert": [{"at": [block, index], "move": [[f"{new}.1", f"%{guard.register}"]]}],
        "replace": [[block, index, "guard", f"{new}.1"]],
    }
    answer = Answer({**(row.label or {}), new: "P5"}, parse_edits(edits))
    verdict = Verifier(prepared.problem).verify(answer)
    assert verdict.valid
    assert measure_outcome(prepared, answer, verdict, 0).registers > 0


def test_an_answer_beyond_the_bounds_of_the_checker_is_a_counted_failure() -> None:
    class Bounded(Verifier):
        def verify(self, answer: object, findings: int | None = None) -> Verdict:
            raise InputError("the guards depend on each other in too many ways")

    row = load_rows("mini").rows[0]
    problem = AllocationProblem.from_text(row.normalized)
    allocator = BUILT_IN["linear-scan"]
    judged = judge(Bounded(problem), _response(allocator, problem), 0)
    assert (judged.sample.failure, judged.valid) == ("beyond_analysis", False)
