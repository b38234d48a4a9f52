"""The libraries by name."""

from __future__ import annotations

from collections.abc import Mapping

from dataset_builders.experts.aiter import AITER
from dataset_builders.experts.cuda_sources import CUTLASS, FLASH_ATTENTION
from dataset_builders.experts.protocol import ExpertSource

SOURCES: Mapping[str, ExpertSource] = {
    source.library: source for source in (CUTLASS, FLASH_ATTENTION, AITER)
}
"""Every library, in the order of their rows."""
