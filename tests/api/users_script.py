"""A user's script, checked by mypy strictly and run by the tests."""

from __future__ import annotations

from pathlib import Path

import verilocc_bench as vb


def first_fit(problem: vb.AllocationProblem, seed: int) -> vb.Answer:
    """An allocator of one's own."""
    return vb.allocate(problem, "linear-scan", seed=seed)


def main(folder: Path) -> float:
    """From a problem to a score."""
    problem = vb.load_problems("mini", arch="gfx942", limit=1)[0]
    answer = first_fit(problem, 0)
    verdict = vb.verify(problem, answer)
    assert verdict.valid, verdict.findings[0].message
    assert verdict.registers_used is not None
    assert vb.bound(problem, solver=False).value <= verdict.registers_used["vector"]
    vb.lower(problem, answer, folder / "kernel.mir")
    results = vb.evaluate(first_fit, arch="gfx942", limit=1)
    results.save(folder / "run")
    comparison = vb.load_results(folder / "run").compare(results)
    return comparison.pass_difference
