"""Corruptions of valid answers."""

from verilocc_bench.selftest.mutate import OPERATORS, mutate

__all__ = ["OPERATORS", "mutate"]
