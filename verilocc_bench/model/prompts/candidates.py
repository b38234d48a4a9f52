"""`candidates`: one virtual register, and up to 10 legal bases with features to choose by."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

from verilocc_bench.allocators import Assistance
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.model.prompts.decision_features import DecisionFeatures
from verilocc_bench.model.prompts.decisions import DecisionFormat, View

OFFERED = 10
"""The most bases that are offered."""

SPECIAL = 3
"""How many bases are offered for being the best in one feature."""

MOST_COPIES = 15
MOST_GROWTH = 63

SYSTEM = """\
You allocate registers for a GPU kernel, one virtual register at a time, the widest first. The \
first line names it, its class, how many registers wide it is and its legal bases; "lives" is how \
long it lives, "spare" how many registers of the budget are left. Each other line is a base that \
it can have now: "idle" is how long the register would lie idle before and after, "conflicts" the \
reads that would wait for a register bank, "copies" the copies that would become needless, "grows" \
how far the kernel's use of that kind of register would rise. All but the last two are in binary \
digits: 3 is 4 to 7. Answer with the name of one of these bases alone, such as v4."""

DESCRIPTION = (
    f"`candidates`: one virtual register a prompt, with up to {OFFERED} bases that are legal "
    "now, and what speaks for each. Validity is trivial here: whatever the model takes is "
    "legal, and a program that always takes the first gives valid answers too. Only the "
    "quality of its choices counts: registers, occupancy, bank conflicts, copies."
)


class _CandidatesViewer:
    """Shows legal bases: the best by copies spared, number, growth, conflicts and idle time."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.problem = problem
        self.features = DecisionFeatures(problem)

    def query(self, state: RegisterState, register: int) -> str:
        """See Viewer."""
        return self.features.query_line(state, register)

    def __call__(self, state: RegisterState, register: int, choices: Mapping[int, str], /) -> View:
        """See Viewer."""
        width = self.problem.function.virtual_registers[register].width
        spared = self.features.spared_copies(state, register)
        conflicts = self.features.conflicts(state, register)
        idle = {base: self.features.idle(state, register, base) for base in choices}
        tops: dict[str, int] = {}
        growth: dict[int, int] = {}
        for base in choices:
            file = self.problem.placements.register(base).file
            if file not in tops:
                tops[file] = self.features.top(state, file)
            growth[base] = max(0, base + width - tops[file])
        place = {base: number for number, base in enumerate(choices)}
        # Of bases with the same features the first stands for all.
        features = {b: (growth[b], conflicts(b), idle[b], spared.get(b, 0)) for b in choices}
        first = {feature: base for base, feature in reversed(features.items())}
        bases = [base for base, feature in features.items() if first[feature] == base]
        growing = set([base for base in bases if growth[base]][SPECIAL:])
        bases = [base for base in bases if base not in growing]
        ranked = dict.fromkeys(
            [
                *sorted((b for b in bases if b in spared), key=lambda b: -spared[b])[:SPECIAL],
                *bases[:SPECIAL],
                *sorted(bases, key=lambda b: (growth[b], conflicts(b), idle[b]))[:SPECIAL],
                *sorted(bases, key=lambda b: (growth[b], idle[b], conflicts(b), place[b])),
            ]
        )
        offered = sorted(islice(ranked, OFFERED), key=place.__getitem__)
        lines = tuple(
            f"{choices[base]} idle {idle[base]} conflicts {conflicts(base)} "
            f"copies {min(spared.get(base, 0), MOST_COPIES)} grows {min(growth[base], MOST_GROWTH)}"
            for base in offered
        )
        return View(lines, tuple(choices[base] for base in offered))


CANDIDATES = DecisionFormat(
    "candidates",
    Assistance.CANDIDATES,
    "legal candidates",
    DESCRIPTION,
    SYSTEM,
    _CandidatesViewer,
    version=2,
)
