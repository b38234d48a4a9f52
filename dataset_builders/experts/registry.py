"""The libraries by name."""

from __future__ import annotations

from collections.abc import Mapping

from dataset_builders.experts.cuda_sources import CUTLASS, FLASH_ATTENTION
from dataset_builders.experts.protocol import ExpertSource

_CUTLASS: ExpertSource = CUTLASS
_FLASH_ATTENTION: ExpertSource = FLASH_ATTENTION

SOURCES: Mapping[str, ExpertSource] = {
    source.library: source for source in (_CUTLASS, _FLASH_ATTENTION)
}
"""Every library, in the order of their rows."""
