"""A hash of the code that makes the prompts of the format `text-notes-json`."""

from __future__ import annotations

import hashlib
from pathlib import Path


def hash_with_folder(*others: str) -> str:
    """The SHA-256, in hex, of this folder's files and of other hashes."""
    digest = hashlib.sha256("\n".join(others).encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
