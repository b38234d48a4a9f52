"""Chooses the cheapest regions to put away so that no place has too many lanes.

An integer program like Appel and George's ("Optimal Spilling for CISC
Machines with Few Registers", PLDI 2001), over regions instead of points:

    x[r]  the region's unit is elsewhere throughout the region
    e[r]  it is stored where the region is entered
    y[d]  it is stored right after definition d

A region that is put away needs its value at home: y[d] + e[r] >= x[r] for
each definition d that reaches it, unless the value is a constant that can be
made again. Bringing a unit back costs at each access that ends a region, and on
each edge from a region that is put away to one that is not. At each place the
regions that cover it must free the excess lanes. Rows of places that a solution
violates are added until no solution violates any.

CP-SAT solves the program with one worker and a limit in deterministic time. Its
best solution within the limit counts, optimal or not.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from verilocc_bench.allocators.splitting.candidates import Candidates, Cover, RegionKey, SplitPlan
from verilocc_bench.errors import AllocationFailed, MissingExtraError

Needs = Sequence[Mapping[int, Sequence[int]]]
"""`needs[group][block][position]` is the number of excess lanes; blocks without any are absent."""

ROUNDS = 40
MISSING_LANE = 10**6
"""The cost of an excess lane that nothing can put away."""


class Planner:
    """Makes plans for one function; keeps rows, and values as hints, from plan to plan."""

    def __init__(self, candidates: Candidates, deterministic_seconds: float) -> None:
        self.candidates, self.limit = candidates, deterministic_seconds
        self.rows: set[tuple[int, int, int]] = set()
        self.last: Mapping[str, Mapping[Any, int]] = {}

    def plan(self, needs: Needs, forced: Collection[RegionKey] = ()) -> SplitPlan:
        """The cheapest plan found; it always puts away the regions `forced`.

        Raises AllocationFailed if they exclude each other.
        """
        for group, blocks in enumerate(needs):
            for block, row in blocks.items():
                self.rows |= {(group, block, p) for p in _peaks(row)}
        program = _PlanProgram(self, needs, forced)
        for _ in range(ROUNDS):
            plan = program.solve()
            violated = program.violated(plan)
            if not violated:
                break
            self.rows |= violated
        return plan


def _peaks(row: Sequence[int]) -> list[int]:
    """The highest position of each run of positive needs."""
    found: list[int] = []
    best = -1
    for position, need in enumerate(row):
        if need <= 0:
            if best >= 0:
                found.append(best)
            best = -1
        elif best < 0 or need > row[best]:
            best = position
    if best >= 0:
        found.append(best)
    return found


class _PlanProgram:
    """The integer program of one plan."""

    def __init__(self, planner: Planner, needs: Needs, forced: Collection[RegionKey]) -> None:
        self.planner, self.needs, self.forced = planner, needs, forced
        self.candidates = planner.candidates
        self.useful = self._useful()
        self.by_block: dict[tuple[int, int], list[tuple[Cover, RegionKey]]] = {}
        for key in sorted(self.useful):
            group = self.candidates.traits[key[0]].group
            for cover in self.candidates.covers[key]:
                self.by_block.setdefault((group, cover.block), []).append((cover, key))

    def _useful(self) -> set[RegionKey]:
        """The regions that cover a place of need, and those joined to them by edges."""
        found = set(self.forced)
        found |= {key for key in self.candidates.covers if self._is_needed(key)}
        pending = list(found)
        while pending:
            unit, region = pending.pop()
            for edge in self.candidates.units[unit].edges:
                if region in (edge.source, edge.target):
                    other = unit, edge.source + edge.target - region
                    if other in self.candidates.covers and other not in found:
                        found.add(other)
                        pending.append(other)
        return found

    def _is_needed(self, key: RegionKey) -> bool:
        needs = self.needs[self.candidates.traits[key[0]].group]
        for cover in self.candidates.covers[key]:
            row = needs.get(cover.block, ())
            if max(row[max(cover.first, 0) : cover.last + 1], default=0) > 0:
                return True
        return False

    def solve(self) -> SplitPlan:
        """The cheapest plan for the rows so far.

        Raises AllocationFailed if no plan has all forced regions.
        """
        try:
            from ortools.sat.python import cp_model
        except ImportError:
            raise MissingExtraError("ortools", "exact", "live-range splitting") from None
        model = cp_model.CpModel()
        variables = _Variables(self.candidates, self.useful, model)
        for key in sorted(self.forced):
            model.add(variables.away[key] == 1)
        missing = [
            self._row(model, variables, row) for row in sorted(self.planner.rows) if self._need(row)
        ]
        model.minimize(variables.cost() + MISSING_LANE * sum(missing))
        variables.hint(self.planner.last)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        solver.parameters.max_deterministic_time = self.planner.limit
        solver.parameters.linearization_level = 2
        status = solver.solve(model)
        if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            raise AllocationFailed(f"no plan to split live ranges: {solver.status_name(status)}")
        self.planner.last = variables.values(solver)
        short = sum(solver.value(variable) for variable in missing)
        return SplitPlan(
            frozenset(key for key, v in variables.away.items() if solver.value(v)),
            frozenset(key for key, v in variables.entry.items() if solver.value(v)),
            frozenset(key for key, v in variables.after.items() if solver.value(v)),
            round(solver.objective_value) - MISSING_LANE * short,
            short,
            status == cp_model.OPTIMAL,
        )

    def _need(self, row: tuple[int, int, int]) -> int:
        group, block, position = row
        needs = self.needs[group].get(block)
        return max(needs[position], 0) if needs is not None else 0

    def _row(self, model: Any, variables: _Variables, row: tuple[int, int, int]) -> Any:
        """Adds the row of one place. Returns the number of lanes that it may be short of."""
        group, block, position = row
        terms = []
        for cover, key in self.by_block.get((group, block), ()):
            if cover.first <= position <= cover.last:
                count = self.candidates.lane_count(key)
                terms.append(count * variables.away[key])
                if cover.soft and position == cover.first and key in variables.entry:
                    terms.append(-count * variables.entry[key])
        need = self._need(row)
        short = model.new_int_var(0, need, "")
        model.add(sum(terms) + short >= need)
        return short

    def violated(self, plan: SplitPlan) -> set[tuple[int, int, int]]:
        """The places with more need than the plan covers: the worst of each run of places."""
        found: set[tuple[int, int, int]] = set()
        for group, blocks in enumerate(self.needs):
            for block, row in blocks.items():
                covers = self.by_block.get((group, block), ())
                covered = self.candidates.covered(plan, covers, len(row))
                left = [need - less for need, less in zip(row, covered, strict=True)]
                found |= {(group, block, p) for p in _peaks(left)}
        return found - self.planner.rows


class _Variables:
    """The variables of one program, and their costs.

    `joints` are true if something is inserted on an edge.
    """

    def __init__(self, candidates: Candidates, useful: set[RegionKey], model: Any) -> None:
        self.candidates, self.model = candidates, model
        self.away = {key: model.new_bool_var("") for key in sorted(useful)}
        self.entry: dict[RegionKey, Any] = {}
        self.after: dict[tuple[int, int], Any] = {}
        self.joints: dict[tuple[int, int, int], Any] = {}
        self.terms: list[Any] = []
        for key in sorted(useful):
            self._region(key)
        for unit in sorted({unit for unit, _ in useful}):
            self._edges(unit)

    def _region(self, key: RegionKey) -> None:
        candidates, (unit, place) = self.candidates, key
        each = candidates.units[unit]
        region, weight = each.regions[place], candidates.sites.weight
        ends = sum(weight(part.block) for part in region.parts if part.exit is not None)
        self._pay(key, ends, self.away[key])
        if candidates.traits[unit].is_constant:
            return
        stored = []
        entries = [part.entry for part in region.parts if part.entry is not None]
        if all(candidates.can_store_after(unit, access) for access in entries):
            self.entry[key] = self.model.new_bool_var("")
            self.model.add(self.entry[key] <= self.away[key])
            begins = sum(weight(each.unit.accesses[access].block) for access in entries)
            self._pay(key, begins, self.entry[key])
            stored.append(self.entry[key])
        for definition in sorted(region.definitions):
            here = list(stored)
            if candidates.can_store_after(unit, definition):
                here.append(self._stored(unit, definition))
            self.model.add(sum(here) >= self.away[key])

    def _stored(self, unit: int, definition: int) -> Any:
        key = unit, definition
        if key not in self.after:
            self.after[key] = self.model.new_bool_var("")
            block = self.candidates.units[unit].unit.accesses[definition].block
            self._pay(key, self.candidates.sites.weight(block), self.after[key])
        return self.after[key]

    def _edges(self, unit: int) -> None:
        for place, edge in enumerate(self.candidates.units[unit].edges):
            source, target = (unit, edge.source), (unit, edge.target)
            weight = self.candidates.sites.edge_weight(edge.source_block, edge.target_block)
            if source in self.away:
                brought = self._unless((unit, place, 0), self.away[source], self.away.get(target))
                self._pay(source, weight, brought)
            if target in self.entry:
                stored = self._unless((unit, place, 1), self.entry[target], self.away.get(source))
                self._pay(target, weight, stored)

    def _unless(self, key: tuple[int, int, int], holds: Any, other: Any) -> Any:
        """A variable that is true if `holds` is true and `other` is not."""
        if other is None:
            return holds
        self.joints[key] = self.model.new_bool_var("")
        self.model.add(self.joints[key] >= holds - other)
        return self.joints[key]

    def _pay(self, key: tuple[int, int], weight: int, variable: Any) -> None:
        if weight:
            self.terms.append(self.candidates.lane_count(key) * weight * variable)

    def cost(self) -> Any:
        return sum(self.terms)

    def _named(self) -> dict[str, dict[Any, Any]]:
        return {
            "away": self.away,
            "entry": self.entry,
            "after": self.after,
            "joints": self.joints,
        }

    def hint(self, last: Mapping[str, Mapping[Any, int]]) -> None:
        for name, variables in self._named().items():
            values = last.get(name, {})
            for key, variable in variables.items():
                if key in values:
                    self.model.add_hint(variable, values[key])

    def values(self, solver: Any) -> dict[str, dict[Any, int]]:
        return {
            name: {key: solver.value(variable) for key, variable in variables.items()}
            for name, variables in self._named().items()
        }
