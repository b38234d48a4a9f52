"""What two allocations of one kernel are compared by: counts of their machine code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass

from verilocc_bench.backends.amdgpu.assembly import count_code
from verilocc_bench.backends.amdgpu.assembly_conflicts import conflicts_of_assembly
from verilocc_bench.settings.search import Objective


@dataclass(frozen=True, slots=True)
class CodeFigures:
    """Counts of a kernel's machine code; None where the code does not say it.

    `waves` fit on an execution unit (warps on a multiprocessor for NVIDIA).
    `registers` are the vector registers that the code says it needs.
    `instructions` and `waits` count each once. All others weigh loops: 10 to the
    power of the depth.
    """

    registers: int
    waves: int | None
    instructions: int
    bank_conflicts: int
    waits: int | None = None
    loop_instructions: int | None = None
    loop_waits: int | None = None
    loop_wait_states: int | None = None
    spill_code: int | None = None
    register_moves: int | None = None

    def to_json(self) -> dict[str, int | None]:
        """The figures by name."""
        return asdict(self)


def figures_of_assembly(assembly: str, function: str, arch: str) -> CodeFigures:
    """The figures of a kernel's assembly (gfx90a, gfx942), whoever made it.

    Raises InputError if the assembly does not contain the kernel.
    """
    code = count_code(assembly, function)
    return CodeFigures(
        registers=code.metadata.get("vgprs", 0),
        waves=code.metadata.get("waves"),
        instructions=code.instructions,
        bank_conflicts=conflicts_of_assembly(assembly, function, arch),
        waits=code.waits,
        loop_instructions=code.weighted_instructions,
        loop_waits=code.weighted_waits,
        loop_wait_states=code.weighted_wait_states,
        spill_code=code.weighted_spill_code,
        register_moves=code.weighted_register_moves,
    )


_FIRST: dict[Objective, Callable[[CodeFigures], int]] = {
    Objective.REGISTERS: lambda code: code.registers,
    Objective.BANK_CONFLICTS: lambda code: code.bank_conflicts,
    Objective.COPIES: lambda code: code.register_moves or 0,
    Objective.COMBINED: lambda code: code.bank_conflicts + (code.register_moves or 0),
    Objective.MACHINE_CODE: lambda code: (
        (code.loop_instructions or 0)
        + (code.loop_waits or 0)
        + (code.loop_wait_states or 0)
        + 2 * (code.register_moves or 0)
        + code.bank_conflicts
    ),
}
"""What counts first for each objective, after waves and spill code. Less is better.

For `machine-code` the same things count as in backends.amdgpu.code_cost, but for cycles.
"""


def is_better(ours: CodeFigures, own: CodeFigures, objective: Objective) -> bool:
    """True if our code is better than the compiler's own by the objective.

    More waves and less spill code come first, then what the objective names, then
    registers, bank conflicts, waits by loops, register moves and instructions. For
    `machine-code` registers come last: more of them cost nothing where the waves stay.
    """
    return _cost(ours, objective) < _cost(own, objective)


def _cost(code: CodeFigures, objective: Objective) -> tuple[int, ...]:
    last = objective is Objective.MACHINE_CODE
    return (
        -(code.waves or 0),
        code.spill_code or 0,
        _FIRST[objective](code),
        0 if last else code.registers,
        code.bank_conflicts,
        code.loop_waits or 0,
        code.register_moves or 0,
        code.instructions,
        code.registers,
    )
