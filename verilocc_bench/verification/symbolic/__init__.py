"""The independent checker: symbolic values on the places of an answer, edits or none."""

from verilocc_bench.verification.symbolic.checker import SymbolicChecker

__all__ = ["SymbolicChecker"]
