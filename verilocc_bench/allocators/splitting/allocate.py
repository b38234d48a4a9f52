"""Live-range splitting: a plan, the function it makes, places for it; and again with more room.

A plan (see `choice`) brings the lanes live at each place down to what there
is, at the least count of moved lanes weighted by loop depth. Whether its
registers then fit is another matter: tuples are aligned, and holes are
scattered. Where some find no place, first fewer lanes are allowed where they
are live, and the plan is made anew. If that does not help, what is in the way
of one of them is put away too, and the rest of the plan stays, so that each
round places one more. What this made superfluous is then taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from verilocc_bench.allocators.protocol import answer_from_assignment
from verilocc_bench.allocators.search.model import PlacementModel, placement_models
from verilocc_bench.allocators.spill_everywhere import spill_everywhere
from verilocc_bench.allocators.splitting.attempts import Attempt, SearchEffort, carry_out
from verilocc_bench.allocators.splitting.candidates import RegionKey, SplitPlan
from verilocc_bench.allocators.splitting.choice import Needs, Planner
from verilocc_bench.allocators.splitting.crowding import ACCUMULATORS, VGPRS, Crowding, available
from verilocc_bench.allocators.splitting.obstacles import Obstacles
from verilocc_bench.allocators.splitting.placement import place_nodes
from verilocc_bench.analysis import AllocationProblem, iterate_bits
from verilocc_bench.edits import Answer
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment

__all__ = ["split_allocate"]

PLAIN_STEPS = 100_000
"""Steps of tabu search for an assignment without edits, in each group of files."""
STEPS = 60_000
"""Steps of tabu search for each plan."""
FIRST_SEEDS = 3
"""Seeds of that search for the first plan, the cheapest of all."""
PATIENCE = 4
"""Plans with lower limits in a row that place no more registers than before."""
CLEARING_ROUNDS = 60
IMPROVEMENTS = 8
"""Cheaper plans that are tried in the end."""
SOLVER_TIME = 10.0
"""CP-SAT's own deterministic seconds for each set of rows."""


def split_allocate(problem: AllocationProblem) -> Assignment | Answer:
    """An assignment without edits where search finds one, else an answer with them.

    What cannot be split so is spilled everywhere. Raises AllocationFailed
    where nothing helps, MissingExtraError without the packages of the extra `exact`.
    """
    assignment: Assignment = {}
    crowded: list[tuple[str, ...]] = []
    for model in placement_models(problem):
        placed = place_nodes(model, PLAIN_STEPS if _may_fit(problem, model) else 0)
        if placed.unplaced:
            crowded.append(model.files)
        else:
            assignment |= placed.assignment
    if not crowded:
        return dict(sorted(assignment.items()))
    try:
        attempt = _Splitter(Crowding(problem, _with_homes(problem, crowded))).run()
    except AllocationFailed:
        return spill_everywhere(problem)
    return _answer(attempt, assignment)


def _with_homes(
    problem: AllocationProblem, crowded: list[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """The groups, VGPRs with the AGPRs, if there are any, which are homes for their values."""
    if not available(problem, [ACCUMULATORS]):
        return crowded
    joined = [(VGPRS, ACCUMULATORS) if VGPRS in group else group for group in crowded]
    return [group for group in joined if group != (ACCUMULATORS,) or len(joined) == 1]


def _may_fit(problem: AllocationProblem, model: PlacementModel) -> bool:
    """True if no point has more lanes of a model, surely live, than its files have units."""
    liveness, classes = problem.liveness, problem.function.virtual_registers
    own: set[int] = set()
    for register in model.node_of:
        first = liveness.lane_offsets[register]
        own.update(range(first, first + classes[register].width))
    fixed = enumerate(liveness.fixed_lanes, liveness.virtual_lane_count)
    own.update(lane for lane, (file, _) in fixed if file in model.files)
    changes = [0] * (len(liveness.points) + 1)
    for lane, first, last, surely in liveness.segments:
        if surely and lane in own:
            changes[first] += 1
            changes[last + 1] -= 1
    return max(accumulate(changes)) <= available(problem, model.files)


def _answer(attempt: Attempt, others: Assignment) -> Assignment | Answer:
    """The answer of a complete attempt; `others` are the registers of other files."""
    problem, edits = attempt.problem, attempt.rewritten.edits
    assignment = dict(others)
    for each in attempt.placed:
        assignment |= each.assignment
    if not (edits.new or edits.insertions or edits.replacements):
        return dict(sorted(assignment.items()))
    return Answer(answer_from_assignment(problem, assignment), edits)


class _Splitter:
    """Makes plans for one function until one can be placed, and then cheaper ones."""

    def __init__(self, crowding: Crowding) -> None:
        self.crowding, self.candidates = crowding, crowding.candidates
        self.planner = Planner(crowding.candidates, SOLVER_TIME)
        self.limits = self._capacities()
        self.least = 0
        self.homeless: set[int] = set()

    def _capacities(self) -> list[list[list[int]]]:
        return [
            [[capacity] * len(row) for row in counts]
            for capacity, counts in zip(self.crowding.capacity, self.crowding.counts, strict=True)
        ]

    def run(self) -> Attempt:
        """A complete attempt. Raises AllocationFailed where there is none."""
        best = self._by_limits()
        if best.left:
            best = self._by_clearing(best)
        return self._taken_back(best)

    def _attempt(
        self, forced: Collection[RegionKey] = (), earlier: Attempt | None = None, seeds: int = 1
    ) -> Attempt:
        """A plan within the limits, carried out."""
        plan = self.planner.plan(self._needs(), forced)
        return self._carried_out(plan, earlier, seeds)

    def _carried_out(self, plan: SplitPlan, earlier: Attempt | None, seeds: int) -> Attempt:
        """A plan carried out, anew with spill slots for homes that find no place."""
        while True:
            effort = SearchEffort(STEPS, range(seeds))
            attempt = carry_out(self.crowding, plan, self.homeless, effort, earlier)
            homeless = attempt.homeless()
            if not homeless:
                return attempt
            self.homeless |= homeless

    def _by_limits(self) -> Attempt:
        """Plans with ever lower limits where registers found no place; the best of them.

        The limits are those of the best then.
        """
        best = attempt = self._attempt(seeds=FIRST_SEEDS)
        self.least = attempt.plan.cost
        limits = [[list(row) for row in rows] for rows in self.limits]
        patience = PATIENCE
        while attempt.left and patience:
            self._lower_limits(attempt, 1 << PATIENCE - patience)
            attempt = self._attempt(earlier=attempt)
            patience -= 1
            if attempt.left < best.left:
                best, patience = attempt, PATIENCE
                limits = [[list(row) for row in rows] for rows in self.limits]
        self.limits = limits
        return best

    def _by_clearing(self, attempt: Attempt) -> Attempt:
        """Puts away what is in the way of one register after the other."""
        for _ in range(CLEARING_ROUNDS):
            if not attempt.left:
                return attempt
            cleared = self._cheapest_clearing(attempt)
            if cleared is None or cleared <= attempt.plan.away:
                break
            attempt = self._attempt(attempt.plan.away | cleared, attempt)
        raise AllocationFailed(f"{attempt.left} registers find no place, whatever is spilled")

    def _taken_back(self, attempt: Attempt) -> Attempt:
        """Cheaper plans: without all that is put away but what the places need, then without
        half of it, a quarter, and so on (Zeller and Hildebrandt, "Simplifying and Isolating
        Failure-Inducing Input", IEEE TSE 2002)."""
        self.limits = self._capacities()
        tries, size = IMPROVEMENTS, len(attempt.plan.away)
        while tries and size and attempt.plan.cost > self.least:
            keys = sorted(attempt.plan.away)
            for first in range(0, len(keys), size):
                forced = attempt.plan.away - set(keys[first : first + size])
                plan = self.planner.plan(self._needs(), forced)
                if not tries or plan.cost >= attempt.plan.cost:
                    continue
                tries -= 1
                again = self._carried_out(plan, attempt, 1)
                if not again.left:
                    attempt = again
            size //= 2
        return attempt

    def _cheapest_clearing(self, attempt: Attempt) -> set[RegionKey] | None:
        found: list[tuple[int, int, set[RegionKey]]] = []
        for each in attempt.placed:
            obstacles = Obstacles(
                self.candidates, attempt.plan, attempt.rewritten, each.model, each.bases
            )
            for node in each.unplaced:
                cleared = obstacles.to_clear(node)
                if cleared is not None:
                    found.append((cleared[0], node, cleared[1]))
        return min(found, key=lambda each: each[:2])[2] if found else None

    def _needs(self) -> Needs:
        needs: list[Mapping[int, Sequence[int]]] = []
        for counts, limits in zip(self.crowding.counts, self.limits, strict=True):
            rows = {}
            for block, (row, limit) in enumerate(zip(counts, limits, strict=True)):
                need = [lanes - most for lanes, most in zip(row, limit, strict=True)]
                if max(need, default=0) > 0:
                    rows[block] = need
            needs.append(rows)
        return needs

    def _lower_limits(self, attempt: Attempt, lanes: int) -> None:
        """Where a register without a place is live, some lanes less than now at the most."""
        usage = [
            self.candidates.usage(attempt.plan, group, counts)
            for group, counts in enumerate(self.crowding.counts)
        ]
        for each in attempt.placed:
            for node in each.unplaced:
                register = each.model.nodes[node].members[0][0]
                files = attempt.problem.function.virtual_registers[register].files
                group = self.crowding.group_of(files)
                places = self._places(attempt, register)
                top = max((usage[group][b][p] for b, p in places), default=0)
                for block, position in places:
                    row = self.limits[group][block]
                    row[position] = min(row[position], top - lanes)

    def _places(self, attempt: Attempt, register: int) -> list[tuple[int, int]]:
        """The (block, position) at which a register of the rewritten function is live."""
        liveness = attempt.problem.liveness
        first = liveness.lane_offsets[register]
        points = 0
        for lane in range(attempt.problem.function.virtual_registers[register].width):
            points |= liveness.live[first + lane]
        found = set()
        for point in iterate_bits(points):
            block, index = liveness.points[point]
            if index >= 0:
                home, position = attempt.rewritten.origin[block][index]
                if position < len(self.limits[0][home]):
                    found.add((home, position))
        return sorted(found)
