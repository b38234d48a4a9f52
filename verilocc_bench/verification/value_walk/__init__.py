"""The value walk: runs the function and the answer's program side by side."""

from verilocc_bench.verification.value_walk.trace import Miscompile
from verilocc_bench.verification.value_walk.walk import ValueWalk

__all__ = ["Miscompile", "ValueWalk"]
