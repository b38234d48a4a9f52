"""Recipes of models that keep notes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

from verilocc_bench.errors import InputError
from verilocc_bench.model.notes.notes_network import NotesConfiguration


@dataclass(frozen=True, slots=True)
class NotesRecipe:
    """A recipe. With the dataset and the versions it decides the weights.

    A pool of `pool_windows` windows is made at a time, and learnt in batches of `batch_windows`.
    `function_share` of them are of the functions of `split`, at most `functions` of these; the
    others are made up. `validation_functions`: how many of `validation_split`, the smallest, are
    allocated at the end. `save_pools`: pools between checkpoints. `threads`: torch's threads; they
    are part of the recipe because they decide the last digits of sums. `base_share`: of a run with
    a base, the weights at the end are this share of the base's and the rest of its own (Wortsman
    et al., arXiv 2109.01903).
    """

    name: str
    description: str
    steps: int
    network: NotesConfiguration = field(default_factory=NotesConfiguration)
    pool_windows: int = 512
    batch_windows: int = 16
    function_share: float = 0.3
    functions: int | None = None
    learning_rate: float = 2e-3
    warmup_steps: int = 100
    decay_steps: int = 1000
    weight_decay: float = 0.01
    adam_beta2: float = 0.97
    gradient_norm: float = 1.0
    save_pools: int = 4
    threads: int = 1
    seed: int = 0
    split: str = "train"
    validation_split: str = "validation"
    validation_functions: int = 24
    base_share: float = 0.0

    def __post_init__(self) -> None:
        least_one = ("steps", "pool_windows", "batch_windows", "warmup_steps", "decay_steps")
        for name in (*least_one, "save_pools", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1")
        if self.pool_windows % self.batch_windows:
            raise InputError("pool_windows must be a multiple of batch_windows")
        for name in ("function_share", "base_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise InputError(f"{name} must be from 0 to 1")
        for name in ("learning_rate", "weight_decay", "validation_functions"):
            if getattr(self, name) < 0:
                raise InputError(f"{name} must not be negative")
        if not 0 <= self.adam_beta2 < 1 or self.gradient_norm <= 0:
            raise InputError("expected adam_beta2 from 0 to below 1, and gradient_norm above 0")

    @property
    def steps_a_pool(self) -> int:
        """Batches of a pool."""
        return self.pool_windows // self.batch_windows

    @property
    def pools(self) -> int:
        """Pools of the run; the last is learnt whole."""
        return -(-self.steps // self.steps_a_pool)

    def rate(self, step: int) -> float:
        """The learning rate of a step: it rises, stays, and falls over the last steps."""
        rising = (step + 1) / self.warmup_steps
        falling = (self.steps - step) / self.decay_steps
        return self.learning_rate * max(0.01, min(1.0, rising, falling))

    def as_json(self) -> dict[str, Any]:
        """The recipe as a JSON object."""
        return dataclasses.asdict(self)
