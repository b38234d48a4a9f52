"""Verification: is an assignment right, and if not, what is wrong where."""

from verilocc_bench.verify.fast import FastVerifier
from verilocc_bench.verify.verdict import Finding, FindingKind, Verdict

__all__ = ["FastVerifier", "Finding", "FindingKind", "Verdict"]
