"""The sides of kernels for a GPU, and the report of what it said."""

from __future__ import annotations

from typing import Any

from benchmarks.silicon.report import by_kind, disagreements, picture, rivals, steps


def side(name: str, blocks: int, ratio: float | None, **more: Any) -> dict[str, Any]:
    found = {"name": name, "role": "same", "verdict": "same bits", "local_bytes": 0}
    found |= {"registers": 90, "said_registers": 90, "blocks": blocks, "said_blocks": blocks}
    if ratio is not None:
        found |= {"ratio": ratio, "ratio_low": ratio - 0.01, "ratio_high": ratio + 0.01}
    return {**found, **more}


def test_the_report_of_a_measurement() -> None:
    sides = [
        side("own", 4, 1.0),
        side("own-larger-count", 3, 1.2),
        side("best-runnable", 5, 0.9, said_registers=88),
        side("ptxas-96", 5, 0.95),
        side("ptxas-64", 6, 1.3),
        side("best", 5, None, verdict="its process ended with status 1"),
    ]
    library = {"name": "torch.matmul", "ratio": 0.5}
    document = {"kernels": [{"key": "gemm-wgmma", "sides": sides, "library": library}]}
    lines = by_kind(document)
    assert "| wgmma | ptxas | 2 | 2 | 0 | 0 | 0 | 2 | 1.111 | 0.950 | 1.300 | 1 | 1 |" in lines
    assert "| wgmma | best | 1 | 0 | 0 | 0 | 1 | 0 | | | | |  |" in lines
    found = [(name, before, after) for _, name, before, after, _ in steps(document)]
    assert found == [("own-larger-count", 4, 3), ("best-runnable", 4, 5)]
    (row,) = rivals(document)[2:]
    assert "0.950 [0.940, 0.960] ptxas-96, 5 blocks | 0.900 [0.890, 0.910] best-runnable" in row
    assert disagreements(document) == [
        "The driver agrees with 11 of 12 counts.",
        "gemm-wgmma best-runnable: 90 registers, not 88",
    ]
    assert "gemm-wgmma: 4 → 5" in picture(document)
