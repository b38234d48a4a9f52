"""The random executor: runs the function and the answer's program side by side."""

from verilocc_bench.verification.executor.run import Executor
from verilocc_bench.verification.executor.trace import Miscompile, TraceBlock, ValueOrigin

__all__ = ["Executor", "Miscompile", "TraceBlock", "ValueOrigin"]
