"""Bounds that no assignment can meet: what they prove, and how they are put into words.

Where nothing fits at all, the value of a bound is beyond all registers that the
function may use. That is a proof, and no number of registers that would do: it
is told by the lanes that find no room.
"""

from __future__ import annotations

from verilocc_bench.analysis.lower_bounds.records import Clique, LowerBound, Shape
from verilocc_bench.analysis.lower_bounds.shapes import most_registers
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.errors import ContradictionError

__all__ = [
    "check_against_answer",
    "describe_place",
    "describe_shape",
    "proves_infeasible",
    "why_infeasible",
]


def proves_infeasible(problem: AllocationProblem, bound: LowerBound) -> bool:
    """Whether the bound is above what any assignment uses, so that there is no valid one."""
    return bound.value > most_registers(problem.function, problem.target, bound.group)


def why_infeasible(problem: AllocationProblem, bound: LowerBound) -> str:
    """In one line which lanes do not fit into what the function may use."""
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
    """Where the lanes of a clique are live together."""
    if clique.instruction < 0:
        return "at the entry"
    instruction = problem.function.blocks[clique.block].instructions[clique.instruction]
    return f"after bb{clique.block} instruction {clique.instruction} ({instruction.opcode})"


def check_against_answer(problem: AllocationProblem, value: int, registers: int, what: str) -> None:
    """Raises ContradictionError where a valid answer uses fewer registers than are proved needed.

    `value` is the bound's; `what` names the answer.
    """
    if registers < value:
        raise ContradictionError(
            f"function {problem.id}: {what} is valid and uses {registers} registers, "
            f"a lower bound says that {value} are needed"
        )
