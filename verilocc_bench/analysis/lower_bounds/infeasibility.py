"""Bounds that no assignment can meet, and their description in words.

If no assignment fits at all, the value of a bound exceeds the registers that
the function may use. The value is then a proof, not a number of registers that
would be enough, so messages name the lanes that do not fit.
"""

from __future__ import annotations

from verilocc_bench.analysis.lower_bounds.records import Clique, LowerBound, Shape
from verilocc_bench.analysis.lower_bounds.shapes import most_registers
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.errors import ContradictionError


def proves_infeasible(problem: AllocationProblem, bound: LowerBound) -> bool:
    """True if the bound exceeds what any assignment can use: then no assignment is valid."""
    return bound.value > most_registers(problem, bound.group)


def why_infeasible(problem: AllocationProblem, bound: LowerBound) -> str:
    """One line that says which lanes do not fit into the registers of the function."""
    refutation = bound.refutations[0]
    clique = max(refutation.cliques, key=lambda each: len(each.lanes) + len(each.fixed))
    lanes = len(clique.lanes) + len(clique.fixed)
    others = len(refutation.cliques) - 1
    elsewhere = f", with those at {others} other points," if others else ""
    return (
        f"{lanes} lanes that cannot share registers {describe_place(problem, clique)}{elsewhere} "
        f"do not fit into {describe_shape(refutation.shape)} ({refutation.kind.value})"
    )


def describe_shape(shape: Shape) -> str:
    """The limits of a shape, such as `v 16, a 8`."""
    return ", ".join(f"{file} {limit}" for file, limit in shape)


def describe_place(problem: AllocationProblem, clique: Clique) -> str:
    """The place of a clique, in words."""
    if clique.instruction < 0:
        return "at the entry"
    instruction = problem.function.blocks[clique.block].instructions[clique.instruction]
    return f"after bb{clique.block} instruction {clique.instruction} ({instruction.opcode})"


def check_against_answer(problem: AllocationProblem, value: int, registers: int, what: str) -> None:
    """Raises ContradictionError if a valid answer uses fewer registers than a lower bound.

    `value` is the value of the bound, `registers` the registers of the answer,
    and `what` names the answer in the message.
    """
    if registers < value:
        raise ContradictionError(
            f"function {problem.id}: {what} is valid and uses {registers} registers, "
            f"a lower bound says that {value} are needed"
        )
