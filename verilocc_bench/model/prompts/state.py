"""`state`: one virtual register, and the bases at which its lanes would be in free units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from verilocc_bench.allocators import Assistance
from verilocc_bench.allocators.register_state import Lifetime, RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import RegisterClass
from verilocc_bench.model.prompts.decision_features import DecisionFeatures
from verilocc_bench.model.prompts.decisions import DecisionFormat, View
from verilocc_bench.model.prompts.units import base_ranges, range_runs

SHOWN = 16
"""The most runs in a line: the lowest are shown, of a single lane those that are least idle."""

SYSTEM = """\
You allocate registers for a GPU kernel, one virtual register at a time, the widest first. The \
first line names it, its class, how many registers wide it is and its legal bases (v/2 is v0, v2, \
v4, …); "lives" is how long it lives, "spare" how many registers of the budget are left, both in \
binary digits: 3 is 4 to 7. Each other line has bases at which some of its lanes would be in free \
registers for as long as these live: v4..v8 is all legal bases from v4 to v8, v4..v8~3 that the \
register would lie idle before and after for a time of 3 binary digits. Lane k is in register \
base+k. Take a base that is in every line. A line "tied: v4" allows that base alone. Low numbers \
are better, and short idle times. Answer with the name of the base alone, such as v4."""

DESCRIPTION = (
    "`state`: one virtual register a prompt. The prompt shows the state of the registers: "
    "which are free for it, lane by lane, given what is placed so far. So the bookkeeping is "
    "done for the model; what it has to do is to find a base where every lane fits. Freely "
    "decoded, its answers can be wrong, and the verifier says so."
)

IdleRun = tuple[int, int, int]
"""How long registers lie idle, in digits; the first base, and the last."""


class _StateViewer:
    """Shows the bases for each run of lanes that can use the same units."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        self.features = DecisionFeatures(problem)

    def query(self, state: RegisterState, register: int) -> str:
        """See Viewer."""
        return self.features.query_line(state, register)

    def __call__(self, state: RegisterState, register: int, _: Mapping[int, str], /) -> View:
        """See Viewer."""
        register_class = self.problem.function.virtual_registers[register]
        names = self.problem.placements.legal[register_class]
        lifetimes = state.lifetimes(register)
        if register_class.width == 1:
            runs = list(self._idle_runs(state, register_class, lifetimes[0]))
            lines = [lane_line(least_idle(runs), names)]
        else:
            lines = self._tuple_lines(state, register_class, lifetimes)
        tied = state.bases(register)
        if len(tied) < len(names):
            lines.append("tied: " + (" ".join(tied.values()) or "none"))
        return View(tuple(lines))

    def _tuple_lines(
        self,
        state: RegisterState,
        register_class: RegisterClass,
        lifetimes: Sequence[Lifetime],
    ) -> list[str]:
        names = self.problem.placements.legal[register_class]
        ranges = base_ranges(self.problem, register_class)
        units = [u for bases in ranges for u in range(bases[0], bases[-1] + len(lifetimes))]
        free = [frozenset(u for u in units if state.is_free(life, u)) for life in lifetimes]
        groups: list[tuple[range, frozenset[int]]] = []
        lane = 0
        for own, group in groupby(free):
            lanes = range(lane, lane + len(list(group)))
            suited = frozenset(
                base
                for bases in ranges
                for base in bases
                if base in names and all(base + number in own for number in lanes)
            )
            groups.append((lanes, suited))
            lane = lanes.stop
        return tightest_lines(groups, ranges, names)

    def _idle_runs(
        self, state: RegisterState, register_class: RegisterClass, lifetime: Lifetime
    ) -> Iterator[IdleRun]:
        """Runs of free bases with one idle time each, in binary digits."""
        names = self.problem.placements.legal[register_class]
        for bases in base_ranges(self.problem, register_class):
            free = [base for base in bases if base in names and state.is_free(lifetime, base)]
            for first, last in range_runs(free, bases):
                members = range(first, last + 1, bases.step)
                idle_times = (
                    (state.idle_points(lifetime, base).bit_length(), base) for base in members
                )
                for idle, group in groupby(idle_times, lambda pair: pair[0]):
                    alike = [base for _, base in group]
                    yield idle, alike[0], alike[-1]


def tightest_lines(
    groups: Sequence[tuple[range, frozenset[int]]],
    ranges: Sequence[range],
    names: Mapping[int, str],
) -> list[str]:
    """The lines of a tuple: lanes, and the runs of bases that suit them.

    A run is left out if no base in it suits all groups, unless no base does at
    all. So the lowest base that suits all is in the first run of every line. A
    group is left out if its runs contain all bases of another group's: it says
    nothing more. Of groups with the same runs the first is shown. `ranges` are
    the legal bases in their order, `names` are their names.
    """
    common = frozenset[int].intersection(*(suited for _, suited in groups))
    shown: list[tuple[range, list[tuple[int, int]], frozenset[int]]] = []
    for lanes, suited in groups:
        runs: list[tuple[int, int]] = []
        members: set[int] = set()
        for bases in ranges:
            for first, last in range_runs([base for base in bases if base in suited], bases):
                run = range(first, last + 1, bases.step)
                if not common or not common.isdisjoint(run):
                    runs.append((first, last))
                    members.update(run)
        shown.append((lanes, runs, frozenset(members)))
    lines = []
    for number, (lanes, runs, own) in enumerate(shown):
        others = (
            bases < own or (bases == own and other < number)
            for other, (_, _, bases) in enumerate(shown)
        )
        if not any(others):
            listed = " ".join(f"{names[first]}..{names[last]}" for first, last in runs[:SHOWN])
            place = f"lane {lanes[0]}" if len(lanes) == 1 else f"lanes {lanes[0]}-{lanes[-1]}"
            lines.append(f"{place}: {listed or 'none'}")
    return lines


def least_idle(runs: Iterable[IdleRun]) -> list[IdleRun]:
    """The runs of a single lane that are shown, in the order of their bases."""
    return sorted(sorted(runs)[:SHOWN], key=lambda run: run[1])


def lane_line(runs: Iterable[IdleRun], names: Mapping[int, str]) -> str:
    """The line of a single lane."""
    listed = [f"{names[first]}..{names[last]}~{idle}" for idle, first, last in runs]
    return f"lane 0: {' '.join(listed) or 'none'}"


STATE = DecisionFormat(
    "state", Assistance.STATE, "the state", DESCRIPTION, SYSTEM, _StateViewer, version=3
)
