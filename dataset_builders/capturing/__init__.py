"""Kernels of a user's own script: rows with the compiler's label, and a folder of them."""
