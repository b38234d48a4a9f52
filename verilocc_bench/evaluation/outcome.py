"""The quality of a valid answer."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.bank_conflicts import (
    LOOP_WEIGHT,
    count_bank_conflicts,
    count_identity_copies,
)
from verilocc_bench.analysis.lower_bounds.infeasibility import check_against_answer
from verilocc_bench.edits import (
    GUARD,
    Answer,
    EditedFunction,
    Move,
    NamedAssignment,
    Reload,
    Rematerialize,
    Spill,
    edit_function,
    replaced_function,
)
from verilocc_bench.edits.findings import Verdict
from verilocc_bench.errors import InputError
from verilocc_bench.evaluation.prepared import PreparedRow
from verilocc_bench.evaluation.records import Outcome
from verilocc_bench.evaluation.score import certified_bound


def measure_outcome(
    prepared: PreparedRow, answer: Answer, verdict: Verdict, sample: int
) -> Outcome:
    """The quality of a valid answer, which is sample number `sample` of its function.

    Raises ContradictionError if an answer without edits uses fewer registers
    than are live at once, and InputError if its row says that more are needed.
    """
    assert verdict.registers_used is not None
    assert verdict.occupancy is not None
    problem, label = prepared.problem, prepared.label
    label_used = None if label is None else label.registers_used
    edited = None
    if answer.has_edits:
        edited, _ = edit_function(problem.function, problem.target, answer.edits)
    registers, bound = verdict.registers_used[VECTOR], problem.pressure.maximum[VECTOR]
    if edited is None:
        check_against_answer(problem, bound, registers, f"sample {sample}")
        claimed = prepared.row.best_lower_bound
        if claimed is not None and registers < claimed:
            raise InputError(
                f"the column 'best_lower_bound' is {claimed}, yet a valid answer uses "
                f"{registers} registers: expected a bound that holds",
                source=f"row {problem.id}",
            )
        proved = certified_bound(problem.id)
        check_against_answer(problem, proved, registers, f"sample {sample}")
    spill_cost, move_cost, at_bound = None, None, None
    if prepared.row.track == "split":
        spill_cost, move_cost = (0, 0) if edited is None else edit_costs(problem, edited)
    else:
        least = certified_bound(problem.id, bound, prepared.row.best_lower_bound)
        # What the bound would allow, if nothing else limits it.
        at_bound = problem.occupancy({problem.target.vector_files[0]: least})
    executed, assignment = _as_executed(problem, answer, edited)
    return Outcome(
        sample=sample,
        registers=registers,
        label_registers=None if label_used is None else label_used[VECTOR],
        bound=bound,
        occupancy=verdict.occupancy,
        label_occupancy=None if label is None else label.occupancy,
        identity_copies=count_identity_copies(executed, assignment),
        bank_conflicts=count_bank_conflicts(executed, assignment),
        spill_cost=spill_cost,
        move_cost=move_cost,
        occupancy_at_bound=at_bound,
    )


def edit_costs(problem: AllocationProblem, edited: EditedFunction) -> tuple[int, int]:
    """The cost of inserted spills and reloads, and the cost of moves and rematerializations.

    Counts lanes (32-bit units), times 10 for every loop around. An edge is in
    the loops that contain both its ends.
    """
    spill_cost = move_cost = 0
    depths = problem.loop_depths
    places = [(depths[block], actions) for (block, _), actions in edited.before.items()]
    places += [(problem.edge_depth(*edge), actions) for edge, actions in edited.on_edge.items()]
    for depth, actions in places:
        for action in actions:
            weight = LOOP_WEIGHT**depth
            match action:
                case Move(pairs):
                    move_cost += weight * sum(to.count for to, _ in pairs)
                case Spill(slots, _) | Reload(_, slots):
                    spill_cost += weight * slots.count
                case Rematerialize(destination):
                    move_cost += weight * destination.count
                case _:
                    assert_never(action)
    return spill_cost, move_cost


def _as_executed(
    problem: AllocationProblem, answer: Answer, edited: EditedFunction | None
) -> tuple[AllocationProblem, NamedAssignment]:
    """The function with its operands replaced as the answer says, and registers for it."""
    if edited is None:
        return problem, answer.assignment
    # Guards play no part in what is measured, and may lie in lanes of wider registers.
    operands = {key: lanes for key, lanes in edited.replaced.items() if key[2] != GUARD}
    function, numbers = replaced_function(replace(edited, replaced=operands))
    assignment = {f"%{new}": answer.assignment[f"%{old}"] for old, new in numbers.items()}
    return AllocationProblem(function), assignment
