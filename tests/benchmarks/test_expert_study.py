"""The study of experts' kernels, on those that the package embeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.expert_study import __main__ as command
from benchmarks.expert_study import best_answers
from benchmarks.expert_study.facts import KernelFacts, facts_of
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.dataset import embedded_path, load_rows
from verilocc_bench.verification import FastVerifier

FOLDER = embedded_path().with_name("mini-expert")


@pytest.fixture(scope="module")
def found() -> list[KernelFacts]:
    return facts_of(load_rows("mini:expert").rows)


def test_facts_are_those_of_the_rows(found: list[KernelFacts]) -> None:
    for row, facts in zip(load_rows("mini:expert").rows, found, strict=True):
        used = json.loads(row.registers_used or "")
        assert (facts.label, facts.best) == (used["vector"], row.best_registers_used)
        assert facts.gap == used["vector"] - (row.best_lower_bound or 0) >= 0
        assert facts.best_occupancy >= facts.occupancy == row.occupancy
        assert sum(facts.opcodes.values()) == row.n_instructions
        problem = AllocationProblem.from_text(row.normalized)
        if row.arch == "sm_80":
            most = {**used, "R": used["R"] + facts.room}
            assert problem.occupancy(most) == row.occupancy
            if used["R"] + facts.room < 253:
                assert problem.occupancy({**most, "R": most["R"] + 1}) < facts.occupancy
        lanes = [each.width for each in problem.function.virtual_registers]
        assert sum(facts.widths.values()) <= len(lanes)
        assert set(facts.widths) <= set(lanes)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, images = tmp_path / "page.md", tmp_path / "images"
    results = tmp_path / "runs" / "linear-scan"
    results.mkdir(parents=True)
    overall = {"n": 6, "pass@1": 0.5, "registers_ratio": 1.02, "share_better": 0.25}
    overall |= {"share_worse": 0.25, "gap_to_bound": None}
    (results / "results.json").write_text(json.dumps({"results": {"overall": overall}}))
    write_best_run(tmp_path / "runs" / "best")
    arguments = [str(FOLDER), "--sweep", "mini:expert", "--results", str(tmp_path / "runs")]
    monkeypatch.setattr("sys.argv", ["study", *arguments, "-o", str(page), "--images", str(images)])
    assert command.main() == 0
    text = page.read_text()
    assert "Of 6 kernels of experts" in text
    assert "2 of aiter, 2 of cutlass, 2 of flash-attention, of the first 6 of the sweep's " in text
    assert "| linear-scan" in text
    assert "On gfx942 2 of 2 best answers have machine code, and 2 of these run" in text
    assert "On sm_80 1 of 2 best answers have machine code, and 0 of these run" in text
    (waits,) = (line for line in text.splitlines() if "| aiter" in line and "| waits" in line)
    words = [word.strip() for word in waits.split("|")]
    assert words[2:-1] == ["gemm", "waits", "40", "30", "-25.0 %", "1", "0"]
    assert "50 %" in text
    assert (images / "expert-functions.svg").read_text().startswith("<?xml")
    monkeypatch.setattr("sys.argv", ["study", str(tmp_path), "-o", str(page), "--images", "x"])
    assert command.main() == 2


def write_best_run(folder: Path) -> None:
    """A run whose first four answers were counted; the last of these was refused."""
    kernels = [{"id": row.id} for row in load_rows("mini:expert").rows]
    counts = [({"loop_waits": 30}, {"loop_waits": 40}), ({}, {"loop_waits": 7}), ({}, {})]
    for kernel, (answer, label) in zip(kernels, counts, strict=False):
        code = {"answer": answer, "label": label, "runnable": len(label) > 0, "refused": None}
        kernel["machine_code"] = code
    refused = {"answer": None, "label": None, "runnable": None, "refused": "for some reason"}
    kernels[3]["machine_code"] = refused
    folder.mkdir()
    (folder / "results.json").write_text(json.dumps({"results": {}, "kernels": kernels}))


def test_the_best_answers_are_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = tmp_path / "best.jsonl"
    monkeypatch.setattr("sys.argv", ["best_answers", "mini:expert", "-o", str(output)])
    assert best_answers.main() == 0
    answers = {
        line["id"]: line["assignment"] for line in map(json.loads, output.read_text().splitlines())
    }
    for row in load_rows("mini:expert").rows:
        verdict = FastVerifier(AllocationProblem.from_text(row.normalized)).verify(answers[row.id])
        assert verdict.registers_used is not None
        assert verdict.registers_used["vector"] == row.best_registers_used
    monkeypatch.setattr("sys.argv", ["best_answers", str(tmp_path), "-o", str(output)])
    assert best_answers.main() == 2
