"""Exact allocation by constraint programming, and proofs that fewer registers do not suffice."""
