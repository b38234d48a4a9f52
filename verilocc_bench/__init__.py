"""Datasets, a verifier and an evaluation harness for register allocation on GPU kernels."""

from verilocc_bench.errors import InputError, VerilocError

__version__ = "0.1.0"

__all__ = ["InputError", "VerilocError", "__version__"]
