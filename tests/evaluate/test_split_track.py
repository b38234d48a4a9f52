"""Evaluation of answers with edits, and of answers with very many findings."""

from __future__ import annotations

import json
from pathlib import Path

from verilocc_bench.allocators import BUILT_IN, Request
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.cli import main
from verilocc_bench.dataset import load_rows
from verilocc_bench.evaluate import answer_to_json, ask, parse_answer, resolve_model
from verilocc_bench.verify import Verifier


def test_predictions_with_edits_are_judged(tmp_path: Path) -> None:
    rows = [row for row in load_rows("mini", track="split").rows if row.kernel == "gemm"]
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
    command += ["--family", "gemm", "--samples", "2", "--output-path", str(tmp_path / "out")]
    assert main(command) == 0
    samples = [
        json.loads(line)
        for line in (tmp_path / "out/samples.jsonl").read_text().split("\n")
        if line
    ]
    assert [sample["valid"] for sample in samples] == [True, False] * len(rows)
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
    sample, _ = ask(allocator, Request(problem), Verifier(problem))
    assert sample.verdict is not None
    assert len(sample.verdict.findings) == 100
    assert sample.findings_count > 10_000
    assert sample.to_json(row)["findings_count"] == sample.findings_count
