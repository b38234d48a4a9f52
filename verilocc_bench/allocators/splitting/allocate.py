"""Live-range splitting: makes plans, places their registers, and refines the plans.

A plan (see `choice`) lowers the lanes that are live at each place to the units
that exist, with the fewest moved lanes weighted by loop depth. Its registers may
still not fit: tuples are aligned, and holes are scattered. If some find no place,
the limits where they are live are lowered and the plan is made anew. If that does
not help, the obstacles of one of them are put away, too, and the rest of the plan
stays, so each round places one more register. In the end the superfluous parts of
the plan are taken back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

from verilocc_bench.allocators.protocol import answer_from_assignment
from verilocc_bench.allocators.search.placement_model import PlacementModel, placement_models
from verilocc_bench.allocators.spill_everywhere import spill_everywhere
from verilocc_bench.allocators.splitting.attempts import Attempt, SearchEffort, carry_out
from verilocc_bench.allocators.splitting.candidates import RegionKey, SplitPlan
from verilocc_bench.allocators.splitting.choice import Needs, Planner
from verilocc_bench.allocators.splitting.crowding import ACCUMULATORS, VGPRS, Crowding, available
from verilocc_bench.allocators.splitting.obstacles import Obstacles
from verilocc_bench.allocators.splitting.split_placement import place_nodes
from verilocc_bench.analysis import AllocationProblem, iterate_bits
from verilocc_bench.edits import Answer
from verilocc_bench.errors import AllocationFailed
from verilocc_bench.ir import Assignment

PLAIN_STEPS = 100_000
"""Steps of tabu search for an assignment without edits, in each group of files."""
STEPS = 60_000
"""Steps of tabu search for each plan."""
FIRST_SEEDS = 3
"""Seeds of tabu search for the first plan, the cheapest of all."""
PATIENCE = 4
"""The most consecutive plans with lower limits that place no more registers."""
CLEARING_ROUNDS = 60
IMPROVEMENTS = 8
"""The most cheaper plans to try in the end."""
SOLVER_TIME = 10.0
"""CP-SAT's deterministic seconds for each set of rows."""


def split_allocate(problem: AllocationProblem) -> Assignment | Answer:
    """An assignment without edits if search finds one, else an answer with edits.

    Falls back to `spill_everywhere` if splitting fails. Raises AllocationFailed if
    that fails, too, and MissingExtraError without the extra `exact`.
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
    for each in attempt.placed:
        assignment |= each.assignment
    edits = attempt.rewritten.edits
    if not (edits.new or edits.insertions or edits.replacements):
        return dict(sorted(assignment.items()))
    return Answer(answer_from_assignment(attempt.problem, assignment), edits)


def _with_homes(
    problem: AllocationProblem, crowded: list[tuple[str, ...]]
) -> list[tuple[str, ...]]:
    """The groups of files; VGPRs take the AGPRs, if there are any, as homes for their values."""
    if not available(problem, [ACCUMULATORS]):
        return crowded
    joined = [(VGPRS, ACCUMULATORS) if VGPRS in group else group for group in crowded]
    return [group for group in joined if group != (ACCUMULATORS,) or len(joined) == 1]


def _may_fit(problem: AllocationProblem, model: PlacementModel) -> bool:
    """True if no point has more surely live lanes of a model than its files have units."""
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
        """A complete attempt. Raises AllocationFailed without one."""
        best = self._by_limits()
        if best.left:
            best = self._by_clearing(best)
        return self._taken_back(best)

    def _attempt(
        self, forced: Collection[RegionKey] = (), earlier: Attempt | None = None, seeds: int = 1
    ) -> Attempt:
        """Makes a plan within the limits and carries it out."""
        plan = self.planner.plan(self._needs(), forced)
        return self._carried_out(plan, earlier, seeds)

    def _carried_out(self, plan: SplitPlan, earlier: Attempt | None, seeds: int) -> Attempt:
        """Carries out a plan; does so again with slots for homes that find no place."""
        while True:
            effort = SearchEffort(STEPS, range(seeds))
            attempt = carry_out(self.crowding, plan, self.homeless, effort, earlier)
            homeless = attempt.homeless()
            if not homeless:
                return attempt
            self.homeless |= homeless

    def _by_limits(self) -> Attempt:
        """The best attempt with ever lower limits where registers find no place.

        Afterwards the limits are that attempt's.
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
        """Puts away the obstacles of one register after the other."""
        for _ in range(CLEARING_ROUNDS):
            if not attempt.left:
                return attempt
            cleared = self._cheapest_clearing(attempt)
            if cleared is None or cleared <= attempt.plan.away:
                break
            attempt = self._attempt(attempt.plan.away | cleared, attempt)
        raise AllocationFailed(f"{attempt.left} registers find no place, whatever is spilled")

    def _taken_back(self, attempt: Attempt) -> Attempt:
        """The cheapest complete attempt without some of the forced regions.

        Drops all of them, then halves, quarters, and so on (Zeller and Hildebrandt,
        "Simplifying and Isolating Failure-Inducing Input", IEEE TSE 2002).
        """
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
        """Lowers the limits by some lanes wherever a register without a place is live."""
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
