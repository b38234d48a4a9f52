"""Machine code of gfx90a and gfx942, executed on a CPU.

`run` takes a code object with a kernel of one's own, arrays and a grid, and gives the arrays
back. AnswerExecutor lowers answers to a kernel of the dataset, runs them, and compares what they
leave with what must come out.
"""

from verilocc_bench.execution.executed_answers import TILES, AnswerExecutor, ExecutedAnswer
from verilocc_bench.machine.execution import MachineExecution, load_kernel, run

__all__ = [
    "TILES",
    "AnswerExecutor",
    "ExecutedAnswer",
    "MachineExecution",
    "load_kernel",
    "run",
]
"""What other rooms use."""
