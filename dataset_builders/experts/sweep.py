"""All candidates among experts' kernels, as a sweep that is built like others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dataset_builders.experts.registry import SOURCES
from dataset_builders.sweeps.experts import EXPERT, ExpertPoint
from dataset_builders.sweeps.point import architecture_named


@dataclass(frozen=True, slots=True)
class ExpertSweep:
    """The kernels of all libraries, mixed evenly: so a prefix has its share of each."""

    name: str = EXPERT
    description: str = "kernels of open libraries, written by experts; for evaluation alone"

    def points(self, archs: Sequence[str] | None = None, /) -> tuple[ExpertPoint, ...]:
        """The candidates for these architectures, or for all.

        Raises InputError for an unknown architecture, and if the list of a library
        needs its archive and that is not there.
        """
        chosen = None if archs is None else {architecture_named(arch) for arch in archs}
        wanted = [s for s in SOURCES.values() if chosen is None or s.arch in chosen]
        lists = [source.points() for source in wanted]
        return tuple(
            point
            for _, _, point in sorted(
                ((place + 0.5) / len(points), library, point)
                for library, points in enumerate(lists)
                for place, point in enumerate(points)
            )
        )
