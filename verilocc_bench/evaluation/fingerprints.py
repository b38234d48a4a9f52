"""Hashes that tell samples, verdicts and allocators apart."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from verilocc_bench.files import files_hash

DIGITS = 16
"""How many hex digits of a SHA-256 are used."""

UNKNOWN = "unknown"
"""The revision of code that may change unseen: no run goes on with another one's samples of it."""


def fingerprint(document: Any) -> str:
    """A hash of a JSON document."""
    text = json.dumps(document, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


@cache
def code_fingerprint() -> str:
    """A hash of all Python code and data tables of this package: verdicts depend on them."""
    root = Path(str(files("verilocc_bench")))
    paths = sorted([*root.rglob("*.py"), *(root / "targets").glob("*.json")])
    return files_hash(root, paths)[:DIGITS]
