"""The progress bar of a build, in kernels per minute."""

from __future__ import annotations

from typing import Any

from tqdm import tqdm

_FORMAT = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}<{remaining}, {per_minute}{postfix}]"


class KernelBar(tqdm):  # type: ignore[type-arg]
    """Counts kernels, and how many of them are rejected. Shown on a terminal's standard error."""

    def __init__(self, total: int, done: int, *, show: bool) -> None:
        self.rejected = 0
        super().__init__(
            total=total,
            initial=done,
            unit="kernel",
            desc="build",
            disable=None if show else True,
            smoothing=0.05,
            bar_format=_FORMAT,
        )

    @property
    def format_dict(self) -> dict[str, Any]:
        """tqdm's fields, with the rate per minute."""
        fields = dict(super().format_dict)
        done = fields["n"] - fields["initial"]
        rate = fields["rate"] or (done / fields["elapsed"] if fields["elapsed"] else 0.0)
        return {**fields, "per_minute": f"{60 * rate:.1f} kernels/min"}

    def add(self, *, rejected: bool) -> None:
        """Counts one more kernel."""
        if rejected:
            self.rejected += 1
            self.set_postfix(rejected=self.rejected, refresh=False)
        self.update()
