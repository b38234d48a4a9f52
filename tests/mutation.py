"""Corruptions of valid answers."""

import random

from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.selftest.mutate import OPERATORS, MutableAssignment


def mutate(
    problem: AllocationProblem, answer: MutableAssignment, generator: random.Random
) -> tuple[str, MutableAssignment]:
    """The name of an operator and the answer after it (now and then the same answer)."""
    name = generator.choice(list(OPERATORS))
    mutant = dict(answer)
    OPERATORS[name](problem, mutant, generator)
    return name, mutant
