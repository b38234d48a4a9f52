"""A decision tree as data: read from JSON, never from a pickle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from verilocc_bench.files import parse_json

__all__ = ["Tree", "load_tree"]


@dataclass(frozen=True, slots=True)
class Tree:
    """Either a `choice`, or a question: feature number `feature` at most `threshold`?"""

    choice: str | None
    feature: int = 0
    threshold: float = 0.0
    yes: Tree | None = None
    no: Tree | None = None

    def choose(self, features: Sequence[float]) -> str:
        """The choice for a function with these features."""
        node = self
        while node.choice is None:
            following = node.yes if features[node.feature] <= node.threshold else node.no
            assert following is not None
            node = following
        return node.choice


@cache
def load_tree() -> Tree:
    """The tree that comes with the package (benchmarks/chooser.py made it)."""
    source = files("verilocc_bench.allocators.chooser").joinpath("tree.json")
    document: Any = parse_json(source.read_text(encoding="utf-8"), str(source))
    return _read(document["tree"], document["features"])


def _read(node: Mapping[str, Any], names: Sequence[str]) -> Tree:
    if "choice" in node:
        return Tree(node["choice"])
    yes, no = _read(node["yes"], names), _read(node["no"], names)
    return Tree(None, names.index(node["feature"]), node["at_most"], yes, no)
