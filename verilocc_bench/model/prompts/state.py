"""`state`: one virtual register, and the units that are free for its lanes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby

from verilocc_bench.allocators import Assistance
from verilocc_bench.allocators.register_state import Lifetime, RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.ir import RegisterClass
from verilocc_bench.model.prompts.decisions import DecisionFormat, View
from verilocc_bench.model.prompts.outlook import Outlook
from verilocc_bench.model.prompts.units import Run, format_runs, runs_of

__all__ = ["STATE"]

SHOWN = 16
"""At most so many runs are shown of each line: the lowest, or of a single lane the least idle."""

SYSTEM = """\
You allocate registers for a GPU kernel, one virtual register at a time, the widest first. The \
first line names it, its class, how many registers wide it is and its legal bases (v/2 is v0, v2, \
v4, …); "lives" is how long it lives, "spare" how many registers of the budget are left, both in \
binary digits: 3 is 4 to 7. Each other line lists the registers that are free for some of its \
lanes as long as these live: v4+6 is v4 to v9, v4+6~3 that they would lie idle before and after \
for a time of 3 binary digits. Lane k is in register base+k; every lane must be in a free \
register. A line "tied: v4" allows that base alone. Low numbers are better, and short idle times. \
Answer with the name of the base alone, such as v4."""


class _StateViewer:
    """Free runs for each run of lanes to which the same units are free."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        self.outlook = Outlook(problem)

    def query(self, state: RegisterState, register: int) -> str:
        """See Viewer."""
        return self.outlook.query_line(state, register)

    def __call__(self, state: RegisterState, register: int, _: Mapping[int, str], /) -> View:
        """See Viewer."""
        placements = self.problem.placements
        register_class = self.problem.function.virtual_registers[register]
        lifetimes = state.lifetimes(register)
        places = [
            range(
                placements.first_unit[bases.file] + bases.first,
                placements.first_unit[bases.file] + bases.last + register_class.width,
            )
            for bases in register_class.ranges
        ]
        free = [[u for units in places for u in units if state.is_free(x, u)] for x in lifetimes]
        lines: list[str] = []
        lane = 0
        for units, group in groupby(free):
            count = len(list(group))
            runs = self._runs(register_class, units, lane, count)
            if register_class.width == 1:
                text = self._with_idle_times(state, lifetimes[0], runs)
            else:
                text = format_runs(runs[:SHOWN], placements)
            lanes = f"lane {lane}" if count == 1 else f"lanes {lane}-{lane + count - 1}"
            lines.append(f"{lanes}: {text}")
            lane += count
        tied = state.bases(register)
        if len(tied) < len(placements.legal[register_class]):
            lines.append("tied: " + (" ".join(tied.values()) or "none"))
        return View(tuple(lines))

    def _runs(
        self, register_class: RegisterClass, free: list[int], lane: int, count: int
    ) -> list[Run]:
        """The runs of free units that so many lanes from one on may reach."""
        found: list[Run] = []
        for bases in register_class.ranges:
            first = self.problem.placements.first_unit[bases.file] + bases.first + lane
            end = first + bases.last - bases.first + count
            runs = runs_of([u for u in free if first <= u < end], self.problem.placements)
            found += _clip(runs, first, bases.step)
        return found

    def _with_idle_times(self, state: RegisterState, lifetime: Lifetime, runs: list[Run]) -> str:
        """The runs, cut where the idle time changes: the shortest of these times."""
        parts = [
            (idle, start, len(units))
            for first, length in runs
            for (idle, start), units in _alike(state, lifetime, range(first, first + length))
        ]
        shown = sorted(sorted(parts)[:SHOWN], key=lambda part: part[1])
        name = self.problem.placements.unit_name
        return " ".join(f"{name(start)}+{length}~{idle}" for idle, start, length in shown) or "none"


def _alike(
    state: RegisterState, lifetime: Lifetime, units: range
) -> Iterator[tuple[tuple[int, int], list[int]]]:
    """((idle time in digits, first unit), units) of neighbours with the same idle time."""
    for idle, group in groupby(units, lambda u: state.idle_points(lifetime, u).bit_length()):
        members = list(group)
        yield (idle, members[0]), members


def _clip(runs: list[Run], first: int, step: int) -> list[Run]:
    """Runs that begin where a base could put the lanes; those without such a place are gone."""
    clipped: list[Run] = []
    for start, length in runs:
        skipped = -(start - first) % step
        if skipped < length:
            clipped.append((start + skipped, length - skipped))
    return clipped


STATE = DecisionFormat("state", Assistance.STATE, SYSTEM, _StateViewer, version=2)
