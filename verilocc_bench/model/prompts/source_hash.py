"""A hash of all code that makes prompts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from verilocc_bench.files import files_hash

BESIDES = ("allocators/register_state.py", "analysis/liveness.py", "analysis/placement.py")
"""What decides which registers are legal, which windows show and constrained decoding allows."""


@cache
def source_hash() -> str:
    """The SHA-256, in hex, of the files that make prompts, their names included."""
    folder = Path(__file__).parent
    root = folder.parents[1]
    return files_hash(root, [*sorted(folder.glob("*.py")), *(root / name for name in BESIDES)])
