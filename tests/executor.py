"""The product's executor, for tests that know bases alone."""

from __future__ import annotations

from collections.abc import Mapping

from verilocc_bench.ir import Function
from verilocc_bench.targets import get_target
from verilocc_bench.verification.executor import Executor as _Executor

__all__ = ["Executor"]


class Executor:
    """One function under one assignment: bases as (file, index) of virtual registers."""

    def __init__(self, function: Function, bases: Mapping[int, tuple[str, int]]) -> None:
        self.executor = _Executor(function, get_target(function.target), bases)

    def finds_a_difference(self, seed: int, steps: int) -> bool:
        """Whether some use reads another value than it should, on one random path."""
        return self.executor.run(seed, steps) is not None
