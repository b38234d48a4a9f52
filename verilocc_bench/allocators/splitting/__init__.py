"""Live-range splitting: the cheapest moves, spills and reloads that make a function fit."""

from verilocc_bench.allocators.splitting.allocate import split_allocate

__all__ = ["split_allocate"]
