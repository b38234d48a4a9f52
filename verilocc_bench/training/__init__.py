"""Training of language models that allocate registers (extra `model`)."""

from __future__ import annotations

from pathlib import Path

from verilocc_bench.training.recipe import Recipe, find_recipe, read_recipe

__all__ = ["Recipe", "find_recipe", "read_recipe", "train"]


def train(
    recipe: Recipe, dataset: str, output: Path, *, revision: str | None = None, jobs: int = 1
) -> Path:
    """Calls `training.run.train`; imports it, and with it torch, only now."""
    from verilocc_bench.training.run import train as run

    return run(recipe, dataset, output, revision=revision, jobs=jobs)
