"""An answer read against its function: its names as registers, its edits as actions."""

from __future__ import annotations

from dataclasses import dataclass

from verilocc_bench.analysis.placement import parse_register_name
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.edits import Answer, AnswerLike, EditedFunction, edit_function
from verilocc_bench.ir import Assignment


@dataclass(frozen=True, slots=True)
class ResolvedAnswer:
    """The registers of an answer, by the number of the virtual register.

    `edited` is the function with the answer's edits; None for an answer without
    edits. With edits, `registers` includes the virtual registers that they make.
    """

    edited: EditedFunction | None
    registers: Assignment


def resolve_answer(problem: AllocationProblem, answer: AnswerLike) -> ResolvedAnswer:
    """The registers that an answer names, and the function with its edits.

    Every answer that a judge accepts can be resolved. Raises ValueError for an
    edit that the function does not allow, for a virtual register without a
    register, and for a name that the target does not have.
    """
    answer = Answer.of(answer)
    edited: EditedFunction | None = None
    numbers = range(len(problem.function.virtual_registers))
    if answer.has_edits:
        edited, findings = edit_function(problem.function, problem.target, answer.edits)
        if findings:
            raise ValueError(findings[0].message)
    registers: Assignment = {}
    for number in numbers if edited is None else edited.registers:
        name = answer.assignment.get(f"%{number}", "")
        base = parse_register_name(problem.target, name)
        if base is None:
            raise ValueError(f"%{number} has {name[:40]!r}, which is not a register")
        registers[number] = base
    return ResolvedAnswer(edited, registers)
