"""Kernels of a user's own: what stands for the sweep point in their rows."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dataset_builders.sweeps.point import RowPoint

CAPTURED = "captured"
"""The family of such rows, and the `sweep` in the manifest of their dataset."""


@dataclass(frozen=True, slots=True)
class CapturedPoint(RowPoint):
    """One kernel as its script compiled it.

    `parameters` are the types of its arguments, the values of its constants, and the
    compile options, each by its name.
    """

    @property
    def family(self) -> str:
        """`captured`: nobody has said what the kernel computes."""
        return CAPTURED

    @property
    def key(self) -> str:
        """The kernel's name, its architecture, and a hash of all parameters."""
        name = re.sub(r"\W", "_", self.kernel, flags=re.ASCII)[:60]
        return f"{name}-{self.arch}-{self.digest[:10]}"

    @property
    def group(self) -> str:
        """All configurations of one kernel."""
        return f"{CAPTURED}/{self.kernel}"
