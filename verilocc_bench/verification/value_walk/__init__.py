"""The value walk: runs the function and the answer's program side by side."""

from verilocc_bench.verification.value_walk.run import ValueWalk
from verilocc_bench.verification.value_walk.trace import Miscompile, TraceBlock, ValueOrigin

__all__ = ["Miscompile", "TraceBlock", "ValueOrigin", "ValueWalk"]
