"""The facts of one kernel that the study counts."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dataset_builders.sweeps.experts import EXPERT_KERNELS
from verilocc_bench.analysis import VECTOR, AllocationProblem
from verilocc_bench.analysis.lower_bounds.shapes import shapes_of_value
from verilocc_bench.dataset import Row
from verilocc_bench.verification import FastVerifier

OWN = "our Triton kernels"
"""The library of kernels that are not experts'."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """One kernel: its registers, what they cost, and the shape of its function.

    `room` is the number of registers that it could use besides its own without
    losing occupancy. `spills` counts stores to the stack. `opcodes` and
    `widths` (lanes of vector registers) are counts.
    """

    id: str
    library: str
    arch: str
    family: str
    kernel: str
    instructions: int
    loop_depth: int
    bound: int
    label: int
    best: int
    occupancy: int
    best_occupancy: int
    room: int
    conflicts: int
    best_conflicts: int
    spills: int
    opcodes: Mapping[str, int]
    widths: Mapping[int, int]

    @property
    def gap(self) -> int:
        """Registers of the label above the bound."""
        return self.label - self.bound


def facts_of(rows: Iterable[Row]) -> list[KernelFacts]:
    """The facts of all rows that have a label and a best answer, in their order."""
    return [_facts(row) for row in rows if row.best_lower_bound is not None]


def _facts(row: Row) -> KernelFacts:
    problem = AllocationProblem.from_text(row.normalized, f"row {row.id}")
    used = json.loads(row.registers_used or "{}")
    occupancy = row.occupancy or 0
    best_occupancy = occupancy
    if row.best_label is not None:
        best_occupancy = FastVerifier(problem).verify(row.best_label).occupancy or 0
    function = problem.function
    vector = set(problem.target.vector_files)
    return KernelFacts(
        id=row.id,
        library=EXPERT_KERNELS.get(row.kernel, (OWN, ""))[0],
        arch=row.arch,
        family=row.family,
        kernel=row.kernel,
        instructions=row.n_instructions,
        loop_depth=max(problem.loop_depths),
        bound=row.best_lower_bound or 0,
        label=used[VECTOR],
        best=row.best_registers_used or 0,
        occupancy=occupancy,
        best_occupancy=best_occupancy,
        room=_room(problem, used, occupancy),
        conflicts=row.bank_conflicts or 0,
        best_conflicts=row.best_bank_conflicts or 0,
        spills=json.loads(row.provenance).get("spill_stores", 0),
        opcodes=Counter(_stem(each.opcode) for _, _, each in function.instructions()),
        widths=Counter(
            each.width
            for each in function.virtual_registers
            if {part.file for part in each.ranges} <= vector
        ),
    )


def _stem(opcode: str) -> str:
    """The opcode without its modifiers."""
    return opcode.split(".", maxsplit=1)[0].removesuffix("_e32").removesuffix("_e64")


def _room(problem: AllocationProblem, used: Mapping[str, int], occupancy: int) -> int:
    budget = sum(
        file.count for file in problem.function.files if file.name in problem.target.vector_files
    )

    def costs_occupancy(registers: int) -> bool:
        shapes = shapes_of_value(problem, VECTOR, registers)
        shape = next(iter(shapes), None)
        return shape is None or problem.occupancy({**used, **dict(shape)}) < occupancy

    more = range(used[VECTOR] + 1, budget + 1)
    return bisect_left(more, True, key=costs_occupancy)
