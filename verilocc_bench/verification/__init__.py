"""Verification: is an assignment right, and if not, what is wrong where."""

from verilocc_bench.edits.findings import Finding, FindingKind, Verdict
from verilocc_bench.verification.fast import FastVerifier
from verilocc_bench.verification.verifier import IndependentVerifier, Verifier

__all__ = ["FastVerifier", "Finding", "FindingKind", "IndependentVerifier", "Verdict", "Verifier"]
