"""`state`: one virtual register, and the units that are free for its lanes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from verilocc_bench.allocators import Assistance
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.prompts.decisions import DecisionFormat, View
from verilocc_bench.model.prompts.units import Run, format_runs, runs_of

__all__ = ["STATE"]

SYSTEM = """\
You allocate registers for a GPU kernel, one virtual register at a time. The first line names it, \
its class, how many registers wide it is and its legal bases (v/2 is v0, v2, v4, …). Each other \
line lists the registers that are free for some of its lanes as long as these live: v4+6 is v4 \
to v9. Lane k is in register base+k; every lane must be in a free register. \
A line "tied: v4" allows that base alone. Low numbers are \
better. Answer with the name of the base alone, such as v4."""


@dataclass(frozen=True, slots=True)
class _StateViewer:
    """Free runs for each run of lanes that live alike."""

    problem: AllocationProblem

    def __call__(self, state: RegisterState, register: int, _: Mapping[int, str], /) -> View:
        """See Viewer."""
        problem = self.problem
        placements = problem.placements
        register_class = problem.function.virtual_registers[register]
        lines: list[str] = []
        lane = 0
        for lifetime, group in groupby(state.lifetimes(register)):
            count = len(list(group))
            runs: list[Run] = []
            for bases in register_class.ranges:
                first = placements.first_unit[bases.file] + bases.first + lane
                units = range(first, first + bases.last - bases.first + count)
                free = runs_of([u for u in units if state.is_free(lifetime, u)], placements)
                runs += _clip(free, first, bases.step)
            lanes = f"lane {lane}" if count == 1 else f"lanes {lane}-{lane + count - 1}"
            lines.append(f"{lanes}: {format_runs(runs, placements)}")
            lane += count
        tied = state.bases(register)
        if len(tied) < len(placements.legal[register_class]):
            lines.append("tied: " + (" ".join(tied.values()) or "none"))
        return View(tuple(lines))


def _clip(runs: list[Run], first: int, step: int) -> list[Run]:
    """Runs that begin where a base could put the lanes; those without such a place are gone."""
    clipped: list[Run] = []
    for start, length in runs:
        skipped = -(start - first) % step
        if skipped < length:
            clipped.append((start + skipped, length - skipped))
    return clipped


STATE = DecisionFormat("state", Assistance.STATE, SYSTEM, _StateViewer)
