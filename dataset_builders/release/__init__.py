"""From compiled kernels to a dataset: duplicates, splits, files, card."""

__all__ = ["RELEASE_PACKAGES"]

RELEASE_PACKAGES = {
    "matplotlib": "matplotlib",
    "numba": "numba",
    "ortools": "ortools",
    "rapidfuzz": "rapidfuzz",
}
"""The packages that a release needs besides the compilers, with their modules; extra `build`."""
