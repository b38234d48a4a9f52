"""Random functions for property tests."""

from verilocc_bench.selftest.generate import random_function

__all__ = ["random_function"]
