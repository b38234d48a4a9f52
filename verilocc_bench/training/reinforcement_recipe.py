"""Recipes of reinforcement, and the functions that a run learns from."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from verilocc_bench.dataset import Row
from verilocc_bench.errors import InputError
from verilocc_bench.training.examples import chosen_rows
from verilocc_bench.training.recipe import ExampleSource


@dataclass(frozen=True, slots=True)
class RewardWeights:
    """The weights of the parts of a reward. Vector registers over their lower bound weigh 1.

    `conflicts` weighs log(1 + loop-weighted bank conflicts over the label's),
    `dead_ends` weighs log(1 + dead ends), `copies` weighs the share of copies
    that become identities. `invalid` is the reward of a missing or invalid
    answer, and the lowest reward of any answer.
    """

    conflicts: float = 0.1
    dead_ends: float = 0.02
    copies: float = 0.05
    invalid: float = -10.0

    def __post_init__(self) -> None:
        for name in ("conflicts", "dead_ends", "copies"):
            if getattr(self, name) < 0:
                raise InputError(f"rewards: {name} must not be negative")


@dataclass(frozen=True, slots=True)
class ReinforcementRecipe:
    """A recipe. With the model at the start, the dataset and the versions it decides the weights.

    A step draws `group` answers to each of `functions` functions of at most
    `largest` virtual registers. `learnt_decisions`: the most decisions of an
    answer that are learnt, drawn evenly. `divergence`: the weight of the
    divergence from the model at the start. `most_dead_ends`: an answer with
    more dead ends does not count as an answer. `batch_tokens`: the tokens of a
    mini-batch. `validation_functions`: the number of functions of
    `validation_split`, of any size, that are allocated greedily before and
    after. `threads`: torch's threads on a CPU, see `Optimization`.
    """

    name: str
    description: str
    steps: int
    rewards: RewardWeights = field(default_factory=RewardWeights)
    functions: int = 2
    group: int = 4
    largest: int | None = None
    archs: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    learnt_decisions: int = 256
    most_dead_ends: int = 100
    learning_rate: float = 1e-4
    gradient_norm: float = 1.0
    divergence: float = 0.02
    batch_tokens: int = 6144
    save_steps: int = 10
    threads: int = 2
    seed: int = 0
    split: str = "train"
    validation_split: str = "validation"
    validation_functions: int = 24

    def __post_init__(self) -> None:
        if self.group < 2:
            raise InputError("group: an answer is judged by others: expected at least 2")
        least_one = ("steps", "functions", "learnt_decisions", "batch_tokens", "save_steps")
        for name in (*least_one, "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1")
        unsigned = ("most_dead_ends", "validation_functions", "divergence", "learning_rate")
        for name in unsigned:
            if getattr(self, name) < 0:
                raise InputError(f"{name} must not be negative")
        if self.gradient_norm <= 0:
            raise InputError("gradient_norm must be above 0, or nothing is learnt")
        _source(self, 1)  # checks the names of architectures

    def as_json(self) -> dict[str, Any]:
        """The recipe as a JSON object."""
        return dataclasses.asdict(self)


def training_rows(recipe: ReinforcementRecipe, rows: Sequence[Row]) -> list[Row]:
    """The rows of all steps, spread over architectures and families, in a seeded order.

    Raises InputError if the recipe excludes all rows.
    """
    fitting = [r for r in rows if recipe.largest is None or r.n_virtual_registers <= recipe.largest]
    wanted = _source(recipe, recipe.steps * recipe.functions)
    found = chosen_rows(wanted, fitting, recipe.seed)
    if not found:
        raise InputError(f"the split {recipe.split!r} has no function that the recipe allows")
    Random(recipe.seed).shuffle(found)  # noqa: S311  no secret depends on it
    return found


def validation_rows(recipe: ReinforcementRecipe, rows: Sequence[Row]) -> list[Row]:
    """The rows of the validation split on which the model is measured."""
    if not recipe.validation_functions:
        return []
    return chosen_rows(_source(recipe, recipe.validation_functions), rows, recipe.seed)


def _source(recipe: ReinforcementRecipe, functions: int) -> ExampleSource:
    return ExampleSource(
        "candidates",
        label="compiler",
        functions=functions,
        archs=recipe.archs,
        families=recipe.families,
    )
