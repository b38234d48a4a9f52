"""A hash of all code that makes the prompts of the format `text-notes`."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path


@cache
def text_notes_source_hash() -> str:
    """The SHA-256, in hex, of the files of this folder and of `notes`, their names included."""
    here = Path(__file__).parent
    digest = hashlib.sha256()
    for folder in (here.with_name("notes"), here):
        for path in sorted(folder.glob("*.py")):
            content = path.read_bytes()
            digest.update(f"{folder.name}/{path.name}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()
