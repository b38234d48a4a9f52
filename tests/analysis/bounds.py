"""Small problems with the names of their lanes, for the tests of lower bounds."""

from __future__ import annotations

from typing import Any

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds.records import Clique
from verilocc_bench.selftest.generate import random_function

TARGETS = ("gfx90a", "sm_80")

# %2 and %3 fill the odd units beside %0.0 and %1.0; and elsewhere the even ones beside %4.1, %5.1.
PARITIES = """bb0
%0:V2.0!=OP
%1:V2.0!=OP
%2:V=OP
%3:V=OP
OP %0.0,%1.0
%4:V2.1!=OP
%5:V2.1!=OP
OP %4.1,%5.1,%2,%3
"""


def problems(count: int, target: str, registers: int = 7) -> list[AllocationProblem]:
    return [
        AllocationProblem(random_function(seed, registers=registers, blocks=4, target=target))
        for seed in range(count)
    ]


def groups(problem: AllocationProblem) -> list[str]:
    own = [f.name for f in problem.target.files if f.name not in problem.target.vector_files]
    return [VECTOR, *own]


def names(problem: AllocationProblem) -> list[tuple[Any, int]]:
    classes = problem.function.virtual_registers
    return [
        *((n, i) for n, c in enumerate(classes) for i in range(c.width)),
        *problem.liveness.fixed_lanes,
    ]


def numbers(problem: AllocationProblem, clique: Clique) -> set[int]:
    known = {name: lane for lane, name in enumerate(names(problem))}
    return {known[name] for name in (*clique.lanes, *clique.fixed)}
