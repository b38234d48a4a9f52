"""Kernels of a user's own: what stands for the sweep point in their rows."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass

from dataset_builders.sweeps.point import Parameters

CAPTURED = "captured"
"""The family of such rows, and the `sweep` in the manifest of their dataset."""


@dataclass(frozen=True, slots=True)
class CapturedPoint:
    """One kernel as its script compiled it.

    `parameters` are the types of its arguments, the values of its constants, and the
    compile options, each by its name.
    """

    arch: str
    kernel: str
    parameters: Parameters

    @property
    def family(self) -> str:
        """`captured`: nobody has said what the kernel computes."""
        return CAPTURED

    @property
    def parameters_json(self) -> str:
        """The parameters as canonical JSON: sorted keys, no spaces."""
        return json.dumps(dict(self.parameters), sort_keys=True, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """The SHA-256, in hex, of architecture, kernel and parameters."""
        text = f"{self.arch}\n{self.kernel}\n{self.parameters_json}"
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def key(self) -> str:
        """The kernel's name, its architecture, and a hash of all parameters."""
        name = re.sub(r"\W", "_", self.kernel, flags=re.ASCII)[:60]
        return f"{name}-{self.arch}-{self.digest[:10]}"

    @property
    def group(self) -> str:
        """All configurations of one kernel."""
        return f"{CAPTURED}/{self.kernel}"
