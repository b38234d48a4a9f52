"""Checks that a lower bound is proved by what it carries.

The checker shares nothing with the search but the records.

- Two lanes cannot share a unit: by where they are defined and live
  (analysis.liveness).
- No shape is missing: by the target's count of registers.
- One clique does not fit: by a matching of lanes and units with augmenting
  paths, where the search uses Hall's condition.
- Kinds that need a solver: the checker solves them again, from the cliques
  alone and in another formulation (lower_bounds.solve_again and
  lower_bounds.solve_blocks_again).
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations, product

from verilocc_bench.analysis.lower_bounds.records import (
    BoundKind,
    Clique,
    LowerBound,
    Refutation,
    Shape,
)
from verilocc_bench.analysis.pressure import VECTOR
from verilocc_bench.analysis.problem import AllocationProblem
from verilocc_bench.errors import InputError
from verilocc_bench.ir import FixedUnits, RegisterClass


def check_certificate(problem: AllocationProblem, bound: LowerBound) -> None:
    """Checks the proof of a bound.

    Raises InputError with the fault if the bound is not proved. Raises
    MissingExtraError if the proof needs a solver that is not installed.
    """
    source = f"bound of {problem.id}"
    _check_shapes(problem, bound, source)
    # Dozens of refutations may contain the same clique.
    for clique in dict.fromkeys(c for r in bound.refutations for c in r.cliques):
        _check_clique(problem, clique, source)
    for refutation in bound.refutations:
        _check_lanes_within(problem, refutation, source)
        if not _is_refuted(problem, refutation):
            raise InputError(
                f"the lanes of the {refutation.kind} refutation fit within "
                f"{dict(refutation.shape)}: expected a contradiction",
                source=source,
            )


def _check_shapes(problem: AllocationProblem, bound: LowerBound, source: str) -> None:
    """Raises InputError if an allocation of fewer registers may fit no refuted shape.

    A shape must limit every file in which lanes of the bound's files may lie: a
    refutation proves nothing about a file that its shape leaves out.
    """
    refuted = [dict(refutation.shape) for refutation in bound.refutations]
    wanted = _reached_files(problem, bound)
    for refutation, shape in zip(bound.refutations, refuted, strict=True):
        if len(shape) < len(refutation.shape) or not shape.keys() >= wanted:
            limits = ", ".join(f"{file} {limit}" for file, limit in refutation.shape)
            raise InputError(
                f"the shape {limits or 'without limits'} does not speak of each of "
                f"{', '.join(sorted(wanted))} once: expected one limit for each of these files",
                source=source,
            )
    for used in _smaller_allocations(problem, bound):
        if not any(all(used[f] <= limit for f, limit in shape.items()) for shape in refuted):
            raise InputError(
                f"no refutation covers {used}, which is less than {bound.value}: "
                f"expected one for every shape",
                source=source,
            )


def _reached_files(problem: AllocationProblem, bound: LowerBound) -> set[str]:
    """The counted files, the files in which their lanes may lie instead, and so on transitively."""
    counted = problem.target.vector_files if bound.group == VECTOR else (bound.group,)
    classes = [set(each.files) for each in set(problem.function.virtual_registers)]
    reached, larger = set[str](), set(counted)
    while larger > reached:
        reached = larger
        larger = reached.union(*(files for files in classes if not files.isdisjoint(reached)))
    return reached


def _smaller_allocations(problem: AllocationProblem, bound: LowerBound) -> list[Mapping[str, int]]:
    """The maximal counts by file of the allocations that use fewer registers than the bound."""
    target = problem.target
    least, most = _extents(problem)
    counted = target.vector_files if bound.group == VECTOR else (bound.group,)
    found: list[Mapping[str, int]] = []
    *leading, last = counted
    for limits in product(*(range(least[file], most[file] + 1) for file in leading)):
        for end in range(most[last], least[last] - 1, -1):
            used = {**most, **dict(zip(leading, limits, strict=True)), last: end}
            scored = {file: used[file] for file in counted}
            value = target.vector_use(scored) if bound.group == VECTOR else end
            if value < bound.value:
                found.append(used)
                break
    return found


def _extents(problem: AllocationProblem) -> tuple[dict[str, int], dict[str, int]]:
    """By file: the end of the units that the function itself names, and the most it could use."""
    least = {file.name: 0 for file in problem.target.files}
    locations = [*problem.function.live_ins]
    for _, _, instruction in problem.function.instructions():
        named = [o.location for o in instruction.definitions + instruction.uses]
        if instruction.guard is not None:
            named.append(instruction.guard.location)
        locations += [location for location in named if isinstance(location, FixedUnits)]
    for units in locations:
        least[units.file] = max(least[units.file], units.first + units.count)
    most = dict(least)
    for register_class in set(problem.function.virtual_registers):
        for bases in register_class.ranges:
            most[bases.file] = max(most[bases.file], bases.last + register_class.width)
    return least, most


def _check_clique(problem: AllocationProblem, clique: Clique, source: str) -> None:
    """Raises InputError if two lanes of different registers could share a unit."""
    liveness, classes = problem.liveness, problem.function.virtual_registers
    numbers: list[tuple[int, int]] = []
    for register, lane in clique.lanes:
        if not (0 <= register < len(classes) and 0 <= lane < classes[register].width):
            raise InputError(f"there is no lane {lane} of %{register}", source=source)
        numbers.append((register, liveness.lane_offsets[register] + lane))
    for unit in clique.fixed:
        if unit not in liveness.fixed_lanes:
            raise InputError(f"the function does not name {unit[0]}{unit[1]}", source=source)
        number = liveness.virtual_lane_count + liveness.fixed_lanes.index(unit)
        numbers.append((-1 - number, number))
    if len(set(numbers)) < len(numbers):
        raise InputError("a clique names a lane twice", source=source)
    lives = [(owner, liveness.live[n], liveness.defined[n]) for owner, n in numbers]
    for (a, live, defined), (b, other_live, other_defined) in combinations(lives, 2):
        if a != b and not (live & other_defined or defined & other_live):
            raise InputError(
                f"lanes of %{a} and %{b} can share a unit: expected a clique", source=source
            )


def _check_lanes_within(problem: AllocationProblem, refutation: Refutation, source: str) -> None:
    """Raises InputError if a lane may lie in a file that the shape does not limit."""
    classes, limited = problem.function.virtual_registers, {file for file, _ in refutation.shape}
    for register in sorted({r for clique in refutation.cliques for r, _ in clique.lanes}):
        if not limited.issuperset(classes[register].files):
            raise InputError(
                f"%{register} may be in {' or '.join(classes[register].files)}, the shape limits "
                f"{', '.join(sorted(limited))}: expected lanes of these files alone",
                source=source,
            )


def _is_refuted(problem: AllocationProblem, refutation: Refutation) -> bool:
    from verilocc_bench.analysis.lower_bounds.solve_again import (
        no_placement_exists,
        no_schedule_exists,
    )
    from verilocc_bench.analysis.lower_bounds.solve_blocks_again import no_filling_exists

    match refutation.kind:
        case BoundKind.PRESSURE | BoundKind.RESIDUES:
            return any(not _has_matching(problem, c, refutation.shape) for c in refutation.cliques)
        case BoundKind.RESIDUE_SCHEDULE:
            return no_schedule_exists(problem, refutation)
        case BoundKind.BLOCKS:
            return no_filling_exists(problem, refutation)
        case BoundKind.PLACEMENT:
            return no_placement_exists(problem, refutation)


def _has_matching(problem: AllocationProblem, clique: Clique, shape: Shape) -> bool:
    """True if every lane can have its own unit at which a legal base of its register puts it."""
    choices = _choices(problem, clique, shape)
    if len(frozenset().union(*choices)) < len(choices):
        return False
    holder: dict[int, int] = {}

    def place(lane: int, tried: set[int]) -> bool:
        for unit in choices[lane]:
            if unit not in tried:
                tried.add(unit)
                if unit not in holder or place(holder[unit], tried):
                    holder[unit] = lane
                    return True
        return False

    # Lanes with few choices go first: the augmenting paths are then short.
    order = sorted(range(len(choices)), key=lambda lane: len(choices[lane]))
    return all(place(lane, set()) for lane in order)


def _choices(problem: AllocationProblem, clique: Clique, shape: Shape) -> list[frozenset[int]]:
    placements, classes = problem.placements, problem.function.virtual_registers
    ends = [(placements.first_unit[f], placements.first_unit[f] + n) for f, n in shape]
    # Registers of one class are many: where their lanes fit is worked out once.
    found: dict[tuple[RegisterClass, int], frozenset[int]] = {}
    choices = []
    for register, lane in clique.lanes:
        kind = classes[register]
        if (kind, lane) not in found:
            bases = [
                base
                for base in placements.legal[kind]
                if any(first <= base and base + kind.width <= end for first, end in ends)
            ]
            found[kind, lane] = frozenset(base + lane for base in bases)
        choices.append(found[kind, lane])
    choices += [frozenset([placements.first_unit[file] + unit]) for file, unit in clique.fixed]
    return choices
