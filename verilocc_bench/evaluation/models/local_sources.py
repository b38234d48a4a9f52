"""Finds the source files of an allocator in Python."""

from __future__ import annotations

import ast
import functools
import hashlib
from pathlib import Path

from verilocc_bench.evaluation.fingerprints import DIGITS

OWN_NAME = "verilocc_bench"
"""Of this package results name the version, whoever imports it."""


def sources_fingerprint(module_name: str, path: Path) -> str:
    """A hash of a module's file, and of what it imports from the same folder.

    All files of the module's own package count, and so do modules and packages
    in the same folder that any of these import. Installed packages do not
    count, nor does anything imported without an import statement.
    """
    root = path
    for _ in range(module_name.count(".") + (path.name == "__init__.py")):
        root = root.parent
    folder = path.parent if root == path else root.parent
    found: dict[str, bytes] = {}
    names = {root.stem, OWN_NAME}
    there = {place.stem for place in folder.iterdir()}
    waiting = _files(root)
    while waiting:
        file = waiting.pop()
        source = file.read_bytes()
        found[str(file.relative_to(folder))] = source
        for name in _imported(source, frozenset(there - names)) - names:
            names.add(name)
            waiting += _files(folder / name) or _files(folder / f"{name}.py")
    digest = hashlib.sha256()
    for place, source in sorted(found.items()):
        digest.update(f"{place}\0".encode() + source + b"\0")
    return digest.hexdigest()[:DIGITS]


def _files(place: Path) -> list[Path]:
    if place.is_file():
        return [place]
    # A folder of another kind, such as a virtual environment, is not a package.
    return sorted(place.rglob("*.py")) if (place / "__init__.py").is_file() else []


@functools.lru_cache(maxsize=4096)
def _imported(source: bytes, asked: frozenset[str]) -> frozenset[str]:
    """The first names of all modules that a file imports; at least those that are asked about.

    Only statements are looked at, as no expression holds an import. A file that does not
    mention a name is not parsed; letters beyond ASCII may stand for other ones in a name.
    """
    if source.isascii() and not any(name.encode() in source for name in asked):
        return frozenset()
    found: set[str] = set()
    try:
        waiting: list[ast.AST] = [ast.parse(source)]
    except (SyntaxError, ValueError):
        return frozenset()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.module and not node.level:
                found.add(node.module.split(".")[0])
        else:
            for field in ("body", "orelse", "handlers", "finalbody", "cases"):
                waiting += getattr(node, field, ())
    return frozenset(found)
