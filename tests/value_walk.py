"""The product's value walk, for tests that know bases alone."""

from __future__ import annotations

from collections.abc import Mapping

from verilocc_bench.ir import Function
from verilocc_bench.targets import get_target
from verilocc_bench.verification.value_walk import ValueWalk as _ValueWalk

__all__ = ["ValueWalk"]


class ValueWalk:
    """One function under one assignment: bases as (file, index) of virtual registers."""

    def __init__(self, function: Function, bases: Mapping[int, tuple[str, int]]) -> None:
        self.walk = _ValueWalk(function, get_target(function.target), bases)

    def finds_a_difference(self, seed: int, steps: int) -> bool:
        """Whether some use reads another value than it should, on one random path."""
        return self.walk.run(seed, steps) is not None
