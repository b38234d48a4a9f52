"""The teachers of the reference model: policies that choose by what a prompt shows.

A language model can only learn what follows from its prompt. The choices of a
compiler or a search follow from the whole function: register names may be
permuted, and earlier decisions are not in the prompt. So the answers to learn
come from policies over the prompt's own features. Several policies run on each
function, and the best run is kept: fewest dead ends, then registers,
occupancy, conflicts and copies. Where policies differ, the model learns the
better choice.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random

from verilocc_bench.allocators.ejection import Ejection
from verilocc_bench.allocators.register_state import RegisterState
from verilocc_bench.analysis import AllocationProblem
from verilocc_bench.edits import NamedAssignment
from verilocc_bench.errors import InputError
from verilocc_bench.model.prompts.conversation import Turn
from verilocc_bench.model.prompts.decision_features import decision_order
from verilocc_bench.model.prompts.decisions import DecisionFormat
from verilocc_bench.settings.search import Objective

MOST_DEAD_ENDS = 2_000


@dataclass(frozen=True, slots=True)
class Policy:
    """A linear price on the features of `candidates`. The first of the cheapest offers is taken.

    `grows` is the price of a unit, `conflicts` of a loop-weighted surplus read,
    `idle` of a binary digit; `copies` is the gain of an avoided copy.
    `detours`: the share of decisions that take a random offer, so that the
    model sees states that it would not reach by itself.
    """

    grows: float = 1.0
    conflicts: float = 0.0
    copies: float = 0.0
    idle: float = 0.0
    detours: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.detours <= 1:
            raise InputError("detours must be from 0 to 1")

    def choose(self, lines: Sequence[str]) -> int:
        """The index of the cheapest offer, given the lines of a prompt."""
        return min(range(len(lines)), key=lambda number: (self._price(lines[number]), number))

    def _price(self, line: str) -> float:
        words = line.split()
        features = dict(zip(words[1::2], map(int, words[2::2]), strict=True))
        conflicts = (1 << features["conflicts"]) >> 1
        return (
            self.grows * features["grows"]
            + self.conflicts * conflicts
            - self.copies * features["copies"]
            + self.idle * features["idle"]
        )


@dataclass(slots=True)
class Demonstration:
    """One run over a function: its prompts with their answers, and the result.

    `answer` is empty if there were too many dead ends.
    """

    turns: list[Turn] = field(default_factory=list)
    answer: NamedAssignment = field(default_factory=dict)
    dead_ends: int = 0


def demonstrate(
    problem: AllocationProblem,
    style: DecisionFormat,
    policy: Policy,
    seed: int = 0,
    *,
    every: int = 1,
) -> Demonstration:
    """Runs a policy over a function. `turns` hold about one decision in `every`.

    The format `state` does not show features: there the policy is the lowest
    base for a tuple, and the base with the shortest idle time for a single
    register. Dead ends eject registers, as in constrained decoding.
    """
    found = Demonstration()
    generator = Random(seed)  # noqa: S311  no secret depends on it
    viewer = style.make_viewer(problem)
    search = Ejection(RegisterState(problem), decision_order(problem))
    while (register := search.register) is not None:
        choices = search.choices()
        if not choices:
            if search.steps >= MOST_DEAD_ENDS or not search.eject():
                found.dead_ends = search.steps + 1
                return found
            continue
        view = viewer(search.state, register, choices)
        offers = list(choices.values()) if view.names is None else list(view.names)
        if view.names is None:
            number = _tightest(search.state, register, choices)
        else:
            number = policy.choose(view.lines)
        if generator.randrange(every) == 0:
            prompt = "\n".join([viewer.query(search.state, register), *view.lines, ""])
            found.turns.append(Turn(prompt, offers[number]))
        if generator.random() < policy.detours:
            # The model learns the policy's choice; the run takes another one.
            number = generator.randrange(len(offers))
        bases = {name: base for base, name in choices.items()}
        search.take(bases[offers[number]])
    classes, legal = problem.function.virtual_registers, problem.placements.legal
    placed = sorted(search.state.placed.items())
    found.answer = {f"%{register}": legal[classes[register]][base] for register, base in placed}
    found.dead_ends = search.steps
    return found


def best_demonstration(
    problem: AllocationProblem,
    style: DecisionFormat,
    policies: Sequence[Policy],
    seed: int = 0,
    *,
    every: int = 1,
) -> Demonstration:
    """The best run of several policies: fewest dead ends, then least cost, then the first.

    Raises MissingExtraError if there are several and numba is not installed.
    """
    runs = [demonstrate(problem, style, policy, seed, every=every) for policy in policies]
    return min(runs, key=lambda run: _cost(problem, run)) if len(runs) > 1 else runs[0]


def _cost(problem: AllocationProblem, run: Demonstration) -> tuple[int, ...]:
    # The costs of search need numba (extra `exact`); a single policy, or a label, does not.
    from verilocc_bench.allocators.search.comparison import answer_cost

    if not run.answer:
        return (1, run.dead_ends)
    # Counted in binary digits: small differences in the number of dead ends are luck.
    return (0, run.dead_ends.bit_length(), *answer_cost(problem, run.answer, Objective.REGISTERS))


def _tightest(state: RegisterState, register: int, choices: Mapping[int, str]) -> int:
    """The index of the choice: the lowest base for a tuple, the least idle for a single lane."""
    lifetimes = state.lifetimes(register)
    if len(lifetimes) > 1:
        return 0
    (life,) = lifetimes
    idle = [state.idle_points(life, base).bit_length() for base in choices]
    return idle.index(min(idle))
