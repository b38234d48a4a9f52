"""How many vector registers an answer takes."""

from __future__ import annotations

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.verification import FastVerifier


def vector_registers(problem: AllocationProblem, answer: object) -> int:
    """The vector registers of an answer, which must be valid."""
    verdict = FastVerifier(problem).verify(answer)  # type: ignore[arg-type]
    assert verdict.valid
    assert verdict.registers_used is not None
    return verdict.registers_used[VECTOR]
