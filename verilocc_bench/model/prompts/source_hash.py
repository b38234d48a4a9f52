"""A hash of all code that makes prompts."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from verilocc_bench.files import files_hash

BESIDES = (
    "allocators/ejection.py",
    "allocators/register_state.py",
    "analysis/bank_conflicts.py",
    "analysis/interference.py",
    "analysis/pressure.py",
)
"""What decides what a prompt says and stands elsewhere: what is legal, features, the order."""


@cache
def source_hash() -> str:
    """The SHA-256, in hex, of the files that make prompts, their names included."""
    folder = Path(__file__).parent
    root = folder.parents[1]
    return files_hash(root, [*sorted(folder.glob("*.py")), *(root / name for name in BESIDES)])
