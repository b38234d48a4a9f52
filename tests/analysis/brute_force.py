"""The fewest registers of tiny functions, by trying every assignment."""

from __future__ import annotations

from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import FixedUnits


def fewest_registers(problem: AllocationProblem) -> int | None:
    """Of all valid assignments of the vector files the least count; None if there is none."""
    scored = problem.target.vector_files
    classes = problem.function.virtual_registers
    registers = [r for r, c in enumerate(classes) if set(c.files) & set(scored) or not c.files]
    state = RegisterState(problem)
    best: int | None = None

    def used(ends: dict[str, int]) -> int:
        return problem.target.vector_use(ends)

    def place(place_of: int, ends: dict[str, int]) -> None:
        nonlocal best
        if best is not None and used(ends) >= best:
            return
        if place_of == len(registers):
            best = used(ends)
            return
        register = registers[place_of]
        for unit in state.legal(register):
            base = problem.placements.register(unit)
            end = base.index + classes[register].width
            state.place(register, unit)
            place(place_of + 1, {**ends, base.file: max(ends[base.file], end)})
            state.evict(register)

    place(0, _own_ends(problem))
    return best


def _own_ends(problem: AllocationProblem) -> dict[str, int]:
    ends = {file.name: 0 for file in problem.target.files}
    locations = [*problem.function.live_ins]
    for _, _, instruction in problem.function.instructions():
        named = [o.location for o in instruction.definitions + instruction.uses]
        named += [] if instruction.guard is None else [instruction.guard.location]
        locations += [location for location in named if isinstance(location, FixedUnits)]
    for units in locations:
        ends[units.file] = max(ends[units.file], units.first + units.count)
    return ends
