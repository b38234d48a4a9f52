"""All candidates among experts' kernels, as a sweep that is built like others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataset_builders.experts.registry import SOURCES
from dataset_builders.sweeps.experts import EXPERT, EXPERT_MINI, ExpertPoint
from dataset_builders.sweeps.point import architecture_named


@dataclass(frozen=True, slots=True)
class ExpertSweep:
    """The kernels of all libraries, mixed evenly: so a prefix has its share of each."""

    name: str
    description: str
    keys: frozenset[str] | None = None
    """The points that it has; None for all."""

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
            if self.keys is None or point.key in self.keys
        )


EXPERT_SWEEPS_BY_NAME: Mapping[str, ExpertSweep] = {
    sweep.name: sweep
    for sweep in (
        ExpertSweep(
            EXPERT_MINI,
            "a few small kernels of experts; ships inside the package",
            frozenset(
                {
                    "cutlass_gemm-sm_80-72697b9344",
                    "cutlass_gemm-sm_80-9d045e8032",
                    "flash_attention_forward-sm_80-53b096ba2b",
                    "flash_attention_forward-sm_80-04f6db3a06",
                    "aiter_gemm_bf16-gfx942-52713b1db3",
                    "aiter_paged_attention-gfx942-6d88286d49",
                }
            ),
        ),
        ExpertSweep(EXPERT, "kernels of open libraries, written by experts; for evaluation alone"),
    )
}
"""Every sweep of experts' kernels."""
