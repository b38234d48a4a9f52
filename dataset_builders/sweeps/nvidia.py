"""The register budgets that NVIDIA kernels are compiled for."""

from __future__ import annotations

from dataset_builders.sweeps.sweep import joint

# What one would write: nothing, mostly; everything that a thread can name; or
# what lets 3, 4, 5 or 8 blocks of 128 threads run on a multiprocessor at once.
# The last ask for less than the code was compiled for, which mostly makes a
# problem of the split track. A value that stands several times is drawn as often.
BUDGETS = joint(
    "maxnreg asked_maxnreg",
    (0, 0), (0, 0), (0, 0), (0, 0), (255, 0), (168, 0), (128, 0), (96, 0), (64, 0),
    (0, 168), (0, 128), (0, 96),
)  # fmt: skip
"""The axis of register budgets, which AMD points do not have."""
