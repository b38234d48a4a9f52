"""A hash of all code that makes the prompts of the format `notes`."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def notes_source_hash() -> str:
    """The SHA-256, in hex, of this folder's files, their names included."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
