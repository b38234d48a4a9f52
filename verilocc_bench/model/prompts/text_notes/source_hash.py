"""A hash of all code that makes the prompts of the format `text-notes`."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from verilocc_bench.model.prompts.notes.source_hash import notes_source_hash


@cache
def text_notes_source_hash() -> str:
    """The SHA-256, in hex, of this folder's files and of those of the format `notes`."""
    digest = hashlib.sha256(notes_source_hash().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        content = path.read_bytes()
        digest.update(f"{path.name}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()
