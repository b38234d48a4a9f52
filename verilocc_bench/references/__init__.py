"""What each kernel of the dataset computes: inputs, launch and expected results in numpy.

`launch_for(kernel, parameters)` takes a dataset row's columns `kernel` and `params`,
decoded, and gives everything that a run needs and everything that it must leave
behind. Builders' tests, the interpreter's tests and the execution judge share it.
"""

from verilocc_bench.references.reference_launch import (
    Buffer,
    Comparison,
    Expectation,
    Launch,
    Scalar,
    compare,
)
from verilocc_bench.references.reference_registry import REFERENCES, launch_for

__all__ = [
    "REFERENCES",
    "Buffer",
    "Comparison",
    "Expectation",
    "Launch",
    "Scalar",
    "compare",
    "launch_for",
]
