"""Which files the code of an allocator in Python stands in."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from pathlib import Path

from verilocc_bench.evaluate.fingerprints import DIGITS

__all__ = ["sources_fingerprint"]


def sources_fingerprint(module_name: str, path: Path) -> str:
    """A hash of a module's file and of all that lies beside it and is imported.

    All files of the module's own package count, and modules and packages in
    the same folder that are imported, by these too. Installed packages, and
    what is imported by other means than an import statement, do not.
    """
    root = path
    for _ in range(module_name.count(".") + (path.name == "__init__.py")):
        root = root.parent
    folder = path.parent if root == path else root.parent
    found: set[Path] = set()
    waiting = _files(root)
    while waiting:
        file = waiting.pop()
        if file in found:
            continue
        found.add(file)
        for name in _imported(file):
            for place in (folder / name, folder / f"{name}.py"):
                waiting += _files(place)
    digest = hashlib.sha256()
    for file in sorted(found):
        digest.update(f"{file.relative_to(folder)}\0".encode() + file.read_bytes() + b"\0")
    return digest.hexdigest()[:DIGITS]


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    # A folder of another kind, such as a virtual environment, is no package.
    return sorted(place.rglob("*.py")) if (place / "__init__.py").is_file() else []


def _imported(file: Path) -> Iterator[str]:
    """The first names of all modules that a file imports."""
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
