"""The register budgets that NVIDIA kernels are compiled for."""

from __future__ import annotations

from dataset_builders.sweeps.sweep import axis

__all__ = ["BUDGETS"]

# What one would write: nothing, mostly; everything that a thread can name; or
# what lets 3, 4, 5 or 8 blocks of 128 threads run on a multiprocessor at once.
# A value that stands several times is drawn as often.
BUDGETS = axis("maxnreg", 0, 0, 0, 0, 255, 168, 128, 96, 64)
"""The axis of `maxnreg`, which AMD points do not have."""
